//! Notices of exec, fork and exit, and of samples of unknown processes.

use aya_ebpf::EbpfContext;
use aya_ebpf::helpers::generated::bpf_ktime_get_ns;
use aya_ebpf::programs::RawTracePointContext;
use exporter_common::process_event::{EVENT_EXEC, EVENT_EXIT, EVENT_FORK, ProcessEvent};
use exporter_common::{counter, record_kind};

use crate::maps::{self, count};
use crate::read::{kernel_half, kernel_word};
use crate::task::{Task, identify};

/// Wake the reader at once: events are rare, and a new process should be known soon.
const WAKE_UP: u64 = 2;

#[inline(always)]
fn argument(context: &RawTracePointContext, index: usize) -> u64 {
    // SAFETY: the context of a raw tracepoint is an array of its arguments; the verifier checks the index.
    unsafe { *context.as_ptr().cast::<u64>().add(index) }
}

/// A process has executed a new program.
#[inline(always)]
pub fn exec(context: &RawTracePointContext) {
    if let Some(task) = identify(argument(context, 0)) {
        send(EVENT_EXEC, &task, 0);
    }
}

/// A task was forked; threads are left out.
#[inline(always)]
pub fn fork(context: &RawTracePointContext) {
    let child = argument(context, 1);
    if kernel_word(child + maps::TASK_GROUP_LEADER.load()) != child {
        return;
    }
    let Some(task) = identify(child) else { return };
    let parent = match identify(argument(context, 0)) {
        Some(parent) => parent.pid,
        None => 0,
    };
    send(EVENT_FORK, &task, parent);
}

/// A task ends; only the last of its process is told.
#[inline(always)]
pub fn exit(context: &RawTracePointContext) {
    let task = argument(context, 0);
    let signal = kernel_word(task + maps::TASK_SIGNAL.load());
    // do_exit() counts down before the tracepoint (kernel/exit.c).
    if kernel_half(signal + maps::SIGNAL_LIVE.load()) != 0 {
        return;
    }
    if let Some(task) = identify(task) {
        send(EVENT_EXIT, &task, 0);
    }
}

/// Sends one notice.
#[inline(always)]
pub fn send(event: u32, task: &Task, parent: u32) {
    let record = ProcessEvent {
        record_kind: record_kind::PROCESS,
        event,
        pid: task.pid,
        parent,
        // SAFETY: a helper without arguments.
        time_ns: unsafe { bpf_ktime_get_ns() },
        start_ns: task.start_ns,
    };
    // SAFETY: a wire type without padding, seen as bytes.
    let bytes = unsafe {
        core::slice::from_raw_parts((&raw const record).cast::<u8>(), core::mem::size_of::<ProcessEvent>())
    };
    if maps::EVENTS.output_untyped::<[u8]>(bytes, WAKE_UP).is_err() {
        count(counter::EVENTS_DROPPED);
    }
}
