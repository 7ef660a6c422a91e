//! An interpreter that comes late: loaded by dlopen into a program that ran without one, long after its start;
//! and two at a time in one process.
#![allow(
    clippy::panic,
    clippy::expect_used,
    reason = "a test stops at the first surprise and says what it saw"
)]

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use exporter_tests::calls::every_call_took_place;
use exporter_tests::compile::c_program;
use exporter_tests::exporter::{Recording, record_truth};
use exporter_tests::interpreter::{self, Interpreter};
use exporter_tests::temp::TempDir;
use exporter_tests::{is_root, program, truth};

const SECONDS: &str = "0.1";
const RATE: f64 = 499.0;

/// `PREFIX/lib/libpython….so.1.0` of a pyenv tree.
fn library(python: &Interpreter) -> PathBuf {
    let flag = if python.minor < 8 { "m" } else { "" };
    prefix(python).join(format!("lib/libpython3.{}{flag}.so.1.0", python.minor))
}

fn prefix(python: &Interpreter) -> &Path {
    python.path.parent().and_then(Path::parent).expect("a prefix")
}

/// Interpreters of pyenv, which have a library.
fn loadable() -> Vec<Interpreter> {
    interpreter::every().into_iter().filter(|it| it.root.is_none() && library(it).is_file()).collect()
}

/// Records `late.c` with these interpreters; the truths, in their order, and the recording.
fn load(pythons: &[&Interpreter], before: &str, after: &str) -> Option<(Vec<serde_json::Value>, Recording)> {
    let dir = TempDir::new("late");
    let arguments = ["-ldl", "-lpthread"].map(OsString::from);
    if !c_program("late", &dir.join("late"), &arguments) {
        return None;
    }
    let mut command: Vec<OsString> = vec![dir.join("late").into(), before.into(), after.into()];
    for python in pythons {
        command.extend([library(python).into(), prefix(python).into()]);
    }
    command.extend(["--".into(), program("calls.py").into(), SECONDS.into(), "--truth".into()]);
    command.push(dir.join("truth").into());
    let (first, recording) = record_truth(&["--rate", "499"], &command, &dir.join("truth0"));
    let mut truths = vec![first];
    truths.extend((1..pythons.len()).map(|number| truth::read(&dir.join(&format!("truth{number}")))));
    Some((truths, recording))
}

/// Loaded half a second after the start; the scripts begin one second later, when a look has been due.
#[test]
fn loaded_by_dlopen() {
    if !is_root("loaded_by_dlopen") {
        return;
    }
    for python in loadable() {
        let Some((truths, recording)) = load(&[&python], "0.5", "1.0") else { return };
        every_call_took_place(&python, &truths[0], &recording, RATE);
    }
}

/// 12 s after the start a look is due every 3 s (a quarter of the age).
#[test]
fn loaded_later_than_ten_seconds() {
    if !is_root("loaded_later_than_ten_seconds") {
        return;
    }
    let Some(python) = loadable().into_iter().find(|python| python.minor == 12) else {
        eprintln!("skipped: there is no 3.12 with a library");
        return;
    };
    let Some((truths, recording)) = load(&[&python], "12", "4.5") else { return };
    every_call_took_place(&python, &truths[0], &recording, RATE);
}

/// One is walked, the other one is said in one line and counted.
#[test]
fn two_interpreters_in_one_process() {
    if !is_root("two_interpreters_in_one_process") {
        return;
    }
    let pythons = loadable();
    let [first, second] = [11, 12].map(|minor| pythons.iter().find(|python| python.minor == minor));
    let (Some(first), Some(second)) = (first, second) else {
        eprintln!("skipped: there is no 3.11 or no 3.12 with a library");
        return;
    };
    let Some((truths, recording)) = load(&[first, second], "0.5", "4.5") else { return };
    let lines: Vec<&str> =
        recording.stderr.lines().filter(|line| line.contains("holds further Python interpreters")).collect();
    let [line] = lines.as_slice() else { panic!("{lines:?}\n{}", recording.tail()) };
    let walks = |python: &Interpreter| line.contains(&format!("CPython {} is walked", python.version));
    let names = |python: &Interpreter| {
        line.contains(&format!(
            "not {} ({})",
            python.version,
            library(python).canonicalize().expect("it").display()
        ))
    };
    match (walks(first), walks(second)) {
        (true, false) => {
            assert!(names(second), "{line}");
            every_call_took_place(first, &truths[0], &recording, RATE);
        }
        (false, true) => {
            assert!(names(first), "{line}");
            every_call_took_place(second, &truths[1], &recording, RATE);
        }
        both => panic!("walked: {both:?}: {line}"),
    }
}
