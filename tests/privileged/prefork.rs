//! O15: prefork workers. A master forks four workers, each burning in a function of its own; one is killed
//! and replaced. Each keeps its Python frames, under its own pid, and shows nothing of another.
#![allow(
    clippy::panic,
    clippy::expect_used,
    reason = "a test stops at the first surprise and says what it saw"
)]

use std::collections::BTreeSet;

use exporter_tests::exporter::record_program;
use exporter_tests::folded::total;
use exporter_tests::interpreter::{self, Interpreter};
use exporter_tests::{is_root, truth};

const RATE: f64 = 99.0;

#[test]
fn o15_forked_workers_keep_their_names() {
    run("fork");
}

#[test]
fn o15_workers_forked_from_another_thread_keep_their_names() {
    run("thread");
}

#[test]
fn o15_workers_of_a_pool_keep_their_names() {
    run("pool");
}

fn run(mode: &str) {
    if is_root("o15") {
        for python in interpreter::all() {
            check(&python, mode);
        }
    }
}

fn check(python: &Interpreter, mode: &str) {
    let (truth, recording) = record_program(&[], python, "prefork.py", &["1", "--mode", mode]);
    let master = truth::pid(&truth["pid"]);
    let mut pids = BTreeSet::from([master]);

    let of_master = recording.of(master);
    assert!(of_master.iter().any(|s| s.has("master_warm")), "{python}: no master\n{}", recording.tail());
    for stack in of_master {
        let worker = stack.frames.iter().find(|f| f.name.starts_with("worker_"));
        assert!(worker.is_none(), "{python} {mode}: under the master: {worker:?}\n{}", recording.tail());
    }

    let workers = truth::array(&truth["workers"]);
    assert_eq!(workers.len(), if mode == "pool" { 4 } else { 5 }, "{python}: workers");
    for worker in workers {
        let number = truth::int(&worker["worker"]);
        let pid = truth::pid(&worker["pid"]);
        let own = format!("worker_{number}_burn");
        let what = format!("{python} {mode}: worker {number} ({pid})");
        // A pool may give one worker two tasks.
        let alone = workers.iter().filter(|w| truth::pid(&w["pid"]) == pid).count() == 1;
        assert!(pids.insert(pid) || !alone, "{what}: a pid twice");
        let stacks = recording.of(pid);
        let count = total(stacks.iter().copied());
        let named = total(stacks.iter().copied().filter(|s| !s.leaf().file.is_empty()));
        let burning = total(stacks.iter().copied().filter(|s| s.has(&own)));
        let expected = truth::float(&worker["functions"][&own]["seconds"]) * RATE;
        println!("{what}: {count} samples, {named} named, {burning} in {own} for {expected:.0}");
        assert!(
            named * 100 >= count * 95 && count > 0,
            "{what}: {named} of {count} named\n{}",
            recording.tail()
        );
        assert!(
            burning as f64 >= exporter_tests::fewest(expected),
            "{what}: {burning} samples in {own} for {expected:.0}\n{}",
            recording.tail()
        );
        for stack in stacks.iter().filter(|_| alone) {
            let other = stack
                .frames
                .iter()
                .find(|f| f.name == "master_warm" || f.name.starts_with("worker_") && f.name != own);
            assert!(other.is_none(), "{what} shows {other:?}\n{}", recording.tail());
        }
    }
}
