//! All maps and globals; each with why it is so large and what happens when it is full.

use aya_ebpf::Global;
use aya_ebpf::btf_maps::{Array, HashMap, PerCpuArray, RingBuf};
use aya_ebpf::macros::btf_map;
use exporter_common::counter;
use exporter_common::limits::{
    CODE_SCRATCH_BYTES, EVENT_RING_BYTES, KNOWN_CODE_SLOTS, MAX_PROCESSES, RING_BYTES, SCRATCH_BYTES,
};
use exporter_common::python::PythonProcess;
use exporter_ebpf::walk::Walk;

/// Processes by pid in the exporter's namespace. Userspace inserts and removes; full: the process
/// stays unknown and is counted there.
#[btf_map]
pub static PROCESSES: HashMap<u32, PythonProcess, { MAX_PROCESSES as usize }> = HashMap::new();

/// Samples and code records. Full: the record is dropped and counted.
#[btf_map]
pub static RECORDS: RingBuf<u64, RING_BYTES> = RingBuf::new();

/// Process events. Full: the event is dropped and counted; userspace resyncs with /proc.
#[btf_map]
pub static EVENTS: RingBuf<u64, EVENT_RING_BYTES> = RingBuf::new();

/// Scratch of a sample record for each CPU (userspace sets the size to the number of CPUs).
#[btf_map]
pub static SCRATCH: Array<[u8; SCRATCH_BYTES], 1> = Array::new();

/// Scratch of a code record.
#[btf_map]
pub static CODE_SCRATCH: PerCpuArray<[u64; CODE_SCRATCH_BYTES / 8], 1> = PerCpuArray::new();

/// State of a walk.
#[btf_map]
pub static WALK: PerCpuArray<Walk, 1> = PerCpuArray::new();

/// Tags of the code objects that were sent; a lost tag only makes a code object be sent again.
#[btf_map]
pub static KNOWN_CODE: Array<u64, KNOWN_CODE_SLOTS> = Array::new();

/// Counters, see `exporter_common::counter`.
#[btf_map]
pub static COUNTERS: PerCpuArray<u64, { counter::COUNT as usize }> = PerCpuArray::new();

/// Nanoseconds between samples; set at load.
#[unsafe(no_mangle)]
pub static PERIOD_NS: Global<u64> = Global::new(0);
/// Inode of the exporter's pid namespace.
#[unsafe(no_mangle)]
pub static PID_NAMESPACE: Global<u64> = Global::new(0);
/// `task_struct` thread pointer.
#[unsafe(no_mangle)]
pub static TASK_THREAD_POINTER: Global<u64> = Global::new(0);
/// `task_struct.group_leader`.
#[unsafe(no_mangle)]
pub static TASK_GROUP_LEADER: Global<u64> = Global::new(0);
/// `task_struct.thread_pid`.
#[unsafe(no_mangle)]
pub static TASK_THREAD_PID: Global<u64> = Global::new(0);
/// `task_struct.start_boottime`.
#[unsafe(no_mangle)]
pub static TASK_START: Global<u64> = Global::new(0);
/// `task_struct.signal`.
#[unsafe(no_mangle)]
pub static TASK_SIGNAL: Global<u64> = Global::new(0);
/// `signal_struct.live`.
#[unsafe(no_mangle)]
pub static SIGNAL_LIVE: Global<u64> = Global::new(0);
/// `pid.level`.
#[unsafe(no_mangle)]
pub static PID_LEVEL: Global<u64> = Global::new(0);
/// `pid.numbers`.
#[unsafe(no_mangle)]
pub static PID_NUMBERS: Global<u64> = Global::new(0);
/// `pid_namespace.ns.inum`.
#[unsafe(no_mangle)]
pub static NAMESPACE_INODE: Global<u64> = Global::new(0);

/// Adds one to a counter.
#[inline(always)]
pub fn count(index: u32) {
    if let Some(value) = COUNTERS.get_ptr_mut(index) {
        // SAFETY: a slot of this CPU; a perf interrupt that cuts in loses at most one count.
        unsafe { *value += 1 }
    }
}
