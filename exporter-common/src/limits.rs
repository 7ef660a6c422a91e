//! Bounds of the kernel side, each with its reason; related ones are asserted together.

use crate::code::CodeHeader;
use crate::sample::{PythonFrameRecord, SampleHeader};

/// Records (Python frames and entry markers) one walk may take. Python's default recursion limit is
/// 1,000; 1,536 leaves room for 1,024 frames with an entry marker at every second one.
pub const MAX_PYTHON_RECORDS: usize = 1536;

/// Python frames that are promised to arrive whole; beyond, the stack is marked truncated.
pub const MIN_PYTHON_FRAMES: usize = 1024;

/// Native frames the record has room for (planned; filled once native unwinding exists).
pub const MAX_NATIVE_FRAMES: usize = 256;

/// Bytes kept for one native frame: address, stack pointer, frame address.
pub const NATIVE_FRAME_BYTES: usize = 24;

/// Kernel frames the record has room for: `PERF_MAX_STACK_DEPTH` of the kernel is 127.
pub const MAX_KERNEL_FRAMES: usize = 128;

/// Per-CPU scratch in which a record is built. Above the 32 KiB that a per-CPU map value may have,
/// so it is an array indexed by CPU (a power of two keeps the verifier's masks simple).
pub const SCRATCH_BYTES: usize = 65536;

/// Bytes of the ring buffer. A deep record is 37 KiB at most, a usual one 1 KiB: 8 MiB hold a
/// second of 99 Hz on 64 CPUs. A record that finds no room is dropped and counted.
pub const RING_BYTES: usize = 8 << 20;

/// Bytes of the ring for process events; an event is 64 bytes, so 4,096 of them.
pub const EVENT_RING_BYTES: usize = 256 << 10;

/// Processes whose walk is set up at one time (map entries, allocated on insertion).
pub const MAX_PROCESSES: u32 = 16384;

/// Slots of the table of known code objects. Two of its slots are looked at for a code object; a
/// program of a large framework runs some 10,000 code objects. 8 bytes a slot: 1 MiB.
pub const KNOWN_CODE_SLOTS: usize = 1 << 17;

/// Code objects one sample may name at first sight: bounds the time spent in the interrupt (about
/// 3 µs each). The rest is named by the next sample or read by userspace.
pub const MAX_NEW_CODE_PER_SAMPLE: u32 = 48;

/// Bytes kept of a name (qualified name) at first sight; a power of two.
pub const MAX_NAME_BYTES: usize = 512;

/// Bytes kept of a file name at first sight; a power of two. `PATH_MAX` is 4,096, but a code
/// object's path is rarely above 300 characters; userspace reads longer ones.
pub const MAX_FILE_BYTES: usize = 1024;

/// Bytes kept of a line table at first sight; a power of two. 95 % of standard library functions
/// need less than 1 KiB, but the code of a module, which is freed as soon as it has run, up to 16;
/// userspace reads longer ones.
pub const MAX_LINE_TABLE_BYTES: usize = 16384;

/// Bytes of the scratch in which a code record is built: the most that a per-CPU value may have.
pub const CODE_SCRATCH_BYTES: usize = 32768;

/// Thread states looked at when a thread is searched in the interpreter's list, the last resort.
pub const MAX_THREAD_LIST: usize = 64;

/// Slots of the within-sample memory of code objects already looked up; makes recursion cheap.
pub const SEEN_SLOTS: usize = 64;

const _: () = assert!(
    core::mem::size_of::<SampleHeader>()
        + MAX_PYTHON_RECORDS * core::mem::size_of::<PythonFrameRecord>()
        + MAX_NATIVE_FRAMES * NATIVE_FRAME_BYTES
        + MAX_KERNEL_FRAMES * 8
        <= SCRATCH_BYTES,
    "a whole sample must fit its scratch"
);
const _: () = assert!(MIN_PYTHON_FRAMES < MAX_PYTHON_RECORDS);
const _: () = assert!(
    core::mem::size_of::<CodeHeader>() + MAX_NAME_BYTES + MAX_FILE_BYTES + MAX_LINE_TABLE_BYTES
        <= CODE_SCRATCH_BYTES,
    "a whole code record must fit its scratch"
);
const _: () = assert!(KNOWN_CODE_SLOTS.is_power_of_two() && SEEN_SLOTS.is_power_of_two());
const _: () = assert!(RING_BYTES.is_power_of_two() && RING_BYTES > 16 * SCRATCH_BYTES);
