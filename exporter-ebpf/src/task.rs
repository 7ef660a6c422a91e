//! Which process a task is, as the exporter's own pid namespace numbers it.

use crate::maps;
use crate::read::{kernel_half, kernel_word};

/// `MAX_PID_NS_LEVEL` of the kernel (include/linux/pid_namespace.h): deeper cannot be.
const MAX_PID_NAMESPACE_LEVEL: u32 = 32;
/// `sizeof(struct upid)`: `int nr`, padding, `struct pid_namespace *ns`.
const UPID_BYTES: u64 = 16;
const UPID_NAMESPACE: u64 = 8;

/// A task that the exporter may see.
pub struct Task {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Start of the process, nanoseconds of `CLOCK_BOOTTIME`.
    pub start_ns: u64,
}

/// Identity of the task, `None` when it is outside the exporter's pid namespace.
#[inline(always)]
pub fn identify(task: u64) -> Option<Task> {
    let leader = kernel_word(task + maps::TASK_GROUP_LEADER.load());
    let own = kernel_word(task + maps::TASK_THREAD_PID.load());
    let level = level_of(own)?;
    let tid = number(own, level);
    let process = kernel_word(leader + maps::TASK_THREAD_PID.load());
    // The leader of a thread group lives in the same namespaces as its threads.
    let pid = if process == own { tid } else { number(process, level) };
    if pid == 0 {
        return None;
    }
    Some(Task { pid, tid, start_ns: kernel_word(leader + maps::TASK_START.load()) })
}

/// Level at which this `struct pid` is numbered in the exporter's namespace.
#[inline(always)]
fn level_of(pid: u64) -> Option<u32> {
    let deepest = kernel_half(pid + maps::PID_LEVEL.load());
    for level in 0..=MAX_PID_NAMESPACE_LEVEL {
        if level > deepest {
            return None;
        }
        let upid = pid + maps::PID_NUMBERS.load() + UPID_BYTES * level as u64;
        let namespace = kernel_word(upid + UPID_NAMESPACE);
        if kernel_half(namespace + maps::NAMESPACE_INODE.load()) as u64 == maps::PID_NAMESPACE.load() {
            return Some(level);
        }
    }
    None
}

#[inline(always)]
fn number(pid: u64, level: u32) -> u32 {
    kernel_half(pid + maps::PID_NUMBERS.load() + UPID_BYTES * level as u64)
}
