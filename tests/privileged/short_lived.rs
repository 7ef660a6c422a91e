//! O16: processes that live under half a second. 60 interpreters, four at a time, each with 150 to 400 ms
//! of CPU time in a function that no other process has, must show their own name and no other.
#![allow(
    clippy::panic,
    clippy::expect_used,
    reason = "a test stops at the first surprise and says what it saw"
)]

use std::collections::BTreeMap;

use exporter_tests::exporter::record_program;
use exporter_tests::folded::total;
use exporter_tests::interpreter::{self, Interpreter};
use exporter_tests::{is_root, truth};

/// Processes with fewer samples are not judged.
const JUDGED: u64 = 5;

#[test]
fn o16_short_lived_processes_show_their_names() {
    if !is_root("o16") {
        return;
    }
    for python in interpreter::all() {
        check(&python);
    }
}

fn check(python: &Interpreter) {
    let (truth, recording) =
        record_program(&[], python, "short_lived.py", &["--count", "60", "--parallel", "4"]);
    let mut names: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    let mut seconds = 0.0;
    for process in truth::array(&truth["processes"]) {
        let name = format!("short_{}", truth::text(&process["name"]));
        seconds += truth::float(&process["functions"][&name]["seconds"]);
        // A pid may be used again.
        names.entry(truth::pid(&process["pid"])).or_default().push(name);
    }
    let (mut judged, mut named, mut samples, mut own_samples) = (0, 0, 0, 0);
    let mut silent = Vec::new();
    for (pid, own) in &names {
        let stacks = recording.of(*pid);
        for frame in stacks.iter().flat_map(|stack| &stack.frames) {
            let foreign = frame.name.starts_with("short_") && !own.contains(&frame.name);
            assert!(!foreign, "{python}: process {pid} is {own:?} and shows {:?}", frame.text);
        }
        let own_count = total(stacks.iter().copied().filter(|s| own.iter().any(|name| s.has(name))));
        let count = total(stacks.iter().copied());
        samples += count;
        own_samples += own_count;
        if count >= JUDGED {
            judged += 1;
            if own_count > 0 {
                named += 1;
            } else {
                silent.push((*pid, own.clone(), count));
            }
        }
    }
    for stack in recording.stacks.iter().filter(|stack| !names.contains_key(&stack.pid)) {
        let foreign = stack.frames.iter().find(|frame| frame.name.starts_with("short_"));
        assert!(foreign.is_none(), "{python}: process {} shows {foreign:?}", stack.pid);
    }
    println!(
        "{python}: {named} of {judged} processes named ({} run); {samples} samples, {own_samples} in their \
         function for {:.0}",
        names.len(),
        seconds * 99.0
    );
    assert!(
        judged * 2 >= names.len(),
        "{python}: {judged} of {} were seen\n{}",
        names.len(),
        recording.tail()
    );
    assert!(
        named * 100 >= judged * 80,
        "{python}: {named} of {judged} named, not {silent:?}\n{}",
        recording.tail()
    );
}
