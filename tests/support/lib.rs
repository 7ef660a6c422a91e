//! What the privileged suites share: the interpreters of this machine, the exporter under test, target
//! programs that wait to be told, and folded output as data.
//!
//! Truth never comes from here: it is what the target programs of `tests/python` wrote of themselves.
#![allow(
    clippy::panic,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops at the first surprise and says what it saw"
)]

pub mod bpf;
pub mod calls;
pub mod collector;
pub mod compile;
pub mod daemon;
pub mod exporter;
pub mod folded;
pub mod image;
pub mod interpreter;
pub mod temp;
pub mod truth;

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Whether the test may go on; says so when it may not.
pub fn is_root(test: &str) -> bool {
    let root = std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0);
    if !root {
        eprintln!("skipped: {test} loads BPF programs and needs root");
    }
    root
}

/// A target program of `tests/python`.
pub fn program(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("python").join(name);
    assert!(path.is_file(), "{} is no target program", path.display());
    path
}

/// The fewest samples that `expected` ones may come out as. A count strays by its square root; a suite of
/// some two hundred counts wants 4.5 of these for a false alarm in a thousand runs.
pub fn fewest(expected: f64) -> f64 {
    expected - 4.5 * expected.sqrt()
}
