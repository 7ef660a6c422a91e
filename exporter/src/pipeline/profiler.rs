//! One profiling session: programs in the kernel, the processes they sample, and the window being
//! filled. Whoever owns it calls [`Profiler::poll`] over and over and takes windows when it wants.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use aya::maps::{MapData, PerCpuArray, RingBuf};

use crate::aggregate::aggregator::Aggregator;
use crate::aggregate::window::ProfileWindow;
use crate::pipeline::tracker::Tracker;
use crate::sampler::counters;
use crate::sampler::decode::decode;
use crate::sampler::loader::{LoadError, Programs, Sampler};
use crate::sampler::raw::Record;
use crate::sys::{clock, poll};

/// How often the ring buffer is drained. Names are copied by the kernel side, so waiting costs no
/// names; at 99 Hz and 64 CPUs this is 320 samples of 8 MiB.
const DRAIN_INTERVAL: Duration = Duration::from_millis(50);
/// How often the processes are compared with /proc, for events that were missed.
const RESYNC_INTERVAL: Duration = Duration::from_secs(10);

/// What to sample.
#[derive(Clone, Debug)]
pub struct Options {
    /// Samples a second of CPU time.
    pub rate: u32,
    /// Processes asked for, with their children; empty follows all.
    pub pids: Vec<u32>,
    /// Whether only processes asked for are followed, even if none is (yet).
    pub only_wanted: bool,
}

/// Counts of the user side.
#[derive(Clone, Copy, Debug, Default)]
pub struct PipelineCounters {
    /// Samples taken from the ring buffer.
    pub samples: u64,
    /// Samples that went into a window.
    pub aggregated: u64,
    /// Records that could not be decoded.
    pub undecodable: u64,
    /// Samples and code records of processes that are forgotten.
    pub without_process: u64,
}

/// A running session. Dropping it takes everything out of the kernel.
pub struct Profiler {
    /// Counts.
    pub counters: PipelineCounters,
    tracker: Tracker,
    records: RingBuf<MapData>,
    events: RingBuf<MapData>,
    kernel_counters: PerCpuArray<MapData, u64>,
    aggregator: Aggregator,
    unix_offset_ns: u64,
    last_drain: Instant,
    last_resync: Instant,
    programs: Option<Programs>,
}

impl Profiler {
    /// Loads, looks at the processes there are, and starts sampling.
    ///
    /// # Errors
    /// [`LoadError`]
    pub fn start(options: &Options) -> Result<Self, LoadError> {
        let period_ns = 1_000_000_000 / u64::from(options.rate.max(1));
        let Sampler { mut programs, processes, records, events, counters } = Sampler::load(period_ns)?;
        let wanted = (options.only_wanted || !options.pids.is_empty()).then(|| options.pids.clone());
        let unix_offset_ns = clock::monotonic_to_unix_ns().unwrap_or_default();
        let tracker = Tracker::new(processes, wanted).map_err(|error| LoadError::Other {
            action: "start the thread that detects interpreters",
            reason: format!("{error}; raise the limits of descriptors and threads (ulimit -n, -u)"),
        })?;
        let mut profiler = Self {
            counters: PipelineCounters::default(),
            tracker,
            records,
            events,
            kernel_counters: counters,
            aggregator: Aggregator::new(period_ns, clock::nanoseconds(clock::since_epoch())),
            unix_offset_ns,
            last_drain: Instant::now(),
            last_resync: Instant::now(),
            programs: None,
        };
        profiler.tracker.settle();
        programs.attach()?;
        profiler.programs = Some(programs);
        Ok(profiler)
    }

    /// Asks for one more process (and its children).
    pub fn want(&mut self, pid: u32) {
        self.tracker.want(pid);
    }

    /// Python processes followed now.
    pub fn python_count(&self) -> usize {
        self.tracker.registry.python_count()
    }

    /// Waits up to `timeout` for something to do, and does it.
    pub fn poll(&mut self, timeout: Duration) {
        let mut wait = timeout.min(DRAIN_INTERVAL.saturating_sub(self.last_drain.elapsed()));
        if let Some(at) = self.tracker.next_look() {
            wait = wait.min(at.saturating_duration_since(Instant::now()));
        }
        // poll(2) counts in whole milliseconds; rounding up keeps the loop from spinning.
        let wait = wait.max(Duration::from_millis(1));
        if let Err(error) = poll::readable(&[self.events.as_fd(), self.tracker.wake()], wait) {
            tracing::warn!("waiting for process events: {error}; falling back to a timer");
            std::thread::sleep(wait);
        }
        if self.last_drain.elapsed() >= DRAIN_INTERVAL {
            self.drain_records();
        }
        // Events first: an answer about a program that has been replaced must find nobody.
        self.drain_events();
        self.tracker.take_answers();
        self.tracker.look_again();
        if self.last_resync.elapsed() >= RESYNC_INTERVAL {
            self.tracker.resync();
            self.last_resync = Instant::now();
        }
    }

    /// Takes what has been sampled up to now.
    pub fn take_window(&mut self) -> ProfileWindow {
        self.drain_records();
        self.unix_offset_ns = clock::monotonic_to_unix_ns().unwrap_or(self.unix_offset_ns);
        self.aggregator.take(clock::nanoseconds(clock::since_epoch()))
    }

    /// Pauses sampling, or goes on with it. Processes are followed meanwhile, so names stay right.
    ///
    /// # Errors
    /// [`LoadError`]
    pub fn sample(&mut self, on: bool) -> Result<(), LoadError> {
        match &mut self.programs {
            Some(programs) if on => programs.attach(),
            Some(programs) => programs.detach(),
            None => Ok(()),
        }
    }

    /// Stops sampling; what is in the ring buffer can still be taken.
    pub fn stop(&mut self) {
        self.programs = None;
    }

    /// Every counter by name: the kernel side's, then those of processes and of this stage.
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        let mut counts = counters::read(&self.kernel_counters).unwrap_or_default();
        let tracked = self.tracker.counters;
        counts.extend([
            ("processes_found", tracked.found),
            ("processes_refused", tracked.refused),
            ("processes_unreadable", tracked.unreadable),
            ("processes_no_room", tracked.no_room),
            ("processes_further_runtimes", tracked.further_runtimes),
            ("process_looks_postponed", tracked.postponed),
            ("samples_aggregated", self.counters.aggregated),
            ("records_undecodable", self.counters.undecodable),
            ("records_without_process", self.counters.without_process),
            ("frames_unknown", self.tracker.registry.unknown_frames()),
        ]);
        counts
    }

    fn drain_records(&mut self) {
        self.last_drain = Instant::now();
        while let Some(bytes) = self.records.next() {
            let record = match decode(&bytes) {
                Ok(record) => record,
                Err(error) => {
                    self.counters.undecodable += 1;
                    tracing::debug!("record left out: {error}");
                    continue;
                }
            };
            drop(bytes);
            match record {
                Record::Sample(sample) => {
                    self.counters.samples += 1;
                    let time = sample.header.time_ns.saturating_add(self.unix_offset_ns);
                    match self.tracker.registry.target(sample.header.generation) {
                        Some(target) => {
                            self.aggregator.add(target, &sample, time);
                            self.counters.aggregated += 1;
                        }
                        None => self.counters.without_process += 1,
                    }
                }
                Record::Code(code) => match self.tracker.registry.target(code.header.generation) {
                    Some(target) => target.symbols.learn(&code),
                    None => self.counters.without_process += 1,
                },
                Record::Process(event) => self.tracker.handle(&event),
            }
        }
    }

    fn drain_events(&mut self) {
        while let Some(bytes) = self.events.next() {
            let event = decode(&bytes);
            drop(bytes);
            match event {
                Ok(Record::Process(event)) => self.tracker.handle(&event),
                Ok(Record::Sample(_) | Record::Code(_)) | Err(_) => self.counters.undecodable += 1,
            }
        }
    }
}
