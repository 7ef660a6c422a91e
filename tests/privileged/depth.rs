//! O04: deep stacks. Up to 1,000 Python frames come whole, `<module>` at the root; deeper ones say so by
//! a `[truncated]` root, and lose no sample.
#![allow(
    clippy::panic,
    clippy::expect_used,
    reason = "a test stops at the first surprise and says what it saw"
)]

use std::ffi::OsStr;

use exporter_tests::exporter::{Recording, record_command};
use exporter_tests::folded::{Stack, total};
use exporter_tests::interpreter::{self, Interpreter};
use exporter_tests::temp::TempDir;
use exporter_tests::truth::TrueFrame;
use exporter_tests::{is_root, program, truth};

const RATE: f64 = 99.0;
/// Each stack runs in a process of its own, all in one recording: (depth, mode).
const STACKS: [(usize, &str); 8] = [
    (50, "python"),
    (127, "python"),
    (128, "python"),
    (129, "python"),
    (500, "python"),
    (1000, "python"),
    // Two more than the levels that alternate: <module> and main.
    (102, "alternate"),
    (3000, "python"),
];
/// Frames that a stack must show before it may be cut.
const WHOLE: usize = 1000;

#[test]
fn o04_deep_stacks_are_whole_or_say_that_they_are_not() {
    if !is_root("o04") {
        return;
    }
    for python in interpreter::all() {
        check(&python);
    }
}

fn check(python: &Interpreter) {
    let dir = TempDir::new("depth");
    let runs: Vec<String> = STACKS
        .iter()
        .map(|(depth, mode)| format!("\"$1\" \"$2\" {depth} 0.6 --mode {mode} --truth \"$3/{mode}-{depth}\""))
        .collect();
    let script = runs.join(" && ");
    let program = program("deep.py");
    let recording = record_command(
        &[],
        &[
            OsStr::new("sh"),
            "-c".as_ref(),
            script.as_ref(),
            "sh".as_ref(),
            python.path.as_os_str(),
            program.as_os_str(),
            dir.path().as_os_str(),
        ],
    );
    let marked = total(recording.stacks.iter().filter(|stack| stack.frames[0].text == "[truncated]"));
    let said = format!("{marked} samples have stacks too deep to take whole");
    assert!(
        marked > 0 && recording.stderr.contains(&said),
        "{python}: not {said:?} in\n{}",
        recording.stderr
    );
    for (depth, mode) in STACKS {
        let truth = truth::read(&dir.join(&format!("{mode}-{depth}")));
        let what = format!("{python}: {depth} {mode}");
        let leaf = &truth["functions"]["leaf"];
        let chain = truth::chains(leaf).into_iter().next().expect("a chain");
        assert_eq!(chain.len(), depth, "{what}: the target's own depth");
        let stacks = recording.of(truth::pid(&truth["pid"]));
        let stacks: Vec<&Stack> = stacks.into_iter().filter(|stack| stack.leaf().name == "leaf").collect();
        let expected = truth::float(&leaf["seconds"]) * RATE;
        let count = total(stacks.iter().copied());
        println!("{what}: {count} samples for {expected:.0}");
        assert!(
            count as f64 >= exporter_tests::fewest(expected),
            "{what}: {count} samples for {expected:.0}\n{}",
            short(&recording)
        );
        for stack in stacks {
            if depth <= WHOLE { whole(&what, &chain, stack) } else { cut(&what, &chain, stack) }
        }
    }
}

/// The very chain; only the leaf's line moves on.
fn whole(what: &str, chain: &[TrueFrame], stack: &Stack) {
    assert_eq!(stack.frames.len(), chain.len(), "{what}: frames, from {:?}", stack.frames[0].text);
    assert_eq!(stack.frames[0].name, "<module>", "{what}: the root");
    same_calls(what, chain, stack);
}

/// `[truncated]`, then the leaf-most frames of the chain without a gap.
fn cut(what: &str, chain: &[TrueFrame], stack: &Stack) {
    assert_eq!(stack.frames[0].text, "[truncated]", "{what}: the root of {} frames", stack.frames.len());
    let kept = stack.frames.len() - 1;
    assert!(kept >= WHOLE && kept < chain.len(), "{what}: {kept} frames kept");
    assert!(!stack.has("<module>"), "{what}: the root end is both cut and there");
    let rest = Stack { frames: stack.frames[1..].to_vec(), ..stack.clone() };
    same_calls(what, &chain[chain.len() - kept..], &rest);
}

fn same_calls(what: &str, chain: &[TrueFrame], stack: &Stack) {
    for (at, (is, frame)) in chain.iter().zip(&stack.frames).take(chain.len() - 1).enumerate() {
        assert!(is.is(frame), "{what}: frame {at} from the root is {:?}, not {is:?}", frame.text);
    }
}

fn short(recording: &Recording) -> String {
    format!("{}\n{} stacks", recording.stderr, recording.stacks.len())
}
