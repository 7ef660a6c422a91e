//! Samples of a window, grouped by value.
//!
//! Grouping is done twice: first by the raw frame records (cheap, and a hot stack is named once a
//! window), then, when the window is taken, by the named frames themselves: two instructions of one
//! line are one stack.

use std::collections::HashMap;
use std::sync::Arc;

use exporter_common::sample::{GIL_HELD, GIL_RELEASED, PythonFrameRecord};

use crate::aggregate::frame::GilState;
use crate::aggregate::window::{AggregatedSample, ProcessProfile, ProfileWindow, SampleKey};
use crate::process::identity::ProcessIdentity;
use crate::process::registry::PythonTarget;
use crate::sampler::raw::RawSample;
use crate::unwind::merge;

/// What makes two raw samples of a process the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct RawKey {
    tid: u32,
    comm: [u8; 16],
    status: u8,
    gil: u8,
    frames: Box<[(u64, u64, i32)]>,
}

/// A process's part of the window.
#[derive(Debug)]
struct Part {
    process: Arc<ProcessIdentity>,
    samples: HashMap<RawKey, AggregatedSample>,
}

/// The window being filled.
#[derive(Debug)]
pub struct Aggregator {
    period_ns: u64,
    start_unix_ns: u64,
    parts: HashMap<u32, Part>,
    names: HashMap<[u8; 16], Arc<str>>,
}

/// Thread names kept between windows.
const MAX_THREAD_NAMES: usize = 4096;

impl Aggregator {
    /// An empty window that starts now.
    pub fn new(period_ns: u64, now_unix_ns: u64) -> Self {
        Self { period_ns, start_unix_ns: now_unix_ns, parts: HashMap::new(), names: HashMap::new() }
    }

    /// Adds a sample taken at `time_unix_ns`.
    pub fn add(&mut self, target: &mut PythonTarget, sample: &RawSample, time_unix_ns: u64) {
        let header = &sample.header;
        let frames = merge::frames(&sample.python);
        let key = RawKey {
            tid: header.tid,
            comm: header.comm,
            status: header.status,
            gil: header.gil,
            frames: frames.map(|r: &PythonFrameRecord| (r.code, r.fingerprint, r.instruction)).collect(),
        };
        let part = self
            .parts
            .entry(header.generation)
            .or_insert_with(|| Part { process: Arc::clone(&target.identity), samples: HashMap::new() });
        if let Some(known) = part.samples.get_mut(&key) {
            known.timestamps.push(time_unix_ns);
            return;
        }
        let (stack, completeness) =
            merge::merge(header.status, &sample.python, |record| target.symbols.frame(record));
        if self.names.len() >= MAX_THREAD_NAMES {
            self.names.clear();
        }
        let thread_name = self.names.entry(header.comm).or_insert_with(|| text(&header.comm));
        let named = SampleKey {
            stack: stack.into(),
            tid: header.tid,
            thread_name: Arc::clone(thread_name),
            gil: match header.gil {
                GIL_HELD => Some(GilState::Held),
                GIL_RELEASED => Some(GilState::Released),
                _ => None,
            },
            completeness,
        };
        part.samples.insert(key, AggregatedSample { key: named, timestamps: vec![time_unix_ns] });
    }

    /// Ends the window at `now_unix_ns` and begins the next one. Samples that were taken before the
    /// window began, but came late, move its start back.
    pub fn take(&mut self, now_unix_ns: u64) -> ProfileWindow {
        let processes: Vec<ProcessProfile> = self.parts.drain().map(|(_, part)| profile(part)).collect();
        let times = || processes.iter().flat_map(|p| &p.samples).flat_map(|s| &s.timestamps).copied();
        let start = times().min().map_or(self.start_unix_ns, |oldest| oldest.min(self.start_unix_ns));
        let end = times().max().map_or(now_unix_ns, |newest| now_unix_ns.max(newest + 1));
        self.start_unix_ns = now_unix_ns;
        ProfileWindow {
            start_unix_ns: start,
            end_unix_ns: end.max(start + 1),
            period_ns: self.period_ns,
            processes,
        }
    }
}

fn profile(part: Part) -> ProcessProfile {
    let mut grouped: HashMap<SampleKey, Vec<u64>> = HashMap::with_capacity(part.samples.len());
    for sample in part.samples.into_values() {
        grouped.entry(sample.key).or_default().extend(sample.timestamps);
    }
    let samples = grouped
        .into_iter()
        .map(|(key, mut timestamps)| {
            timestamps.sort_unstable();
            AggregatedSample { key, timestamps }
        })
        .collect();
    ProcessProfile { process: part.process, samples }
}

fn text(comm: &[u8; 16]) -> Arc<str> {
    let end = comm.iter().position(|byte| *byte == 0).unwrap_or(comm.len());
    String::from_utf8_lossy(&comm[..end]).into()
}
