//! The command.
fn main() {
    let mut s = match otel_profile_exporter::sampler::loader::Sampler::load(10_000_000) { Ok(s) => s, Err(e) => { eprintln!("{e}"); std::process::exit(1) } };
    if let Err(e) = s.attach(10_000_000) { eprintln!("{e}"); }
    std::thread::sleep(std::time::Duration::from_secs(1));
    let mut n = 0;
    while let Some(item) = s.events.next() { n += 1; if n < 4 { eprintln!("{:?}", otel_profile_exporter::sampler::decode::decode(&item)); } }
    eprintln!("{n} {:?}", otel_profile_exporter::sampler::counters::read(&s.counters));
}
