//! Every way of calling, on every CPython that this machine has: the chain is the one that the interpreter
//! itself shows, with no frame of its own in it. `calls.py` has the places.
#![allow(
    clippy::panic,
    clippy::expect_used,
    reason = "a test stops at the first surprise and says what it saw"
)]

use exporter_tests::calls::every_call_took_place;
use exporter_tests::exporter::record_program;
use exporter_tests::interpreter;
use exporter_tests::is_root;

/// CPU seconds of each place.
const SECONDS: &str = "0.1";
const RATE: f64 = 499.0;

#[test]
fn every_way_of_calling_on_every_version() {
    if !is_root("calls") {
        return;
    }
    for python in interpreter::every() {
        let (truth, recording) = record_program(&["--rate", "499"], &python, "calls.py", &[SECONDS]);
        every_call_took_place(&python, &truth, &recording, RATE);
    }
}
