//! The real OpenTelemetry Collector of `otel-collector/`, built once and started on free ports. Its file
//! exporters are the oracle: what they hold has arrived.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use prost::Message;
use serde_json::Value;

use crate::exporter::until;
use crate::temp::TempDir;

/// The binary, built by Go from the module proxy when it is not there.
fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
        let path = root.join("target/otelcol");
        let built = Command::new("go")
            .args(["build", "-o", "../target/otelcol", "."])
            .current_dir(root.join("otel-collector"))
            .status()
            .expect("go is needed to build the Collector: install Go, or put it on PATH");
        assert!(built.success() && path.is_file(), "the Collector was not built");
        path.canonicalize().expect("the Collector's path")
    })
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("bound").port()
}

/// A Collector that runs; ended when dropped.
#[derive(Debug)]
pub struct Collector {
    child: Child,
    dir: TempDir,
    endpoint: String,
}

impl Collector {
    /// Starts it and waits until it says that it is healthy.
    pub fn start() -> Self {
        let dir = TempDir::new("collector");
        let [grpc, http, health] = [(); 3].map(|()| format!("127.0.0.1:{}", free_port()));
        let config = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../otel-collector/collector.yaml");
        let child = Command::new(binary())
            .arg("--feature-gates=service.profilesSupport")
            .arg("--config")
            .arg(config)
            .env("OTELCOL_DIR", dir.path())
            .env("OTELCOL_GRPC", &grpc)
            .env("OTELCOL_HTTP", &http)
            .env("OTELCOL_HEALTH", &health)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(dir.join("log")).expect("a file"))
            .spawn()
            .expect("the Collector starts");
        let mut collector = Self { child, dir, endpoint: format!("http://{grpc}") };
        until("the Collector is healthy", || {
            let ended = collector.child.try_wait().expect("wait");
            assert!(ended.is_none(), "the Collector ended: {ended:?}\n{}", collector.log());
            is_healthy(&health).unwrap_or(false)
        });
        collector
    }

    /// Where it takes OTLP over gRPC.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// What it says on stderr.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }

    /// Ends it, so that everything is in its files, and gives what they hold: the JSON lines, and the same
    /// messages in protobuf.
    pub fn finish(mut self) -> Received {
        let ended = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(ended.expect("kill").success());
        let status = self.child.wait().expect("wait");
        assert!(status.success(), "the Collector ended with {status}\n{}", self.log());
        let json = fs::read_to_string(self.dir.join("profiles.jsonl")).unwrap_or_default();
        let json = json.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let bytes = fs::read(self.dir.join("profiles.pb")).unwrap_or_default();
        Received { json, requests: messages(&bytes), log: self.log() }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None))
            && let Err(error) = self.child.kill().and_then(|()| self.child.wait().map(|_| ()))
        {
            eprintln!("collector {}: {error}", self.child.id());
        }
    }
}

/// What a Collector got.
#[derive(Debug)]
pub struct Received {
    /// A request a line, as its own JSON.
    pub json: Vec<Value>,
    /// The same as protobuf; strings of resource and scope are references into the string table.
    pub requests: Vec<ExportProfilesServiceRequest>,
    /// What it said.
    pub log: String,
}

impl Received {
    /// Samples in its JSON file: the timestamps of all samples. Counted without the exporter's own reader.
    pub fn sample_count(&self) -> u64 {
        fn count(value: &Value) -> u64 {
            match value {
                Value::Array(values) => values.iter().map(count).sum(),
                Value::Object(fields) => fields
                    .iter()
                    .map(|(name, value)| match value {
                        Value::Array(times) if name == "timestampsUnixNano" => times.len() as u64,
                        other => count(other),
                    })
                    .sum(),
                _ => 0,
            }
        }
        self.json.iter().map(count).sum()
    }
}

/// Messages of the file exporter: each after its length, four bytes, big-endian.
fn messages(mut bytes: &[u8]) -> Vec<ExportProfilesServiceRequest> {
    let mut requests = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize;
        assert!(length <= rest.len(), "a torn message of {length} bytes");
        let (message, rest) = rest.split_at(length);
        // ProfilesData has the fields of a request, with the same numbers.
        requests.push(ExportProfilesServiceRequest::decode(message).expect("a message"));
        bytes = rest;
    }
    requests
}

fn is_healthy(address: &str) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.starts_with("HTTP/1.1 200"))
}
