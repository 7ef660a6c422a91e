//! Processes the exporter knows, by pid and by generation.
//!
//! A generation is one program in one process: exec and pid reuse make a new one. A sample carries
//! the generation that the walk used, so it finds its process also after that has ended; ended ones
//! are kept for [`KEEP_ENDED`] and then forgotten.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use exporter_common::limits::MAX_PROCESSES;
use exporter_common::python::{PythonProcess, STATE_NOT_PYTHON};

use crate::process::identity::ProcessIdentity;
use crate::symbolize::python::PythonSymbols;

/// How long an ended process is kept: its last samples may still be in the ring buffer, which is
/// drained many times in this while.
pub const KEEP_ENDED: Duration = Duration::from_secs(5);

/// A process whose stacks are walked.
#[derive(Debug)]
pub struct PythonTarget {
    /// Who it is.
    pub identity: Arc<ProcessIdentity>,
    /// Names of its code.
    pub symbols: PythonSymbols,
    ended: Option<Instant>,
}

/// What is known of a pid now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Start, clock ticks.
    pub start_ticks: u64,
    /// Generation.
    pub generation: u32,
    /// Whether it is followed because it, or one of its ancestors, was asked for.
    pub selected: bool,
    /// What the kernel side has of it.
    pub layout: PythonProcess,
}

/// All processes.
#[derive(Debug, Default)]
pub struct Registry {
    by_pid: HashMap<u32, Entry>,
    targets: HashMap<u32, PythonTarget>,
    last_generation: u32,
    /// Frames without a name in processes that are forgotten.
    unknown_frames_before: u64,
}

impl Registry {
    /// A generation that was never given.
    pub fn next_generation(&mut self) -> u32 {
        self.last_generation = self.last_generation.wrapping_add(1).max(1);
        self.last_generation
    }

    /// What is known of a pid.
    pub fn entry(&self, pid: u32) -> Option<&Entry> {
        self.by_pid.get(&pid)
    }

    /// Whether there is room for one more process.
    pub fn has_room(&self) -> bool {
        self.by_pid.len() < MAX_PROCESSES as usize
    }

    /// A process without Python: its samples are left out by the kernel side.
    pub fn insert_other(
        &mut self,
        pid: u32,
        start_ticks: u64,
        generation: u32,
        selected: bool,
    ) -> PythonProcess {
        let layout =
            PythonProcess { state: STATE_NOT_PYTHON, generation, start_ticks, ..PythonProcess::default() };
        self.insert(pid, Entry { start_ticks, generation, selected, layout });
        layout
    }

    /// A Python process.
    pub fn insert_python(&mut self, pid: u32, entry: Entry, identity: Arc<ProcessIdentity>) {
        let symbols = PythonSymbols::new(pid, entry.layout);
        self.targets.insert(entry.generation, PythonTarget { identity, symbols, ended: None });
        self.insert(pid, entry);
    }

    fn insert(&mut self, pid: u32, entry: Entry) {
        if let Some(old) = self.by_pid.insert(pid, entry) {
            self.end_generation(old.generation);
        }
    }

    /// The process of a sample or code record.
    pub fn target(&mut self, generation: u32) -> Option<&mut PythonTarget> {
        self.targets.get_mut(&generation)
    }

    /// The process has ended, or runs another program now; true if it was known.
    pub fn remove(&mut self, pid: u32) -> bool {
        match self.by_pid.remove(&pid) {
            Some(entry) => {
                self.end_generation(entry.generation);
                true
            }
            None => false,
        }
    }

    fn end_generation(&mut self, generation: u32) {
        if let Some(target) = self.targets.get_mut(&generation) {
            target.ended = Some(Instant::now());
        }
    }

    /// Forgets what has ended long enough ago.
    pub fn forget_ended(&mut self) {
        let mut unknown = 0;
        self.targets.retain(|_, target| {
            let keep = target.ended.is_none_or(|at| at.elapsed() < KEEP_ENDED);
            unknown += if keep { 0 } else { target.symbols.unknown_frames };
            keep
        });
        self.unknown_frames_before += unknown;
    }

    /// Frames that stayed without a name, so far.
    pub fn unknown_frames(&self) -> u64 {
        self.unknown_frames_before + self.targets.values().map(|t| t.symbols.unknown_frames).sum::<u64>()
    }

    /// Pids known, with their start.
    pub fn pids(&self) -> Vec<(u32, u64)> {
        self.by_pid.iter().map(|(pid, entry)| (*pid, entry.start_ticks)).collect()
    }

    /// Python processes that are followed, ended ones left out.
    pub fn python_count(&self) -> usize {
        self.targets.values().filter(|target| target.ended.is_none()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reused_pid_ends_the_generation_before() {
        let mut registry = Registry::default();
        let first = registry.next_generation();
        registry.insert_other(7, 100, first, true);
        let second = registry.next_generation();
        registry.insert_other(7, 200, second, false);
        assert_ne!(first, second);
        assert_eq!(registry.entry(7).map(|e| (e.start_ticks, e.generation)), Some((200, second)));
        assert!(registry.remove(7));
        assert!(!registry.remove(7));
    }
}
