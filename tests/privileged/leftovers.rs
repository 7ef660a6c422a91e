//! Nothing is left, and nothing upsets: no BPF program or map stays after the exporter's end, however it
//! ends, and targets that are killed at any moment of a recording leave it at exit code 0.
#![allow(
    clippy::panic,
    clippy::expect_used,
    reason = "a test stops at the first surprise and says what it saw"
)]

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use exporter_tests::bpf::Ids;
use exporter_tests::exporter::{Recorder, Target, until};
use exporter_tests::{interpreter, is_root, program};

#[test]
fn no_program_or_map_stays_after_the_end() {
    if !is_root("leftovers") {
        return;
    }
    let mut recorder = Recorder::start(&["--duration", "1s"].map(OsStr::new));
    let held = held_by(&mut recorder);
    let recording = recorder.finish();
    assert_eq!(recording.code, Some(0), "{}", recording.tail());
    gone(&held);
}

#[test]
fn no_program_or_map_stays_after_sigkill() {
    if !is_root("leftovers") {
        return;
    }
    let mut recorder = Recorder::start(&["--duration", "60s"].map(OsStr::new));
    let held = held_by(&mut recorder);
    let killed = Command::new("kill").args(["-KILL", &recorder.pid().to_string()]).status().expect("kill");
    assert!(killed.success());
    assert_eq!(recorder.finish().code, None, "ended by a signal");
    gone(&held);
}

fn held_by(recorder: &mut Recorder) -> Ids {
    recorder.recording();
    let held = Ids::of_process(recorder.pid());
    println!("held while recording: {held:?}");
    assert!(!held.programs.is_empty() && !held.maps.is_empty(), "{held:?}");
    assert_eq!(held.common(&Ids::of_kernel()), held, "what it holds, the kernel has");
    held
}

/// The kernel frees after a grace period, so this waits. Ids are not used again.
fn gone(held: &Ids) {
    let mut left = held.clone();
    until(&format!("no program or map of {held:?} is left"), || {
        left = held.common(&Ids::of_kernel());
        left == Ids::default()
    });
}

/// Recordings, and targets of each: 30 in all.
const RECORDINGS: u64 = 6;
const TARGETS: u64 = 5;
/// Some outlive the recording of one second.
const LATEST_MS: u64 = 1_300;
/// A target that used this much CPU time while it was recorded has samples: 30 are expected at 99 Hz.
const SURELY_SEEN: Duration = Duration::from_millis(300);

#[test]
fn targets_killed_at_any_moment_do_no_harm() {
    if !is_root("kill") {
        return;
    }
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock");
    let mut random = since_epoch.subsec_nanos() as u64 | 1;
    println!("seed {random}");
    let pythons = interpreter::all();
    for round in 0..RECORDINGS {
        let python = &pythons[usize::try_from(round).expect("small") % pythons.len()];
        let mut targets: Vec<(u64, Target)> = (0..TARGETS)
            .map(|_| {
                // xorshift64
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let command = &mut Command::new(&python.path);
                (
                    random % LATEST_MS,
                    Target::start(command.arg(program("deep.py")).args(["200", "600", "--gate"])),
                )
            })
            .collect();
        targets.sort_by_key(|(at, _)| *at);
        let mut arguments = vec!["--duration".to_owned(), "1s".to_owned()];
        for (_, target) in &mut targets {
            target.go();
            arguments.extend(["--pid".to_owned(), target.pid.to_string()]);
        }
        let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        let mut recorder = Recorder::start(&arguments);
        recorder.recording();
        let before: Vec<Duration> = targets.iter().map(|(_, target)| target.cpu_time()).collect();
        let mut surely_seen = BTreeSet::new();
        let mut now = 0;
        for ((at, target), before) in targets.iter_mut().zip(before) {
            // The moment itself is what is random: nothing is awaited here.
            std::thread::sleep(Duration::from_millis(*at - now));
            now = *at;
            if target.cpu_time() - before > SURELY_SEEN && *at < 1_000 {
                surely_seen.insert(target.pid);
            }
            target.kill();
        }
        let moments: Vec<u64> = targets.iter().map(|(at, _)| *at).collect();
        let recording = recorder.finish();
        assert_eq!(recording.code, Some(0), "{python}: killed after {moments:?} ms\n{}", recording.tail());
        let pids: BTreeSet<u32> = targets.iter().map(|(_, target)| target.pid).collect();
        let seen: BTreeSet<u32> = recording.stacks.iter().map(|stack| stack.pid).collect();
        assert!(seen.is_subset(&pids), "{python}: {seen:?} were not asked for");
        assert!(
            surely_seen.is_subset(&seen),
            "{python}: {surely_seen:?} worked long enough, {seen:?} were seen"
        );
        println!("{python}: killed after {moments:?} ms; {} of {TARGETS} have samples", seen.len());
    }
}
