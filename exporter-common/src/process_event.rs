//! Notices of processes that begin, change or end.

use crate::{Wire, layout};

/// The process has executed a new program.
pub const EVENT_EXEC: u32 = 1;
/// The process was forked; `parent` is who forked it.
pub const EVENT_FORK: u32 = 2;
/// The last thread of the process has ended.
pub const EVENT_EXIT: u32 = 3;
/// A sample hit a process that the exporter does not know.
pub const EVENT_UNKNOWN: u32 = 4;

/// One notice.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessEvent {
    /// [`crate::record_kind::PROCESS`].
    pub record_kind: u32,
    /// [`EVENT_EXEC`] and the like.
    pub event: u32,
    /// Process id in the exporter's pid namespace.
    pub pid: u32,
    /// Parent process id (fork only), in the same namespace, 0 when it is outside.
    pub parent: u32,
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub time_ns: u64,
    /// Start of the process, nanoseconds of `CLOCK_BOOTTIME`.
    pub start_ns: u64,
}
layout!(ProcessEvent, size 32, record_kind @ 0, event @ 4, pid @ 8, parent @ 12, time_ns @ 16, start_ns @ 24);
// SAFETY: repr(C), integers only, no padding (layout checked above).
unsafe impl Wire for ProcessEvent {}
