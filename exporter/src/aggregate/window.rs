//! What one export interval held: per process, each distinct sample with the times it was taken.

use std::sync::Arc;

use crate::aggregate::frame::{Completeness, Frame, GilState};
use crate::process::identity::ProcessIdentity;

/// Everything two samples must share to be one entry: compared by value, frame by frame.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SampleKey {
    /// Frames, leaf first. Never empty.
    pub stack: Arc<[Arc<Frame>]>,
    /// Thread id in the exporter's pid namespace.
    pub tid: u32,
    /// Name of the thread.
    pub thread_name: Arc<str>,
    /// Only for processes with a Python runtime.
    pub gil: Option<GilState>,
    /// How whole the stack is.
    pub completeness: Completeness,
}

/// One distinct sample of a window.
#[derive(Clone, Debug)]
pub struct AggregatedSample {
    /// What it is.
    pub key: SampleKey,
    /// When it was taken: nanoseconds since the Unix epoch, each inside the window.
    pub timestamps: Vec<u64>,
}

/// The samples of one process (one generation of a pid) in a window.
#[derive(Clone, Debug)]
pub struct ProcessProfile {
    /// Whose samples these are.
    pub process: Arc<ProcessIdentity>,
    /// Distinct samples.
    pub samples: Vec<AggregatedSample>,
}

/// One export interval.
#[derive(Clone, Debug, Default)]
pub struct ProfileWindow {
    /// Start, nanoseconds since the Unix epoch, included.
    pub start_unix_ns: u64,
    /// End, excluded.
    pub end_unix_ns: u64,
    /// Nanoseconds of CPU time one sample stands for.
    pub period_ns: u64,
    /// Processes that had samples.
    pub processes: Vec<ProcessProfile>,
}

impl ProfileWindow {
    /// Samples in it, repeated ones counted.
    pub fn sample_count(&self) -> u64 {
        self.processes.iter().flat_map(|p| &p.samples).map(|s| s.timestamps.len() as u64).sum()
    }
}
