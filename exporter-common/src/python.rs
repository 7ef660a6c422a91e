//! What the Python walk must know of one process: addresses in it, and the layout of its
//! interpreter. Written by userspace into the process map, read by the walk.

use crate::{Wire, layout};

/// The process has no known interpreter: its samples carry no Python frames.
pub const STATE_NOT_PYTHON: u32 = 1;
/// The walk is set up.
pub const STATE_PYTHON: u32 = 2;

/// How the thread state of the running thread is found; tried in the order of the fields.
/// No holder variable.
pub const HOLDER_NONE: u8 = 0;
/// `_PyRuntime.gilstate.tstate_current` (3.7 to 3.11) or `_PyThreadState_Current` (3.6): `holder` is its address.
pub const HOLDER_GLOBAL: u8 = 1;
/// `interp->ceval.gil` (3.12+): `holder` is the offset in the interpreter state.
pub const HOLDER_INTERPRETER: u8 = 2;

/// No thread-local thread state.
pub const TLS_NONE: u8 = 0;
/// At thread pointer + `tls_offset` (static executables).
pub const TLS_STATIC: u8 = 1;
/// In the block `tls_module` of the thread's dynamic vector, at `tls_offset`.
pub const TLS_DYNAMIC: u8 = 2;

/// No pthread key.
pub const TSD_NONE: u8 = 0;
/// glibc: 16-byte cells, the first 32 of them inside `struct pthread`.
pub const TSD_GLIBC: u8 = 1;
/// musl: a pointer to an array of pointers.
pub const TSD_MUSL: u8 = 2;

/// Whether frames are reached through a `_PyCFrame` (3.11, 3.12) or directly (others).
pub const CFRAME_NONE: u16 = u16::MAX;

/// `frame_instruction` is a pointer into the code object (3.11 and later).
pub const INSTRUCTION_POINTER: u16 = 0;
/// It is `f_lasti`, a 32-bit count of bytes from the first instruction (up to 3.9).
pub const INSTRUCTION_BYTES: u16 = 1;
/// It is `f_lasti`, a 32-bit count of code units of 2 bytes (3.10).
pub const INSTRUCTION_UNITS: u16 = 2;

/// One process, as the walk needs it. Offsets are bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PythonProcess {
    /// [`STATE_PYTHON`] or [`STATE_NOT_PYTHON`].
    pub state: u32,
    /// Number of this process among all the exporter has seen; never 0.
    pub generation: u32,
    /// Start of the process, clock ticks (1/100 s) of `CLOCK_BOOTTIME`, as `/proc/PID/stat` has it;
    /// 0 leaves it unchecked.
    pub start_ticks: u64,
    /// Address of the first interpreter pointer (`_PyRuntime.interpreters.head`, `interp_head` in 3.6).
    pub interpreters_head: u64,
    /// Address of `PyCode_Type`.
    pub code_type: u64,
    /// See `holder_kind`.
    pub holder: u64,
    /// See `tls_kind`.
    pub tls_offset: u64,
    /// Module id of the dynamic TLS block.
    pub tls_module: u32,
    /// pthread key of the thread state.
    pub tsd_key: u32,
    /// [`HOLDER_GLOBAL`] and the like.
    pub holder_kind: u8,
    /// [`TLS_STATIC`] and the like.
    pub tls_kind: u8,
    /// [`TSD_GLIBC`] and the like.
    pub tsd_kind: u8,
    /// Owner values from this one on are shims (3; 255 when the version has none).
    pub shim_owner: u8,
    /// Offset of `pthread.specific` (glibc 1,296) or of the cell array pointer (musl 128).
    pub tsd_specific: u16,
    /// glibc: offset of the first block inside `struct pthread` (784).
    pub tsd_first_block: u16,
    /// `PyInterpreterState.next`.
    pub interp_next: u16,
    /// Head of the interpreter's thread list.
    pub interp_threads: u16,
    /// `PyThreadState.next`.
    pub ts_next: u16,
    /// `PyThreadState.interp`.
    pub ts_interp: u16,
    /// `PyThreadState.thread_id`.
    pub ts_thread_id: u16,
    /// `PyThreadState.cframe` (3.11, 3.12), `.current_frame` (3.13 and later) or `.frame` (up to 3.10).
    pub ts_frame: u16,
    /// `_PyCFrame.current_frame`, or [`CFRAME_NONE`].
    pub cframe_current: u16,
    /// `_PyCFrame.previous` (3.11: entry records are cframes), or [`CFRAME_NONE`].
    pub cframe_previous: u16,
    /// `_gil_runtime_state.last_holder`.
    pub gil_last_holder: u16,
    /// `_gil_runtime_state.locked`.
    pub gil_locked: u16,
    /// Bytes of a frame to read: up to and with the last field needed; at most 128.
    pub frame_bytes: u16,
    /// Code object pointer in the frame.
    pub frame_code: u16,
    /// `_PyInterpreterFrame.previous`, or `PyFrameObject.f_back` (up to 3.10).
    pub frame_previous: u16,
    /// `prev_instr` or `instr_ptr`; up to 3.10 `f_lasti`. See `instruction_kind`.
    pub frame_instruction: u16,
    /// `owner`; up to 3.10, which has none, a byte that is always below `shim_owner`.
    pub frame_owner: u16,
    /// `is_entry` (3.11), or 0.
    pub frame_is_entry: u16,
    /// Bytes of a code object's head to read; at most 256.
    pub code_bytes: u16,
    /// `co_firstlineno`.
    pub code_first_line: u16,
    /// `co_filename`.
    pub code_filename: u16,
    /// `co_qualname`, or `co_name` where there is none.
    pub code_qualname: u16,
    /// `co_linetable`, or `co_lnotab` (up to 3.9).
    pub code_line_table: u16,
    /// First instruction.
    pub code_instructions: u16,
    /// `co_version` (3.12+; unique while not 0), or 0.
    pub code_version: u16,
    /// `str` length.
    pub str_length: u16,
    /// `str` hash.
    pub str_hash: u16,
    /// `str` state word.
    pub str_state: u16,
    /// Data of an ASCII string.
    pub str_ascii_data: u16,
    /// Data of another compact string.
    pub str_compact_data: u16,
    /// `ob_size` of bytes.
    pub bytes_size: u16,
    /// Data of bytes.
    pub bytes_data: u16,
    /// [`INSTRUCTION_POINTER`] and the like; also tells the form of the line table.
    pub instruction_kind: u16,
    /// Zero.
    pub pad: u16,
}
layout!(PythonProcess, size 128, state @ 0, generation @ 4, start_ticks @ 8, interpreters_head @ 16,
    code_type @ 24, holder @ 32, tls_offset @ 40, tls_module @ 48, tsd_key @ 52, holder_kind @ 56,
    tls_kind @ 57, tsd_kind @ 58, shim_owner @ 59, tsd_specific @ 60, tsd_first_block @ 62,
    interp_next @ 64, interp_threads @ 66, ts_next @ 68, ts_interp @ 70, ts_thread_id @ 72, ts_frame @ 74,
    cframe_current @ 76, cframe_previous @ 78, gil_last_holder @ 80, gil_locked @ 82, frame_bytes @ 84,
    frame_code @ 86, frame_previous @ 88, frame_instruction @ 90, frame_owner @ 92, frame_is_entry @ 94,
    code_bytes @ 96, code_first_line @ 98, code_filename @ 100, code_qualname @ 102,
    code_line_table @ 104, code_instructions @ 106, code_version @ 108, str_length @ 110,
    str_hash @ 112, str_state @ 114, str_ascii_data @ 116, str_compact_data @ 118, bytes_size @ 120,
    bytes_data @ 122, instruction_kind @ 124, pad @ 126);
// SAFETY: repr(C), integers only, padding explicit (layout checked above).
unsafe impl Wire for PythonProcess {}
