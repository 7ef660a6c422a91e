//! O01: names tell functions apart. `names.py` burns in functions that plain names cannot tell apart; the
//! profile must show each under its qualified name and first line, with its share of the CPU time.
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

/// CPU seconds of each function.
const SECONDS: &str = "0.5";

#[test]
fn o01_names_tell_functions_apart() {
    if !is_root("o01") {
        return;
    }
    for python in interpreter::all() {
        check(&python);
    }
}

fn check(python: &Interpreter) {
    let (truth, recording) = record_program(&["--granularity", "function"], python, "names.py", &[SECONDS]);
    let file = truth::text(&truth["file"]);
    let stacks = recording.of(truth::pid(&truth["pid"]));
    let burning: f64 = truth::functions(&truth).map(|(_, f)| truth::float(&f["seconds"])).sum();
    let in_file: Vec<_> =
        stacks.iter().copied().filter(|s| s.frames.iter().any(|f| f.file == file)).collect();
    for stack in &in_file {
        let root = &stack.frames[0];
        assert!(root.name == "<module>" && root.file == file, "{python}: root is {:?}", root.text);
    }
    let native = total(stacks.iter().copied().filter(|s| s.frames.len() == 1 && s.leaf().file.is_empty()));
    let all = total(stacks.iter().copied());
    assert!(native * 20 <= all, "{python}: {native} of {all} samples without a name\n{}", recording.tail());

    let n = total(in_file.iter().copied());
    let mut seen = BTreeSet::new();
    for (key, function) in truth::functions(&truth) {
        let name = truth::text(&function["qualname"]);
        let first = truth::int(&function["first_line"]);
        let is_it =
            |f: &exporter_tests::folded::Frame| f.name == name && f.file == file && f.line == Some(first);
        assert!(seen.insert((name.clone(), first)), "{python}: two truths are {name}:{first}");
        // A module has all the others above it, so its own work is what has it as leaf.
        let count = total(
            in_file
                .iter()
                .copied()
                .filter(|s| if key == "<module>" { is_it(s.leaf()) } else { s.frames.iter().any(is_it) }),
        );
        let expected = truth::float(&function["seconds"]) / burning;
        let share = count as f64 / n as f64;
        let tolerance = (3.0 * (expected * (1.0 - expected) / n as f64).sqrt()).max(0.02);
        println!("{python}: {key}: {count} of {n}, {:.1} % for {:.1} %", share * 100.0, expected * 100.0);
        assert!(
            (share - expected).abs() <= tolerance,
            "{python}: {name}:{first} has {share:.3} of the samples, {expected:.3} of the time (± {tolerance:.3})\n{}",
            recording.tail()
        );
    }
    let comprehensions =
        stacks.iter().filter(|s| s.frames.iter().any(|f| f.name.ends_with("<listcomp>"))).count();
    assert_eq!(
        comprehensions > 0,
        python.minor < 12,
        "{python}: a list comprehension has a frame of its own before 3.12 only\n{}",
        recording.tail()
    );
}
