//! Captures memory images: `cargo run -p exporter-tests --bin capture` writes one for each interpreter of
//! this machine to tests/images/, from a thread that stands still and has said its truth.
#![allow(clippy::expect_used, reason = "a tool for developers that stops at the first surprise")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use exporter_tests::exporter::until;
use exporter_tests::image::{Image, Recording, chain, walk};
use exporter_tests::interpreter;
use otel_profile_exporter::interpreter::python::{Cache, detect};
use otel_profile_exporter::process::stat;
use otel_profile_exporter::remote_memory::{ProcessMemory, RemoteMemory};

/// Under a name of its own, so that no path of the machine is in the image.
const PROGRAM: &str = "exec(compile(open('python/image.py', encoding='utf-8').read(), 'image.py', 'exec'))";

fn main() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    for python in interpreter::all() {
        let mut target = Command::new(&python.path)
            .args(["-c", PROGRAM, "40"])
            .current_dir(tests)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the interpreter starts");
        let mut line = String::new();
        BufReader::new(target.stdout.take().expect("piped")).read_line(&mut line).expect("its truth");
        let truth: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        let pid = target.id();
        // It has said its truth and may still be on the way back from that: it stands in read(0, …).
        until("the thread waits for its byte", || {
            std::fs::read_to_string(format!("/proc/{pid}/syscall"))
                .is_ok_and(|call| call.starts_with("0 0x0 "))
        });
        let start = stat::read(pid).expect("its start").start_ticks;
        let found = detect(pid, 1, start, &mut Cache::new()).expect("a Python");
        let memory = ProcessMemory { pid };
        let recording = Recording::new(|address, to: &mut [u8]| memory.read(address, to).is_ok());
        let thread_pointer = truth["ident"].as_u64().expect("an identity");
        let walked = walk(&found.process, thread_pointer, &recording);
        target.kill().expect("kill");
        target.wait().expect("wait");
        let image = Image {
            version: found.version,
            process: found.process,
            thread_pointer,
            pieces: recording.pieces(),
            chain: chain(&truth["chain"]),
        };
        let build = format!("{:?}", found.build).to_lowercase();
        let path = tests.join("images").join(format!("{}-{build}.json", image.version));
        image.write(&path);
        println!("{}: status {}, {} frames", path.display(), walked.status, walked.chain.len());
    }
}
