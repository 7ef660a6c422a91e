//! O22: the wire form. Unmodified programs on every interpreter, profiled by `run` into a real Collector
//! and into `receive`: every request is by the rules, every sample taken arrives, and what arrives has the
//! names, files and resources that the programs say of themselves.
#![allow(
    clippy::panic,
    clippy::expect_used,
    reason = "a test stops at the first surprise and says what it saw"
)]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use exporter_tests::collector::{Collector, free_port};
use exporter_tests::daemon::{Counts, Daemon};
use exporter_tests::exporter::{Target, binary, until};
use exporter_tests::interpreter::{self, Interpreter};
use exporter_tests::temp::TempDir;
use exporter_tests::{is_root, program, truth};
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use otel_profile_exporter::otlp::read::{self, PlainProfile};
use otel_profile_exporter::otlp::validate;
use prost::Message;

/// CPU seconds of each function of a program.
const SECONDS: &str = "0.3";

#[test]
fn o22_a_real_collector_gets_every_sample() {
    if !is_root("o22") {
        return;
    }
    let pythons = interpreter::all();
    let dir = TempDir::new("wire");
    let collector = Collector::start();
    let counts = profile(&pythons, &dir, collector.endpoint());
    let received = collector.finish();
    assert!(counts.accepted > 100, "{counts:?}");
    assert_eq!(received.sample_count(), counts.accepted, "in the Collector's file\n{}", received.log);
    let profiles: Vec<_> = received.requests.iter().flat_map(read::profiles).collect();
    arrived_as_the_programs_say(&pythons, &dir, &profiles);
}

#[test]
fn o22_every_request_is_by_the_rules() {
    if !is_root("o22") {
        return;
    }
    let pythons = interpreter::all();
    let dir = TempDir::new("wire");
    let received = dir.join("received");
    let port = free_port();
    let mut receiver = Receiver::start(port, &received);
    let counts = profile(&pythons, &dir, &format!("http://127.0.0.1:{port}"));
    receiver.end();
    let mut requests = Vec::new();
    for entry in std::fs::read_dir(&received).expect("what was received") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "pb") {
            let bytes = std::fs::read(&path).expect("a request");
            requests.push(ExportProfilesServiceRequest::decode(bytes.as_slice()).expect("a request"));
        }
    }
    assert!(requests.len() >= 3, "{} requests", requests.len());
    for request in &requests {
        let findings = validate::validate_own(request);
        assert!(findings.is_empty(), "{findings:?}");
        let pids: Vec<_> = read::profiles(request).iter().map(process).collect();
        let different: BTreeSet<_> = pids.iter().collect();
        assert_eq!(pids.len(), different.len(), "one resource a process: {pids:?}");
    }
    let sum: u64 = requests.iter().map(read::sample_count).sum();
    assert_eq!(sum, counts.accepted, "sum of values = the exporter's own count");
    let profiles: Vec<_> = requests.iter().flat_map(read::profiles).collect();
    arrived_as_the_programs_say(&pythons, &dir, &profiles);
}

/// Runs a program on every interpreter, all at once, under `run`; what was taken must have been sent.
fn profile(pythons: &[Interpreter], dir: &TempDir, endpoint: &str) -> Counts {
    let mut targets: Vec<Target> = pythons
        .iter()
        .enumerate()
        .map(|(number, python)| {
            let mut command = Command::new(&python.path);
            command
                .arg(program("names.py"))
                .args([SECONDS, "--gate", "--truth"])
                .arg(truth_path(dir, number));
            Target::start(command.env("OTEL_SERVICE_NAME", format!("shop-{number}")))
        })
        .collect();
    let mut arguments: Vec<String> =
        ["--interval", "500ms", "--rate", "99", "--endpoint", endpoint].map(str::to_owned).to_vec();
    for target in &targets {
        arguments.extend(["--pid".to_owned(), target.pid.to_string()]);
    }
    let daemon = Daemon::start(&arguments);
    for target in &mut targets {
        target.go();
    }
    for target in &mut targets {
        target.wait();
    }
    let (counts, said) = daemon.finish();
    println!("{counts:?}");
    assert_eq!(counts.taken, counts.aggregated, "taken and in a window\n{said}");
    assert_eq!(counts.aggregated, counts.accepted, "in a window and accepted\n{said}");
    counts
}

fn truth_path(dir: &TempDir, number: usize) -> std::path::PathBuf {
    dir.join(&format!("truth-{number}.json"))
}

fn process(profile: &PlainProfile) -> String {
    profile.resource.get("process.pid").cloned().unwrap_or_default()
}

fn arrived_as_the_programs_say(pythons: &[Interpreter], dir: &TempDir, profiles: &[PlainProfile]) {
    for (number, python) in pythons.iter().enumerate() {
        let truth = truth::read(&truth_path(dir, number));
        let pid = truth::pid(&truth["pid"]).to_string();
        let own: Vec<_> = profiles.iter().filter(|profile| process(profile) == pid).collect();
        assert!(!own.is_empty(), "{python}: nothing of {pid}");
        for profile in &own {
            let says = |key: &str| profile.resource.get(key).map(String::as_str);
            assert_eq!(says("service.name"), Some(format!("shop-{number}").as_str()), "{python}");
            assert_eq!(says("process.runtime.name"), Some("cpython"), "{python}");
            assert_eq!(says("process.runtime.version"), Some(python.version.as_str()), "{python}");
            assert_eq!(profile.scope.0, "otel-profile-exporter", "{python}");
        }
        let file = truth::text(&truth["file"]);
        let seen: BTreeSet<(&str, i64)> = own
            .iter()
            .flat_map(|profile| &profile.samples)
            .flat_map(|sample| &sample.frames)
            .filter(|frame| frame.file == file)
            .map(|frame| (frame.name.as_str(), frame.start_line))
            .collect();
        for (key, function) in truth::functions(&truth) {
            let name = truth::text(&function["qualname"]);
            let first = truth::int(&function["first_line"]);
            assert!(
                seen.contains(&(name.as_str(), first)),
                "{python}: {key} ({name}:{first}) not in {seen:?}"
            );
        }
    }
}

/// `receive` that stores what it gets; ended when dropped.
struct Receiver(Child);

impl Receiver {
    fn start(port: u16, output: &Path) -> Self {
        let child = Command::new(binary())
            .args(["receive", "--grpc", &format!("127.0.0.1:{port}")])
            .args(["--http", &format!("127.0.0.1:{}", free_port()), "--output"])
            .arg(output)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("receive starts");
        until("receive listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self(child)
    }

    fn end(&mut self) {
        let told = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status();
        assert!(told.expect("kill").success());
        assert!(self.0.wait().expect("wait").success());
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None))
            && let Err(error) = self.0.kill().and_then(|()| self.0.wait().map(|_| ()))
        {
            eprintln!("receive {}: {error}", self.0.id());
        }
    }
}
