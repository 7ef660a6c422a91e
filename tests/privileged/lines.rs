//! O02: line numbers are exact, in odd and in huge code. Every frame of `lines.py` and of the file that it
//! generates must show a line of that very code object, and every chain of calls one that took place.
#![allow(
    clippy::panic,
    clippy::expect_used,
    reason = "a test stops at the first surprise and says what it saw"
)]

use std::collections::{BTreeMap, BTreeSet};

use exporter_tests::calls;
use exporter_tests::exporter::record_program;
use exporter_tests::folded::{Stack, total};
use exporter_tests::interpreter::{self, Interpreter};
use exporter_tests::{is_root, truth};

/// CPU seconds of each place; the huge function takes five times as long.
const SECONDS: &str = "0.2";
const RATE: f64 = 199.0;

#[test]
fn o02_line_numbers_are_exact() {
    if !is_root("o02") {
        return;
    }
    for python in interpreter::all() {
        check(&python);
    }
}

fn check(python: &Interpreter) {
    let (truth, recording) = record_program(&["--rate", "199"], python, "lines.py", &[SECONDS]);
    let table = truth::int(&truth["line_table_bytes"]);
    assert!(table > 65_536, "{python}: the huge function's line table has {table} bytes");
    let stacks = recording.of(truth::pid(&truth["pid"]));
    every_line_is_one_of_its_code(python, &truth, &stacks);
    calls::every_call_took_place(python, &truth, &recording, RATE);

    let file = truth::text(&truth["generated"]);
    for (name, floor) in [("far", 0.7), ("huge", 0.9)] {
        let seconds = truth::float(&truth["functions"][name]["seconds"]);
        let count = total(stacks.iter().copied().filter(|s| s.leaf().name == name && s.leaf().file == file));
        let lines: BTreeSet<_> =
            stacks.iter().filter(|s| s.leaf().name == name).map(|s| s.leaf().line).collect();
        let expected = seconds * RATE;
        println!("{python}: {name}: {count} samples for {expected:.0}, {} lines", lines.len());
        assert!(
            count as f64 >= expected * floor && lines.len() > 2,
            "{python}: {name} has {count} samples on {} lines for {expected:.0}\n{}",
            lines.len(),
            recording.tail()
        );
    }
}

fn every_line_is_one_of_its_code(python: &Interpreter, truth: &serde_json::Value, stacks: &[&Stack]) {
    let mut lines: BTreeMap<(String, String), BTreeSet<i64>> = BTreeMap::new();
    for code in truth::array(&truth["codes"]) {
        let key = (truth::text(&code["file"]), truth::text(&code["name"]));
        lines.entry(key).or_default().extend(truth::ints(&code["lines"]));
    }
    let files: BTreeSet<String> = lines.keys().map(|(file, _)| file.clone()).collect();
    let mut checked = 0_u64;
    for stack in stacks {
        for frame in stack.frames.iter().filter(|frame| files.contains(&frame.file)) {
            let plain = frame.name.rsplit('.').next().unwrap_or_default().to_owned();
            let known = lines.get(&(frame.file.clone(), plain));
            assert!(
                known.zip(frame.line).is_some_and(|(known, line)| known.contains(&line)),
                "{python}: {:?} is no line of that code; its lines are {:?}",
                frame.text,
                known.map(|known| known.iter().take(40).collect::<Vec<_>>())
            );
            checked += 1;
        }
    }
    println!("{python}: {checked} frames have a line of their code");
}
