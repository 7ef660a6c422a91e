//! `demo`: a sample Python program, the profiler, the delivery and a receiver, together for some
//! seconds. What is shown and drawn is what the receiver got, beside the program's own CPU clock.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufWriter;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver as Requests};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use serde::Deserialize;
use tokio::sync::oneshot;

use crate::aggregate::frame::{Frame, FrameKind};
use crate::deliver::exporter::{Delivery, DeliveryConfig, Sender};
use crate::deliver::grpc::GrpcConfig;
use crate::deliver::queue::{self, Queue};
use crate::exit::Exit;
use crate::otlp::read::{self, PlainFrame};
use crate::otlp::split;
use crate::pipeline::profiler::{Options, Profiler};
use crate::pipeline::stop::Stop;
use crate::receive::Receiver;
use crate::sampler::loader::LoadError;
use crate::sinks::flamegraph;
use crate::sinks::folded::{Folded, FoldedOptions, Granularity};
use crate::{answer, say};

const PROGRAM: &str = include_str!("../../demo/sample_program.py");
/// Where the drawing goes.
const FLAMEGRAPH: &str = "demo-flamegraph.svg";
/// How long the sample program works, and how long it may take at most.
const SECONDS: Duration = Duration::from_secs(6);
const LONGEST: Duration = Duration::from_secs(20);
/// Samples a second: as `record`, many in a short time.
const RATE_HZ: u32 = 99;
const INTERVAL: Duration = Duration::from_secs(1);
const TURN: Duration = Duration::from_millis(50);
const FLUSH_DEADLINE: Duration = Duration::from_secs(5);
/// Requests the receiver may hold: one a second, in parts when large.
const REQUESTS: usize = 256;
/// Functions shown.
const SHOWN: usize = 8;
const PYTHONS: [&str; 5] = ["python3", "python3.13", "python3.12", "python3.11", "python"];

/// Runs it.
pub fn run() -> Exit {
    match demo() {
        Ok(()) => Exit::Success,
        Err(error) => {
            say!("demo: {error:#}");
            match error.downcast_ref() {
                Some(LoadError::NotPermitted { .. }) => Exit::MissingPrivilege,
                _ => Exit::Failed,
            }
        }
    }
}

/// What the sample program says of itself: CPU seconds.
#[derive(Debug, Deserialize)]
struct Truth {
    total: f64,
    functions: BTreeMap<String, f64>,
}

/// A folder that goes with the demo, and the program in it.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!(folder = %self.0.display(), "temporary folder left behind: {error}");
        }
    }
}

/// The sample program; it ends with the demo, however that ends.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None))
            && let Err(error) = self.0.kill()
        {
            tracing::warn!("the sample program could not be ended: {error}");
        }
        if let Err(error) = self.0.wait() {
            tracing::debug!("the sample program's end is not known: {error}");
        }
    }
}

fn demo() -> Result<()> {
    let stop = Stop::install().context("listening to signals")?;
    let python = find_python()?;
    let options = Options { rate: RATE_HZ, pids: Vec::new(), only_wanted: true };
    let mut profiler = Profiler::start(&options)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("starting the receiver")?;
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let receiver = runtime.block_on(Receiver::bind(Some(any), Some(any), None))?;
    let address = receiver.grpc_addr().context("asking for the receiver's address")?;
    let (reader, requests) = mpsc::sync_channel(REQUESTS);
    receiver.hand_to(reader);
    let (shutdown, ended) = oneshot::channel::<()>();
    let receiving = runtime.spawn(receiver.run(async {
        // Dropping the other end asks for the end as well.
        ended.await.ok();
    }));
    let delivery = {
        let _inside = runtime.enter();
        let grpc = GrpcConfig { endpoint: format!("http://{address}"), ..GrpcConfig::default() };
        let config = DeliveryConfig { grpc, ..DeliveryConfig::default() };
        Delivery::spawn(&config, Queue::new(queue::DEFAULT_MAX_REQUESTS, queue::DEFAULT_MAX_BYTES))?
    };
    answer!("{}, profiled at {RATE_HZ} Hz for {} s, OTLP/gRPC to {address}", python.name, SECONDS.as_secs());

    let scratch = scratch()?;
    let report = scratch.0.join("truth.json");
    let mut program = start(&python.path, &scratch.0, &report)?;
    profiler.want(program.0.id());
    let finished = profile(&mut profiler, &delivery.sender(), &mut program, &stop)?;
    profiler.stop();
    send(&mut profiler, &delivery.sender());
    runtime.block_on(delivery.flush(FLUSH_DEADLINE));
    drop(shutdown);
    let stats = runtime.block_on(receiving).context("ending the receiver")??;
    if !finished {
        bail!("ended early by a signal; start it again for the result");
    }
    let text = fs::read(&report).context("reading what the sample program measured")?;
    let truth: Truth = serde_json::from_slice(&text).context("reading what the sample program measured")?;
    let received = read_all(&requests);
    answer!("received {} requests, {} samples, {} findings", stats.requests, stats.samples, stats.findings);
    if received.samples == 0 {
        bail!("no sample arrived; `otel-profile-exporter doctor` tells what is missing");
    }
    answer!("{}", table(&received, &truth).trim_end());
    draw(&received.folded)
}

/// Samples until the program has ended; false when a signal came first.
fn profile(profiler: &mut Profiler, sender: &Sender, program: &mut Program, stop: &Stop) -> Result<bool> {
    let begin = Instant::now();
    let mut next = begin + INTERVAL;
    loop {
        if stop.is_requested() {
            return Ok(false);
        }
        if let Some(status) = program.0.try_wait().context("waiting for the sample program")? {
            if !status.success() {
                bail!("the sample program failed ({status}); please report its message above");
            }
            return Ok(true);
        }
        if begin.elapsed() > LONGEST {
            bail!("the sample program takes too long; try again on a less busy machine");
        }
        profiler.poll(TURN);
        if Instant::now() >= next {
            send(profiler, sender);
            next += INTERVAL;
        }
    }
}

fn send(profiler: &mut Profiler, sender: &Sender) {
    let window = profiler.take_window();
    if !window.processes.is_empty() {
        split::requests(&window, split::DEFAULT_MAX_BYTES).iter().for_each(|request| sender.push(request));
    }
}

fn scratch() -> Result<Scratch> {
    use std::os::unix::fs::DirBuilderExt as _;
    let folder = std::env::temp_dir().join(format!("otel-profile-exporter-demo-{}", std::process::id()));
    let made = fs::DirBuilder::new().mode(0o700).create(&folder);
    made.with_context(|| {
        format!("creating {}; set TMPDIR to a folder that can be written", folder.display())
    })?;
    Ok(Scratch(folder))
}

fn start(python: &Path, folder: &Path, report: &Path) -> Result<Program> {
    use std::os::unix::process::CommandExt as _;
    let source = folder.join("sample_program.py");
    fs::write(&source, PROGRAM).with_context(|| format!("writing {}", source.display()))?;
    let mut command = Command::new(python);
    // A group of its own: Ctrl-C reaches the demo, which ends the program without a traceback.
    command.process_group(0);
    command.arg(&source).arg(SECONDS.as_secs().to_string()).arg(report).stdin(Stdio::null());
    Ok(Program(command.spawn().with_context(|| format!("starting {}", python.display()))?))
}

struct Python {
    path: PathBuf,
    name: String,
}

/// The first Python in PATH that the walk knows.
fn find_python() -> Result<Python> {
    const ASK: &str = "import sys; v = sys.version_info; \
        print(sys.implementation.name, v[0], v[1], v[2]); print(sys.executable)";
    let mut refused = Vec::new();
    for name in PYTHONS {
        let Ok(output) = Command::new(name).args(["-c", ASK]).stdin(Stdio::null()).output() else { continue };
        let text = String::from_utf8_lossy(&output.stdout);
        let mut lines = text.lines();
        let (Some(version), Some(path)) = (lines.next(), lines.next()) else { continue };
        if is_supported(version) {
            return Ok(Python { path: PathBuf::from(path), name: format!("{version} ({path})") });
        }
        refused.push(format!("{name} is {version}"));
    }
    let found = if refused.is_empty() { "none found".to_owned() } else { refused.join(", ") };
    bail!("no CPython 3.8 to 3.15 in PATH ({found}): install one, or put its folder first in PATH")
}

/// Whether `cpython 3 12 1` and the like can be profiled.
fn is_supported(version: &str) -> bool {
    let mut words = version.split_whitespace();
    words.next() == Some("cpython")
        && words.next() == Some("3")
        && words
            .next()
            .and_then(|minor| minor.parse::<u8>().ok())
            .is_some_and(|minor| (8..=15).contains(&minor))
}

/// What the receiver got.
#[derive(Default)]
struct Received {
    samples: u64,
    /// Samples by the name of the innermost Python function.
    own: BTreeMap<String, u64>,
    folded: Folded,
}

fn read_all(requests: &Requests<ExportProfilesServiceRequest>) -> Received {
    let folded =
        Folded::new(FoldedOptions { granularity: Granularity::Function, ..FoldedOptions::default() });
    let mut received = Received { folded, ..Received::default() };
    for sample in requests.try_iter().flat_map(|request| read::profiles(&request)).flat_map(|p| p.samples) {
        let count = u64::try_from(sample.count).unwrap_or_default();
        received.samples += count;
        let innermost = sample.frames.iter().find(|frame| frame.kind == "cpython");
        let name = innermost.map_or("(no Python frame)", |frame| frame.name.as_str());
        *received.own.entry(name.to_owned()).or_default() += count;
        let stack: Vec<Frame> = sample.frames.iter().map(frame).collect();
        received.folded.add_stack(&stack, count);
    }
    received
}

fn frame(plain: &PlainFrame) -> Frame {
    Frame {
        kind: match plain.kind.as_str() {
            "cpython" => FrameKind::Python,
            "kernel" => FrameKind::Kernel,
            "native" => FrameKind::Native,
            _ => FrameKind::Marker,
        },
        name: plain.name.as_str().into(),
        file: plain.file.as_str().into(),
        line: u32::try_from(plain.line).unwrap_or_default(),
        start_line: u32::try_from(plain.start_line).unwrap_or_default(),
    }
}

/// The hottest functions, each beside its own clock.
fn table(received: &Received, truth: &Truth) -> String {
    let mut own: Vec<_> = received.own.iter().collect();
    own.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let mut text = format!("{:<28}{:>9}{:>12}{:>12}\n", "function", "samples", "self", "own clock");
    for (name, count) in own.into_iter().take(SHOWN) {
        let share = 100.0 * *count as f64 / received.samples.max(1) as f64;
        let clock = truth.functions.get(name).filter(|_| truth.total > 0.0);
        let clock = clock.map_or("-".to_owned(), |spent| format!("{:.1} %", 100.0 * spent / truth.total));
        text.push_str(&format!("{name:<28}{count:>9}{:>12}{clock:>12}\n", format!("{share:.1} %")));
    }
    text
}

fn draw(folded: &Folded) -> Result<()> {
    let file = File::create(FLAMEGRAPH)
        .with_context(|| format!("creating {FLAMEGRAPH}; start the demo in a folder that can be written"))?;
    flamegraph::write(folded, "demo: CPU time by stack", BufWriter::new(file))
        .context("drawing the flame graph")?;
    answer!("wrote {FLAMEGRAPH}; open it in a browser");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_interpreters_that_the_walk_knows_are_used() {
        assert!(is_supported("cpython 3 11 7") && is_supported("cpython 3 13 0"));
        for wrong in ["cpython 3 7 2", "cpython 3 16 0", "pypy 3 11 1", "cpython 2 12 0", ""] {
            assert!(!is_supported(wrong), "{wrong}");
        }
    }

    #[test]
    fn shares_stand_beside_the_clock() {
        let own = BTreeMap::from([("a".to_owned(), 3), ("b".to_owned(), 1)]);
        let received = Received { samples: 4, own, folded: Folded::default() };
        let truth = Truth { total: 2.0, functions: BTreeMap::from([("a".to_owned(), 1.5)]) };
        let lines: Vec<Vec<String>> = table(&received, &truth)
            .lines()
            .map(|line| line.split_whitespace().map(str::to_owned).collect())
            .collect();
        assert_eq!(lines[1], ["a", "3", "75.0", "%", "75.0", "%"]);
        assert_eq!(lines[2], ["b", "1", "25.0", "%", "-"]);
    }
}
