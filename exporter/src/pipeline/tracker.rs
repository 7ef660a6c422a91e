//! Keeps the kernel side's process map in step with the processes there are.
//!
//! Enters: process events, and a look at /proc now and then. Leaves: entries of the process map.
//! A process that cannot be read, or whose layout is not believed, is named in one log line and
//! counted; others go on.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aya::maps::MapData;
use exporter_common::process_event::{EVENT_EXEC, EVENT_EXIT, EVENT_FORK, EVENT_UNKNOWN, ProcessEvent};
use exporter_common::python::{PythonProcess, STATE_PYTHON};

use crate::interpreter::python::{Cache, NotPython, detect};
use crate::process::identity::ProcessIdentity;
use crate::process::registry::{Entry, Registry};
use crate::process::stat;
use crate::sys::wire::MapValue;

/// The kernel side's process map.
pub type ProcessMap = aya::maps::HashMap<MapData, u32, MapValue<PythonProcess>>;

/// How soon a process whose runtime is not ready is looked at again: soon at first, for a new
/// interpreter runs its first frame some 10 ms after exec, and then ever more seldom.
const FIRST_RETRY: Duration = Duration::from_millis(1);
/// The longest wait between two looks.
const LAST_RETRY: Duration = Duration::from_millis(100);
/// How long a process may take until its runtime is ready; then it counts as no Python.
const GIVE_UP: Duration = Duration::from_secs(10);

/// Counts of what became of processes.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrackerCounters {
    /// Python processes found.
    pub found: u64,
    /// Processes whose interpreter is not supported, or whose layout was not believed.
    pub refused: u64,
    /// Processes that could not be read.
    pub unreadable: u64,
    /// Processes left out because the map is full.
    pub no_room: u64,
}

struct Retry {
    at: Instant,
    wait: Duration,
    since: Instant,
    start_ticks: u64,
    selected: bool,
}

/// Follows processes.
pub struct Tracker {
    /// What is known.
    pub registry: Registry,
    /// What became of processes.
    pub counters: TrackerCounters,
    map: ProcessMap,
    cache: Cache,
    /// Pids asked for; `None` follows all.
    wanted: Option<Vec<u32>>,
    retries: HashMap<u32, Retry>,
    own: u32,
}

impl Tracker {
    /// Follows the processes asked for (and their children), or all.
    pub fn new(map: ProcessMap, wanted: Option<Vec<u32>>) -> Self {
        Self {
            registry: Registry::default(),
            counters: TrackerCounters::default(),
            map,
            cache: Cache::new(),
            wanted,
            retries: HashMap::new(),
            own: std::process::id(),
        }
    }

    /// Asks for one more process.
    pub fn want(&mut self, pid: u32) {
        if let Some(wanted) = &mut self.wanted {
            wanted.push(pid);
        }
        self.registry.remove(pid);
        self.look(pid);
    }

    /// Looks at every process there is, and lets go of those that are gone.
    pub fn resync(&mut self) {
        for (pid, start_ticks) in self.registry.pids() {
            if stat::is_gone(pid, start_ticks) {
                self.end(pid);
            }
        }
        let Ok(entries) = fs::read_dir("/proc") else { return };
        let pids: Vec<u32> = entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter(|pid| self.registry.entry(*pid).is_none())
            .collect();
        for pid in pids {
            self.look(pid);
        }
        self.registry.forget_ended();
    }

    /// Takes a process event.
    pub fn handle(&mut self, event: &ProcessEvent) {
        let start_ticks = event.start_ns / stat::TICK_NS;
        match event.event {
            EVENT_EXEC => {
                let selected = self.registry.entry(event.pid).is_some_and(|entry| entry.selected);
                self.registry.remove(event.pid);
                self.retries.remove(&event.pid);
                self.examine(event.pid, start_ticks, selected || self.is_wanted(event.pid));
            }
            EVENT_FORK => self.forked(event, start_ticks),
            EVENT_EXIT => self.end(event.pid),
            EVENT_UNKNOWN => {
                let known = self.registry.entry(event.pid).is_some_and(|e| e.start_ticks == start_ticks);
                if !known && !self.retries.contains_key(&event.pid) {
                    self.examine(event.pid, start_ticks, self.is_wanted(event.pid));
                }
            }
            other => tracing::debug!(event = other, "unknown process event"),
        }
    }

    /// When the next look is due.
    pub fn next_look(&self) -> Option<Instant> {
        self.retries.values().map(|retry| retry.at).min()
    }

    /// Looks again at processes whose runtime was not ready.
    pub fn look_again(&mut self) {
        let now = Instant::now();
        let due: Vec<u32> =
            self.retries.iter().filter(|(_, retry)| retry.at <= now).map(|(pid, _)| *pid).collect();
        for pid in due {
            if let Some(retry) = self.retries.get(&pid) {
                self.examine(pid, retry.start_ticks, retry.selected);
            }
        }
    }

    fn is_wanted(&self, pid: u32) -> bool {
        self.wanted.as_ref().is_none_or(|wanted| wanted.contains(&pid))
    }

    fn look(&mut self, pid: u32) {
        if let Ok(stat) = stat::read(pid) {
            self.examine(pid, stat.start_ticks, self.is_wanted(pid));
        }
    }

    /// A child runs what its parent ran, until it executes something else.
    fn forked(&mut self, event: &ProcessEvent, start_ticks: u64) {
        let Some(parent) = self.registry.entry(event.parent).copied() else {
            return;
        };
        let selected = parent.selected || self.is_wanted(event.pid);
        if parent.layout.state != STATE_PYTHON {
            self.other(event.pid, start_ticks, selected);
            return;
        }
        let generation = self.registry.next_generation();
        let layout = PythonProcess { generation, start_ticks, ..parent.layout };
        let version = self
            .registry
            .target(parent.generation)
            .and_then(|target| target.identity.python_version.clone())
            .unwrap_or_default();
        self.python(event.pid, Entry { start_ticks, generation, selected, layout }, &version);
    }

    fn examine(&mut self, pid: u32, start_ticks: u64, selected: bool) {
        if pid == self.own || !selected {
            self.retries.remove(&pid);
            self.other(pid, start_ticks, selected);
            return;
        }
        let generation = self.registry.next_generation();
        let error = match detect(pid, generation, start_ticks, &mut self.cache) {
            Ok(found) => {
                self.retries.remove(&pid);
                let entry = Entry { start_ticks, generation, selected, layout: found.process };
                self.python(pid, entry, &found.version);
                return;
            }
            Err(error) => error,
        };
        match &error {
            // A layout that is not believed may be that of an interpreter which is just starting.
            NotPython::NotYet | NotPython::LayoutNotBelieved(_) if self.retry(pid, start_ticks, selected) => {
                return;
            }
            NotPython::NotYet | NotPython::NoRuntime => {}
            NotPython::Unreadable(_) if stat::is_gone(pid, start_ticks) => {
                self.retries.remove(&pid);
                return;
            }
            NotPython::Unreadable(_) => {
                self.counters.unreadable += 1;
                // Among all processes there may be some that nobody may read, and few are Python.
                if self.wanted.is_some() {
                    tracing::warn!(pid, "process left out: {error}");
                } else {
                    tracing::info!(pid, "process left out: {error}");
                }
            }
            NotPython::Unsupported(_) | NotPython::LayoutNotBelieved(_) => {
                self.counters.refused += 1;
                tracing::warn!(pid, "process left out: {error}");
            }
        }
        self.retries.remove(&pid);
        self.other(pid, start_ticks, selected);
    }

    /// Plans another look; false when the process had its time.
    fn retry(&mut self, pid: u32, start_ticks: u64, selected: bool) -> bool {
        let now = Instant::now();
        let first = Retry { at: now, wait: FIRST_RETRY / 2, since: now, start_ticks, selected };
        let retry = self.retries.entry(pid).or_insert(first);
        if now.duration_since(retry.since) > GIVE_UP {
            return false;
        }
        retry.wait = (retry.wait * 2).min(LAST_RETRY);
        retry.at = now + retry.wait;
        true
    }

    fn python(&mut self, pid: u32, entry: Entry, version: &str) {
        if !self.registry.has_room() {
            self.counters.no_room += 1;
            return;
        }
        let Ok(identity) = ProcessIdentity::read(pid, entry.generation, Some(version)) else {
            // Gone already.
            return;
        };
        self.counters.found += 1;
        tracing::debug!(pid, version, generation = entry.generation, "python process");
        self.registry.insert_python(pid, entry, Arc::new(identity));
        self.put(pid, entry.layout);
    }

    fn other(&mut self, pid: u32, start_ticks: u64, selected: bool) {
        if !self.registry.has_room() {
            self.counters.no_room += 1;
            return;
        }
        let generation = self.registry.next_generation();
        let layout = self.registry.insert_other(pid, start_ticks, generation, selected);
        self.put(pid, layout);
    }

    fn put(&mut self, pid: u32, layout: PythonProcess) {
        if let Err(error) = self.map.insert(&pid, &MapValue(layout), 0) {
            self.counters.no_room += 1;
            tracing::debug!(pid, "process map: {error}");
        }
    }

    fn end(&mut self, pid: u32) {
        self.retries.remove(&pid);
        if self.registry.remove(pid)
            && let Err(error) = self.map.remove(&pid)
        {
            tracing::debug!(pid, "process map: {error}");
        }
    }
}
