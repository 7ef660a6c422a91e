//! The record of one sample, as it lies in the ring buffer:
//!
//! ```text
//! SampleHeader | PythonFrameRecord × python_records | (native frames) | (kernel frames)
//! ```
//!
//! Python records run from the leaf to the root. A record with [`FRAME_ENTRY`] is no frame of the
//! program: it is the entry record (3.11 `_PyCFrame`, 3.12+ shim frame) of the native eval loop
//! activation to which all frames before it, up to the previous entry record, belong. The merge
//! finds that native frame by SP ≤ entry address < CFA.

use crate::{Wire, layout};

/// The record is an entry record; `code` is its address in the target.
pub const FRAME_ENTRY: u8 = 1;
/// The code object was not copied and is not known to be: userspace must read it.
pub const FRAME_UNNAMED: u8 = 2;

/// `gil` of a sample: not looked at, or it could not be read.
pub const GIL_UNKNOWN: u8 = 0;
/// `gil` of a sample: the thread holds the GIL.
pub const GIL_HELD: u8 = 1;
/// `gil` of a sample: the thread has released the GIL.
pub const GIL_RELEASED: u8 = 2;

/// `kind` of a sample: on-CPU, one period of the CPU clock. Others may come.
pub const SAMPLE_ON_CPU: u8 = 1;

/// Start of a sample record.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SampleHeader {
    /// [`crate::record_kind::SAMPLE`].
    pub record_kind: u32,
    /// Process id in the exporter's pid namespace.
    pub pid: u32,
    /// Thread id in the exporter's pid namespace.
    pub tid: u32,
    /// Generation userspace gave the process, 0 when it is not tracked.
    pub generation: u32,
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub time_ns: u64,
    /// Start of the process, nanoseconds of `CLOCK_BOOTTIME`.
    pub start_ns: u64,
    /// What the sample stands for: nanoseconds of CPU time.
    pub weight: u64,
    /// The thread state whose stack was walked, 0 if none.
    pub thread_state: u64,
    /// Kernel name of the thread, NUL padded.
    pub comm: [u8; 16],
    /// [`crate::walk_status`] of the Python walk.
    pub status: u8,
    /// [`SAMPLE_ON_CPU`].
    pub sample_kind: u8,
    /// [`GIL_HELD`] and the like.
    pub gil: u8,
    /// 1 if the sample hit in kernel mode.
    pub kernel_mode: u8,
    /// Python records that follow.
    pub python_records: u16,
    /// Native frames that follow (0 until native unwinding exists).
    pub native_frames: u16,
    /// Kernel frames that follow (0 until native unwinding exists).
    pub kernel_frames: u16,
    /// Zero.
    pub pad: [u8; 6],
}
layout!(SampleHeader, size 80, record_kind @ 0, pid @ 4, tid @ 8, generation @ 12, time_ns @ 16,
    start_ns @ 24, weight @ 32, thread_state @ 40, comm @ 48, status @ 64, sample_kind @ 65, gil @ 66,
    kernel_mode @ 67, python_records @ 68, native_frames @ 70, kernel_frames @ 72, pad @ 74);
// SAFETY: repr(C), integers only, padding explicit (layout checked above).
unsafe impl Wire for SampleHeader {}

/// One Python frame, or the entry record that ends a run of them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PythonFrameRecord {
    /// Address of the code object, or of the entry record.
    pub code: u64,
    /// Fingerprint of the code object's contents ([`crate::code::CodeHeader::fingerprint`]).
    pub fingerprint: u64,
    /// Byte offset of the current instruction in the code.
    pub instruction: i32,
    /// `owner` of the interpreter frame.
    pub owner: u8,
    /// [`FRAME_ENTRY`], [`FRAME_UNNAMED`].
    pub flags: u8,
    /// Zero.
    pub pad: u16,
}
layout!(PythonFrameRecord, size 24, code @ 0, fingerprint @ 8, instruction @ 16, owner @ 20, flags @ 21, pad @ 22);
// SAFETY: repr(C), integers only, padding explicit (layout checked above).
unsafe impl Wire for PythonFrameRecord {}
