//! O18 and O19: a target in a mount namespace of its own, where a path leads to another Python than
//! outside; and an exporter in a pid namespace with its target, where pids are those seen inside.
#![allow(
    clippy::panic,
    clippy::expect_used,
    reason = "a test stops at the first surprise and says what it saw"
)]

use std::ffi::OsStr;
use std::fs;
use std::process::Command;

use exporter_tests::exporter::{Recorder, Recording, Target, binary};
use exporter_tests::folded::total;
use exporter_tests::interpreter::{self, Interpreter};
use exporter_tests::temp::TempDir;
use exporter_tests::{is_root, program};

/// More than any recording here takes; targets are killed.
const LONG: &str = "600";

#[test]
fn o18_the_file_outside_the_mount_namespace_is_never_used() {
    if !is_root("o18") {
        return;
    }
    let trees = interpreter::trees();
    if trees.len() < 2 {
        eprintln!("skipped: o18 needs two interpreters that are whole trees, and there are {trees:?}");
        return;
    }
    for (at, inside) in trees.iter().enumerate() {
        mount_namespace(inside, &trees[(at + 1) % trees.len()]);
    }
}

/// `inside` is what the target runs; at the same paths outside lie the files of `outside`.
fn mount_namespace(inside: &Interpreter, outside: &Interpreter) {
    let dir = TempDir::new("mount");
    let (tree, other) = (prefix(inside), prefix(outside));
    let place = dir.join("python");
    for folder in ["bin", "lib"] {
        fs::create_dir_all(place.join(folder)).expect("a folder");
    }
    let (minor, other_minor) = (inside.minor, outside.minor);
    let copy = |from: String, to: String| {
        fs::copy(other.join(&from), place.join(&to)).unwrap_or_else(|error| panic!("{from}: {error}"));
    };
    copy(format!("bin/python3.{other_minor}"), format!("bin/python3.{minor}"));
    let library = format!("lib/libpython3.{other_minor}.so.1.0");
    if other.join(&library).is_file() {
        copy(library, format!("lib/libpython3.{minor}.so.1.0"));
    }
    let mut target = Target::start(
        Command::new("unshare")
            .args(["-m", "sh", "-c"])
            .arg("mount --bind \"$1\" \"$2\" && LD_LIBRARY_PATH=\"$2/lib\" exec \"$2/bin/python3.$3\" \"$4\" 20 \"$5\" --gate")
            .arg("sh")
            .args([&tree, &place])
            .arg(minor.to_string())
            .arg(program("deep.py"))
            .arg(LONG),
    );
    let exe = fs::read_link(format!("/proc/{}/exe", target.pid)).expect("the target's exe");
    assert_eq!(exe, place.join(format!("bin/python3.{minor}")), "what the target runs");
    let pid = target.pid.to_string();
    target.go();
    let recording = Recorder::start(&["--pid", &pid, "--duration", "1500ms"].map(OsStr::new)).finish();
    assert_eq!(recording.code, Some(0), "{}", recording.tail());
    let what = format!("{inside} inside, {} outside", outside.version);
    whole_stacks(&what, &recording, target.pid, 20);
}

fn prefix(python: &Interpreter) -> std::path::PathBuf {
    python.path.parent().and_then(|bin| bin.parent()).expect("a prefix").to_owned()
}

/// At least half of the samples that a busy core gives in the recording's 1.5 s or more, each stack whole.
fn whole_stacks(what: &str, recording: &Recording, pid: u32, depth: usize) {
    let file = program("deep.py").display().to_string();
    let stacks = recording.of(pid);
    let leaf = |s: &&exporter_tests::folded::Stack| s.leaf().name == "leaf" && s.leaf().file == file;
    let (all, named) = (total(stacks.iter().copied()), total(stacks.iter().copied().filter(leaf)));
    println!("{what}: {named} of {all} samples in leaf");
    assert!(named >= 30, "{what}: {named} of {all} samples in leaf\n{}", recording.tail());
    for stack in stacks.into_iter().filter(leaf) {
        let names: Vec<&str> = stack.frames.iter().map(|frame| frame.name.as_str()).collect();
        let mut expected = vec!["recurse"; depth];
        expected[..2].copy_from_slice(&["<module>", "main"]);
        expected[depth - 1] = "leaf";
        assert_eq!(names, expected, "{what}");
        let lines =
            stack.frames.iter().all(|frame| frame.file == file && frame.line.is_some_and(|line| line > 0));
        assert!(lines, "{what}: {stack:?}");
    }
}

#[test]
fn o19_pids_are_those_of_the_exporters_own_namespace() {
    if !is_root("o19") {
        return;
    }
    for python in interpreter::all() {
        pid_namespace(&python);
    }
}

fn pid_namespace(python: &Interpreter) {
    let dir = TempDir::new("pidns");
    let outside_program = dir.join("outside.py");
    fs::copy(program("deep.py"), &outside_program).expect("a copy");
    fs::copy(program("_case.py"), dir.join("_case.py")).expect("a copy");
    let mut outside =
        Target::start(Command::new(&python.path).arg(&outside_program).args(["12", LONG, "--gate"]));
    outside.go();

    // The shell is pid 1 of the namespace: when it ends, the kernel ends the target too. The target is
    // ready before the exporter starts, and the exporter is told nothing about it.
    let script = "mkfifo \"$3/ready\"; \"$1\" \"$2\" 20 \"$4\" >\"$3/ready\" & read -r said <\"$3/ready\"; \
                  echo \"$said\"; shift 4; \"$@\"";
    let mut command = Command::new("unshare");
    command
        .args(["-pf", "--mount-proc", "--kill-child", "sh", "-c", script, "sh"])
        .arg(&python.path)
        .arg(program("deep.py"))
        .arg(dir.path())
        .arg(LONG)
        .arg(binary());
    let recording = Recorder::start_by(&mut command, &["--duration", "1500ms"].map(OsStr::new)).finish();
    assert_eq!(recording.code, Some(0), "{python}\n{}", recording.tail());
    let said = recording.stdout.lines().next().and_then(|line| line.strip_prefix("ready "));
    let pid: u32 =
        said.and_then(|pid| pid.parse().ok()).unwrap_or_else(|| panic!("no pid: {}", recording.tail()));
    assert!(pid < 100, "{python}: the target sees itself as {pid}, so it is in no new namespace");
    whole_stacks(&format!("{python}: pid {pid} inside"), &recording, pid, 20);
    for stack in &recording.stacks {
        assert!(stack.pid == pid, "{python}: process {} is not {pid}\n{}", stack.pid, recording.tail());
        assert!(stack.tid == pid, "{python}: thread {} of process {pid}", stack.tid);
        let foreign = stack.frames.iter().any(|frame| frame.file.ends_with("outside.py"));
        assert!(!foreign, "{python}: a process outside is shown\n{}", recording.tail());
    }
}
