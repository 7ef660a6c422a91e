//! Keeps the kernel side's process map in step with the processes there are.
//!
//! Enters: process events, answers of the [`Detector`], and a list of /proc now and then. Leaves: entries
//! of the process map. A process that cannot be read, or whose layout is not believed, is named in one log
//! line and counted; others go on.
//!
//! Nothing here reads a target: every look is a question to the detector's thread. A process has a
//! [`Watch`] as long as something may be learned of it; an answer counts only while the watch has the
//! ticket of its question, so what was seen of a program that exec has replaced never takes effect.

use std::collections::HashMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aya::maps::MapData;
use exporter_common::process_event::{EVENT_EXEC, EVENT_EXIT, EVENT_FORK, EVENT_UNKNOWN, ProcessEvent};
use exporter_common::python::{PythonProcess, STATE_PYTHON};

use crate::interpreter::python::{Detected, NotPython};
use crate::pipeline::agenda::{Agenda, Place, Reason};
use crate::pipeline::detector::{Answer, Detector, Outcome, Question};
use crate::process::growth::MappedCode;
use crate::process::identity::ProcessIdentity;
use crate::process::registry::{Entry, Registry};
use crate::process::stat;
use crate::sys::clock;
use crate::sys::poll;
use crate::sys::wire::MapValue;

/// The kernel side's process map.
pub type ProcessMap = aya::maps::HashMap<MapData, u32, MapValue<PythonProcess>>;

/// How long a layout may not be believed, since it may be that of an interpreter which is just starting;
/// and how long a starting process may go without an entry of the map, which keeps its samples quiet.
const GIVE_UP: Duration = Duration::from_secs(10);
/// How soon a question is asked again for which the queue had no room.
const POSTPONED: Duration = Duration::from_millis(20);
/// How long the first look at all processes may take before sampling begins without its end.
const SETTLE: Duration = Duration::from_secs(5);

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
    /// Interpreters beside the one that is walked in their process.
    pub further_runtimes: u64,
    /// Looks put off because the detector had too much to do.
    pub postponed: u64,
}

/// A process of which something may still be learned.
struct Watch {
    /// Of the question that is on its way, or the last one.
    ticket: u64,
    start_ticks: u64,
    selected: bool,
    /// Whether it is new, so that its look goes before those of old ones.
    is_new: bool,
    reason: Reason,
    /// When its program began, as far as is known.
    began: Instant,
    /// When it was first looked at.
    since: Instant,
    /// What it had mapped when it was no Python, or had one interpreter.
    seen: Option<MappedCode>,
    /// Interpreters that were told of and are not walked.
    others: usize,
    /// Its place in the plan; without one its question is on its way.
    place: Option<Place>,
}

/// Follows processes.
pub struct Tracker {
    /// What is known.
    pub registry: Registry,
    /// What became of processes.
    pub counters: TrackerCounters,
    map: ProcessMap,
    detector: Detector,
    /// Pids asked for; `None` follows all.
    wanted: Option<Vec<u32>>,
    watches: HashMap<u32, Watch>,
    agenda: Agenda,
    last_ticket: u64,
    /// Questions on their way.
    asked: usize,
    is_listing: bool,
    own: u32,
}

impl Tracker {
    /// Follows the processes asked for (and their children), or all.
    ///
    /// # Errors
    /// When the detector's thread cannot be started.
    pub fn new(map: ProcessMap, wanted: Option<Vec<u32>>) -> io::Result<Self> {
        Ok(Self {
            registry: Registry::default(),
            counters: TrackerCounters::default(),
            map,
            detector: Detector::spawn()?,
            wanted,
            watches: HashMap::new(),
            agenda: Agenda::new(Instant::now()),
            last_ticket: 0,
            asked: 0,
            is_listing: false,
            own: std::process::id(),
        })
    }

    /// Readable when there are answers to take.
    pub fn wake(&self) -> BorrowedFd<'_> {
        self.detector.wake()
    }

    /// Asks for one more process.
    pub fn want(&mut self, pid: u32) {
        if let Some(wanted) = &mut self.wanted {
            wanted.push(pid);
        }
        let Ok(stat) = stat::read(pid) else { return };
        self.end(pid);
        self.examine(pid, stat.start_ticks, true, Instant::now());
    }

    /// Asks which processes there are, for events that were missed.
    pub fn resync(&mut self) {
        self.registry.forget_ended();
        if self.is_listing {
            return;
        }
        let mut known = self.registry.pids();
        known.extend(self.watches.iter().map(|(pid, watch)| (*pid, watch.start_ticks)));
        self.is_listing = self.detector.ask(Question::List(known), false);
    }

    /// Looks at every process there is and waits until that is done, at most [`SETTLE`].
    pub fn settle(&mut self) {
        let end = Instant::now() + SETTLE;
        self.resync();
        while (self.is_listing || self.asked > 0) && Instant::now() < end {
            if let Err(error) = poll::readable(&[self.wake()], Duration::from_millis(50)) {
                tracing::warn!("waiting for the first look at processes: {error}; sampling begins before it");
                return;
            }
            self.take_answers();
        }
    }

    /// Takes a process event.
    pub fn handle(&mut self, event: &ProcessEvent) {
        let (pid, start_ticks) = (event.pid, event.start_ns / stat::TICK_NS);
        match event.event {
            EVENT_EXEC => {
                let selected = self.is_selected(pid);
                // Its samples must not be walked as those of the program before.
                self.end(pid);
                self.examine(pid, start_ticks, selected, Instant::now());
            }
            EVENT_FORK => self.forked(event, start_ticks),
            EVENT_EXIT => self.end(pid),
            EVENT_UNKNOWN => {
                let is_known = self.registry.entry(pid).is_some_and(|e| e.start_ticks == start_ticks)
                    || self.watches.get(&pid).is_some_and(|watch| watch.start_ticks == start_ticks);
                if !is_known {
                    let selected = self.is_wanted(pid);
                    self.end(pid);
                    self.examine(pid, start_ticks, selected, Instant::now());
                }
            }
            other => tracing::debug!(event = other, "unknown process event"),
        }
    }

    /// When the next look is due that is worth to wake up for.
    pub fn next_look(&self) -> Option<Instant> {
        self.agenda.next()
    }

    /// Asks again of processes whose look is due.
    pub fn look_again(&mut self) {
        let now = Instant::now();
        while let Some(pid) = self.agenda.due(now) {
            if let Some(watch) = self.watches.get_mut(&pid) {
                watch.place = None;
                self.ask(pid);
            }
        }
    }

    /// Puts what the detector has found into effect.
    pub fn take_answers(&mut self) {
        self.detector.rest();
        while let Some(answer) = self.detector.answer() {
            match answer {
                Answer::List { gone, new } => self.listed(&gone, &new),
                Answer::Process { ticket, pid, outcome } => {
                    self.asked = self.asked.saturating_sub(1);
                    if self.watches.get(&pid).is_some_and(|watch| watch.ticket == ticket) {
                        self.answered(pid, outcome);
                    }
                }
            }
        }
    }

    fn is_wanted(&self, pid: u32) -> bool {
        self.wanted.as_ref().is_none_or(|wanted| wanted.contains(&pid))
    }

    fn is_selected(&self, pid: u32) -> bool {
        self.registry.entry(pid).is_some_and(|entry| entry.selected)
            || self.watches.get(&pid).is_some_and(|watch| watch.selected)
            || self.is_wanted(pid)
    }

    fn listed(&mut self, gone: &[(u32, u64)], new: &[(u32, u64)]) {
        self.is_listing = false;
        for (pid, start_ticks) in gone {
            let entry = self.registry.entry(*pid).map(|entry| entry.start_ticks);
            let watch = self.watches.get(pid).map(|watch| watch.start_ticks);
            if entry.or(watch) == Some(*start_ticks) {
                self.end(*pid);
            }
        }
        let (now, since_boot) = (Instant::now(), clock::since_boot().unwrap_or_default());
        for (pid, start_ticks) in new {
            if self.registry.entry(*pid).is_none() && !self.watches.contains_key(pid) {
                let start = Duration::from_nanos(start_ticks.saturating_mul(stat::TICK_NS));
                let began = now.checked_sub(since_boot.saturating_sub(start)).unwrap_or(now);
                self.examine(*pid, *start_ticks, self.is_wanted(*pid), began);
            }
        }
    }

    /// A child runs what its parent ran, until it executes something else.
    fn forked(&mut self, event: &ProcessEvent, start_ticks: u64) {
        let selected = self.is_selected(event.parent) || self.is_wanted(event.pid);
        let Some(parent) = self.registry.entry(event.parent).copied() else {
            // The parent's interpreter is starting, or the parent is not known.
            if self.watches.contains_key(&event.parent) {
                self.end(event.pid);
                self.examine(event.pid, start_ticks, selected, Instant::now());
            }
            return;
        };
        self.end(event.pid);
        let (seen, others) =
            self.watches.get(&event.parent).map_or((None, 0), |watch| (watch.seen, watch.others));
        let reason = if parent.layout.state == STATE_PYTHON { Reason::Python } else { Reason::Quiet };
        if reason == Reason::Python {
            let generation = self.registry.next_generation();
            let Some(identity) = self.registry.target(parent.generation).map(|target| &target.identity)
            else {
                return;
            };
            let identity = ProcessIdentity {
                pid: event.pid,
                generation,
                start_unix_ns: stat::start_unix_ns(start_ticks),
                ..ProcessIdentity::clone(identity)
            };
            let layout = PythonProcess { generation, start_ticks, ..parent.layout };
            self.python(event.pid, Entry { start_ticks, generation, selected, layout }, identity);
        } else {
            self.other(event.pid, start_ticks, selected);
        }
        if selected && seen.is_some() {
            let watch =
                Watch { seen, reason, others, ..self.new_watch(start_ticks, selected, Instant::now()) };
            self.watches.insert(event.pid, watch);
            self.plan(event.pid);
        }
    }

    /// Looks at a process that is not known.
    fn examine(&mut self, pid: u32, start_ticks: u64, selected: bool, began: Instant) {
        if pid == self.own || !selected {
            self.other(pid, start_ticks, selected);
            return;
        }
        let watch = self.new_watch(start_ticks, selected, began);
        self.watches.insert(pid, watch);
        self.ask(pid);
    }

    fn new_watch(&self, start_ticks: u64, selected: bool, began: Instant) -> Watch {
        let now = Instant::now();
        Watch {
            ticket: 0,
            start_ticks,
            selected,
            is_new: now.duration_since(began) < GIVE_UP,
            reason: Reason::Starting,
            began,
            since: now,
            seen: None,
            others: 0,
            place: None,
        }
    }

    /// Sends the question of a watch that has no place in the plan.
    fn ask(&mut self, pid: u32) {
        let walked = self.registry.entry(pid).map(|entry| entry.layout);
        let walked = walked.filter(|it| it.state == STATE_PYTHON).map(|it| it.interpreters_head);
        let Some(watch) = self.watches.get_mut(&pid) else { return };
        self.last_ticket += 1;
        watch.ticket = self.last_ticket;
        let is_starting = watch.reason == Reason::Starting;
        let question = Question::Process {
            ticket: watch.ticket,
            pid,
            start_ticks: watch.start_ticks,
            seen: watch.seen.filter(|_| !is_starting),
            walked,
        };
        if self.detector.ask(question, is_starting && watch.is_new) {
            self.asked += 1;
        } else {
            self.counters.postponed += 1;
            watch.place = Some(self.agenda.plan_at(pid, Instant::now() + POSTPONED, is_starting));
        }
    }

    /// Plans the next look at a watch.
    fn plan(&mut self, pid: u32) {
        if let Some(watch) = self.watches.get_mut(&pid) {
            let now = Instant::now();
            let age = now.duration_since(watch.began);
            watch.place = Some(self.agenda.plan(pid, watch.reason, age, now));
        }
    }

    fn answered(&mut self, pid: u32, outcome: Outcome) {
        let Some(watch) = self.watches.get_mut(&pid) else { return };
        let (start_ticks, selected, is_python) =
            (watch.start_ticks, watch.selected, watch.reason == Reason::Python);
        let is_late = watch.since.elapsed() > GIVE_UP;
        match outcome {
            Outcome::Same(seen) => watch.seen = Some(seen),
            Outcome::Python(found, identity, seen) => {
                watch.seen = Some(seen);
                watch.reason = Reason::Python;
                self.found(pid, &found, *identity);
            }
            // It goes on as it was known.
            Outcome::Not(_, Some(seen)) if is_python => watch.seen = Some(seen),
            Outcome::Not(NotPython::NotYet, seen) => {
                watch.reason = Reason::Starting;
                watch.seen = seen;
                if is_late && self.registry.entry(pid).is_none() {
                    self.other(pid, start_ticks, selected);
                }
            }
            Outcome::Not(NotPython::LayoutNotBelieved(_), Some(_)) if !is_late => {
                watch.reason = Reason::Starting;
            }
            Outcome::Not(NotPython::NoRuntime, Some(seen)) => {
                watch.seen = Some(seen);
                watch.reason = Reason::Quiet;
                if self.registry.entry(pid).is_none() {
                    self.other(pid, start_ticks, selected);
                }
            }
            Outcome::Not(error, _) => {
                self.watches.remove(&pid);
                self.refused(pid, start_ticks, selected, &error);
            }
        }
        self.plan(pid);
    }

    /// Says why a process is left out, unless it has ended or has nothing to do with Python.
    fn refused(&mut self, pid: u32, start_ticks: u64, selected: bool, error: &NotPython) {
        match error {
            NotPython::NotYet | NotPython::NoRuntime => {}
            NotPython::Unreadable(_) if stat::is_gone(pid, start_ticks) => {
                self.end(pid);
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
        if self.registry.entry(pid).is_none() {
            self.other(pid, start_ticks, selected);
        }
    }

    /// The detector found an interpreter, or looked again at a process that has one.
    fn found(&mut self, pid: u32, found: &Detected, identity: ProcessIdentity) {
        let Some(watch) = self.watches.get_mut(&pid) else { return };
        if found.others.len() > watch.others {
            self.counters.further_runtimes += (found.others.len() - watch.others) as u64;
            tracing::warn!(
                pid,
                "the process holds further Python interpreters, whose frames are missing: CPython {} is walked, \
                 not {}; run them in processes of their own to see both",
                found.version,
                found.others.join(", ")
            );
        }
        watch.others = found.others.len();
        let (start_ticks, selected) = (watch.start_ticks, watch.selected);
        let is_walked = self.registry.entry(pid).is_some_and(|entry| {
            entry.layout.state == STATE_PYTHON
                && entry.layout.interpreters_head == found.process.interpreters_head
        });
        if is_walked {
            return;
        }
        let generation = self.registry.next_generation();
        let layout = PythonProcess { generation, ..found.process };
        tracing::debug!(pid, generation, "{found}");
        self.python(
            pid,
            Entry { start_ticks, generation, selected, layout },
            ProcessIdentity { generation, ..identity },
        );
    }

    fn python(&mut self, pid: u32, entry: Entry, identity: ProcessIdentity) {
        if !self.registry.has_room() {
            self.counters.no_room += 1;
            return;
        }
        self.counters.found += 1;
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
        if let Some(place) = self.watches.remove(&pid).and_then(|watch| watch.place) {
            self.agenda.drop_place(pid, place);
        }
        if self.registry.remove(pid)
            && let Err(error) = self.map.remove(&pid)
        {
            tracing::debug!(pid, "process map: {error}");
        }
    }
}
