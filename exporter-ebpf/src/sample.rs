//! One sample: filter → thread state → Python walk → ring buffer.
//!
//! The frame step is a global function: the verifier looks at it once, by itself, and the loop
//! around it costs a few instructions a turn on every kernel from 5.10 on.

use core::ffi::c_void;

use aya_ebpf::helpers::generated::{
    bpf_get_current_comm, bpf_get_current_pid_tgid, bpf_get_current_task, bpf_get_smp_processor_id,
    bpf_ktime_get_ns,
};
use aya_ebpf::programs::PerfEventContext;
use exporter_common::limits::{
    CODE_SCRATCH_BYTES, KNOWN_CODE_SLOTS, MAX_NEW_CODE_PER_SAMPLE, MAX_PYTHON_RECORDS,
};
use exporter_common::process_event::EVENT_UNKNOWN;
use exporter_common::python::{PythonProcess, STATE_PYTHON};
use exporter_common::sample::{PythonFrameRecord, SAMPLE_ON_CPU, SampleHeader};
use exporter_common::{counter, record_kind, walk_status};
use exporter_ebpf::code::CodeSink;
use exporter_ebpf::memory::mask;
use exporter_ebpf::thread_state;

use crate::maps::{self, count};
use crate::read::{User, kernel_word};
use crate::{arch, process_event, task};

/// Userspace drains on a timer; a wake-up for each sample would cost more than the sample.
const NO_WAKE_UP: u64 = 1;
/// Clock ticks a second are 100 for userspace on every architecture (`USER_HZ`).
const NS_PER_TICK: u64 = 10_000_000;

/// Takes one sample of the running task.
#[inline(always)]
pub fn on_cpu(context: &PerfEventContext) {
    // SAFETY: helpers without arguments.
    let (ids, current) = unsafe { (bpf_get_current_pid_tgid(), bpf_get_current_task()) };
    if ids == 0 {
        // The idle task.
        return;
    }
    let Some(task) = task::identify(current) else {
        count(counter::OUTSIDE_NAMESPACE);
        return;
    };
    // SAFETY: the value is only replaced as a whole by userspace; a torn read ends in a failed check.
    let Some(process) = (unsafe { maps::PROCESSES.get(&task.pid) }) else {
        count(counter::WALK_STATUS + walk_status::NO_PROCESS as u32);
        process_event::send(EVENT_UNKNOWN, &task, 0);
        return;
    };
    if process.start_ticks != 0 && process.start_ticks != task.start_ns / NS_PER_TICK {
        // The pid was given to another process; userspace learns of it here if it missed the exit.
        count(counter::WALK_STATUS + walk_status::NO_PROCESS as u32);
        process_event::send(EVENT_UNKNOWN, &task, 0);
        return;
    }
    if process.state != STATE_PYTHON {
        return;
    }
    count(counter::SAMPLES);
    let Some(walk) = maps::WALK.get_ptr_mut(0) else { return };
    // SAFETY: this CPU's own slot; a perf event does not interrupt another one on the same CPU.
    let walk = unsafe { &mut *walk };
    copy_process(process, &mut walk.process);
    walk.pid = task.pid;
    walk.thread_pointer = kernel_word(current + maps::TASK_THREAD_POINTER.load());
    walk.thread_state = 0;
    walk.frame = 0;
    walk.cframe = 0;
    walk.records = 0;
    walk.budget = MAX_NEW_CODE_PER_SAMPLE;
    walk.sequence += 1;
    walk.status = walk_status::NO_THREAD_STATE as u32;

    // SAFETY: a helper without arguments.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    let Some(scratch) = maps::SCRATCH.get_ptr_mut(cpu) else {
        count(counter::NO_SCRATCH);
        return;
    };
    let scratch = scratch.cast::<u8>();
    // SAFETY: the scratch begins with room for a header, and map values are aligned to 8.
    let header = unsafe { &mut *scratch.cast::<SampleHeader>() };
    header.gil = 0;
    find_thread_state();
    if walk.thread_state != 0 {
        header.gil = thread_state::gil(&walk.process, walk.thread_state, &User);
        if walk.begin(&User) {
            for _ in 0..MAX_PYTHON_RECORDS {
                if step_python_frame() == 0 {
                    break;
                }
            }
        }
    }
    count(counter::WALK_STATUS + (walk.status & 7));

    header.record_kind = record_kind::SAMPLE;
    header.pid = task.pid;
    header.tid = task.tid;
    header.generation = walk.process.generation;
    // SAFETY: a helper without arguments.
    header.time_ns = unsafe { bpf_ktime_get_ns() };
    header.start_ns = task.start_ns;
    header.weight = maps::PERIOD_NS.load();
    header.thread_state = walk.thread_state;
    // SAFETY: 16 writable bytes of the scratch.
    unsafe { bpf_get_current_comm(header.comm.as_mut_ptr().cast::<c_void>(), 16) };
    header.status = walk.status as u8;
    header.sample_kind = SAMPLE_ON_CPU;
    header.kernel_mode = arch::in_kernel(context) as u8;
    header.native_frames = 0;
    header.kernel_frames = 0;
    header.pad = [0; 6];
    let records = mask::<2047>(walk.records as usize);
    header.python_records = records as u16;
    let length = core::mem::size_of::<SampleHeader>() + records * core::mem::size_of::<PythonFrameRecord>();
    // SAFETY: 2,047 records and a header lie inside the scratch.
    let bytes = unsafe { core::slice::from_raw_parts(scratch, length) };
    if maps::RECORDS.output_untyped::<[u8]>(bytes, NO_WAKE_UP).is_err() {
        count(counter::SAMPLES_DROPPED);
    }
}

/// Word by word: a struct copy would become a call of a byte loop.
#[inline(always)]
fn copy_process(from: &PythonProcess, to: &mut PythonProcess) {
    const WORDS: usize = core::mem::size_of::<PythonProcess>() / 8;
    let from = (&raw const *from).cast::<u64>();
    let to = (&raw mut *to).cast::<u64>();
    for index in 0..WORDS {
        // SAFETY: both are WORDS words; volatile keeps LLVM from making it a memcpy.
        unsafe { to.add(index).write_volatile(from.add(index).read_volatile()) };
    }
}

/// Finds the thread state of this CPU's walk. Global, so that it is verified once by itself.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn find_thread_state() -> u32 {
    let Some(walk) = maps::WALK.get_ptr_mut(0) else { return 0 };
    // SAFETY: this CPU's own slot, in use by this sample.
    let walk = unsafe { &mut *walk };
    walk.thread_state = thread_state::find(&walk.process, walk.thread_pointer, &User);
    1
}

/// One frame of this CPU's walk; 0 when it was the last. Global, so that it is verified once.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn step_python_frame() -> u32 {
    let Some(walk) = maps::WALK.get_ptr_mut(0) else { return 0 };
    // SAFETY: a helper without arguments.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    let Some(scratch) = maps::SCRATCH.get_ptr_mut(cpu) else { return 0 };
    // SAFETY: the records follow the header in the scratch; there is room for 2,048 of them.
    unsafe {
        let records = scratch.cast::<u8>().add(core::mem::size_of::<SampleHeader>()).cast();
        (*walk).step(records, &User, &mut Ring) as u32
    }
}

/// Code records go to the ring buffer; what went is kept in a two-way table of tags.
struct Ring;

impl CodeSink for Ring {
    #[inline(always)]
    fn is_known(&self, tag: u64) -> bool {
        slots(tag).into_iter().any(|slot| match maps::KNOWN_CODE.get(slot) {
            Some(known) => *known == tag,
            None => false,
        })
    }

    #[inline(always)]
    fn remember(&mut self, tag: u64) {
        let [first, second] = slots(tag);
        if let (Some(first), Some(second)) =
            (maps::KNOWN_CODE.get_ptr_mut(first), maps::KNOWN_CODE.get_ptr_mut(second))
        {
            // SAFETY: aligned words; a race with another CPU loses a tag, which is then sent again.
            unsafe {
                *second = *first;
                *first = tag;
            }
        }
    }

    #[inline(always)]
    fn scratch(&mut self) -> *mut u8 {
        match maps::CODE_SCRATCH.get_ptr_mut(0) {
            Some(scratch) => scratch.cast(),
            None => core::ptr::null_mut(),
        }
    }

    #[inline(always)]
    fn send(&mut self, length: usize) -> bool {
        let scratch = self.scratch();
        if scratch.is_null() {
            return false;
        }
        let length = mask::<{ CODE_SCRATCH_BYTES as u32 - 1 }>(length);
        // SAFETY: the mask keeps the length inside the scratch.
        let bytes = unsafe { core::slice::from_raw_parts(scratch, length) };
        let sent = maps::RECORDS.output_untyped::<[u8]>(bytes, NO_WAKE_UP).is_ok();
        count(if sent { counter::CODE_SENT } else { counter::CODE_DROPPED });
        sent
    }

    #[inline(always)]
    fn over_budget(&mut self) {
        count(counter::CODE_OVER_BUDGET);
    }
}

#[inline(always)]
fn slots(tag: u64) -> [u32; 2] {
    let slot = mask::<{ KNOWN_CODE_SLOTS as u32 - 1 }>(tag as usize) as u32;
    [slot, slot ^ 1]
}
