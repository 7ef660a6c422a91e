//! Layouts of 3.6 to 3.15 (x86-64, with the GIL), measured with the compiler on the headers of each
//! series or read from an interpreter's debug information: `Include/internal/pycore_runtime.h`,
//! `pycore_interp.h`, `pycore_frame.h`, `pycore_gil.h`, `Include/cpython/{pystate,code,unicodeobject,
//! bytesobject}.h`, up to 3.10 `Include/{frameobject,code,pystate}.h` of
//! <https://github.com/python/cpython>. No field used here moved within a series.

use exporter_common::python::{
    CFRAME_NONE, HOLDER_GLOBAL, HOLDER_INTERPRETER, INSTRUCTION_BYTES, INSTRUCTION_POINTER,
    INSTRUCTION_UNITS, PythonProcess, STATE_PYTHON,
};

use super::version::Version;

/// `ob_type` of an object.
pub const OBJECT_TYPE: u64 = 8;
/// `tp_name` of a type.
pub const TYPE_NAME: u64 = 24;
/// `ob_size` of a code object, and of any other object of variable size.
pub const OBJECT_SIZE: u64 = 16;

/// The layout of a version; the offsets of `process` are set, its addresses are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Offsets in interpreter, thread, frame, code and string objects.
    pub process: PythonProcess,
    /// `_PyRuntime.interpreters.head`, bytes; nothing of this is in 3.6, which has no `_PyRuntime`.
    pub interpreters_head: u64,
    /// `_key` of `_PyRuntime…autoTSSkey` (the `int` before it says whether it is set), bytes.
    pub tsd_key: Option<u64>,
    /// `HOLDER_GLOBAL`: offset in `_PyRuntime`; `HOLDER_INTERPRETER`: offset in the interpreter.
    pub holder: u64,
}

/// The table for a version; `None` when it cannot be walked.
#[must_use]
pub fn table(version: Version) -> Option<Layout> {
    let common = PythonProcess {
        state: STATE_PYTHON,
        ts_next: 8,
        ts_interp: 16,
        cframe_current: CFRAME_NONE,
        cframe_previous: CFRAME_NONE,
        gil_last_holder: 8,
        gil_locked: 16,
        frame_instruction: 56,
        code_filename: 112,
        code_qualname: 128,
        code_line_table: 136,
        str_length: 16,
        str_hash: 24,
        str_state: 32,
        str_ascii_data: 40,
        str_compact_data: 56,
        bytes_size: 16,
        bytes_data: 32,
        ..PythonProcess::default()
    };
    let layout = match (version.major(), version.minor()) {
        (3, minor @ 6..=10) => old(minor, common),
        (3, 11) => Layout {
            process: PythonProcess {
                holder_kind: HOLDER_GLOBAL,
                shim_owner: u8::MAX,
                interp_next: 0,
                interp_threads: 16,
                ts_thread_id: 152,
                ts_frame: 56,
                cframe_current: 8,
                cframe_previous: 16,
                frame_code: 32,
                frame_previous: 48,
                frame_owner: 69,
                frame_is_entry: 68,
                code_first_line: 72,
                code_instructions: 184,
                str_ascii_data: 48,
                str_compact_data: 72,
                ..common
            },
            interpreters_head: 40,
            tsd_key: Some(596),
            holder: 576,
        },
        (3, 12) => Layout {
            process: PythonProcess {
                holder_kind: HOLDER_INTERPRETER,
                shim_owner: 3,
                interp_next: 0,
                interp_threads: 72,
                ts_thread_id: 136,
                ts_frame: 56,
                cframe_current: 0,
                frame_code: 0,
                frame_previous: 8,
                frame_owner: 70,
                code_first_line: 68,
                code_instructions: 192,
                code_version: 92,
                ..common
            },
            interpreters_head: 40,
            tsd_key: Some(1548),
            holder: 384,
        },
        (3, 13) => Layout {
            process: PythonProcess {
                holder_kind: HOLDER_INTERPRETER,
                shim_owner: 3,
                interp_next: 7264,
                interp_threads: 7344,
                ts_thread_id: 152,
                ts_frame: 72,
                frame_code: 0,
                frame_previous: 8,
                frame_owner: 70,
                code_first_line: 68,
                code_instructions: 200,
                code_version: 92,
                ..common
            },
            interpreters_head: 632,
            tsd_key: Some(2164),
            holder: 16,
        },
        (3, 14) => Layout {
            process: PythonProcess {
                interp_next: 7272,
                interp_threads: 7344,
                ts_thread_id: 152,
                code_instructions: 208,
                ..recent(common)
            },
            interpreters_head: 808,
            tsd_key: Some(2340),
            holder: 16,
        },
        (3, 15) => Layout {
            process: PythonProcess {
                interp_next: 7264,
                interp_threads: 7336,
                ts_thread_id: 176,
                code_instructions: 208,
                ..recent(common)
            },
            interpreters_head: 936,
            tsd_key: None,
            holder: 16,
        },
        _ => return None,
    };
    layout.sized()
}

/// What 3.14 and 3.15 share.
fn recent(common: PythonProcess) -> PythonProcess {
    PythonProcess {
        holder_kind: HOLDER_INTERPRETER,
        shim_owner: 3,
        ts_frame: 72,
        frame_code: 0,
        frame_previous: 8,
        frame_owner: 74,
        code_first_line: 68,
        code_version: 92,
        ..common
    }
}

/// Up to 3.10 a frame is a `PyFrameObject` of the heap, and instructions are counted (`f_lasti`).
fn old(minor: u8, common: PythonProcess) -> Layout {
    // Code objects grew by `co_posonlyargcount` in 3.8.
    let shift = if minor < 8 { 0 } else { 8 };
    let process = PythonProcess {
        holder_kind: HOLDER_GLOBAL,
        shim_owner: u8::MAX,
        interp_next: 0,
        interp_threads: 8,
        ts_thread_id: if minor == 6 { 152 } else { 176 },
        ts_frame: 24,
        frame_code: 32,
        frame_previous: 24,
        frame_instruction: match minor {
            6 => 120,
            7..=9 => 104,
            _ => 96,
        },
        frame_owner: REFERENCE_COUNT_TOP,
        instruction_kind: if minor < 10 { INSTRUCTION_BYTES } else { INSTRUCTION_UNITS },
        code_first_line: if minor < 8 { 36 } else { 40 },
        code_filename: 96 + shift,
        code_qualname: 104 + shift,
        code_line_table: 112 + shift,
        str_ascii_data: 48,
        str_compact_data: 72,
        ..common
    };
    let (interpreters_head, tsd_key, holder) = match minor {
        // Addresses of their own: see `super::elf::Legacy`.
        6 => (0, None, 0),
        7 => (24, Some(1508), 1480),
        8 => (32, Some(1396), 1368),
        _ => (32, Some(588), 568),
    };
    Layout { process, interpreters_head, tsd_key, holder }
}

/// The highest byte of an object's reference count: always 0, so never an owner that is a shim.
const REFERENCE_COUNT_TOP: u16 = 7;

/// Most bytes of a frame the walk reads.
const FRAME_BYTES_MAX: u64 = 128;
/// Most bytes of a code object the walk reads.
const CODE_BYTES_MAX: u64 = 256;

impl Layout {
    /// Sets the sizes to read from the offsets; `None` when they exceed what the walk reads.
    #[must_use]
    pub fn sized(mut self) -> Option<Self> {
        let process = &mut self.process;
        let frame_end = [
            u64::from(process.frame_code) + 8,
            u64::from(process.frame_previous) + 8,
            u64::from(process.frame_instruction)
                + if process.instruction_kind == INSTRUCTION_POINTER { 8 } else { 4 },
            u64::from(process.frame_owner) + 1,
            u64::from(process.frame_is_entry) + 1,
        ];
        let code_end = [
            u64::from(process.code_first_line) + 4,
            u64::from(process.code_filename) + 8,
            u64::from(process.code_qualname) + 8,
            u64::from(process.code_line_table) + 8,
            u64::from(process.code_instructions),
        ];
        let frame_bytes = frame_end.into_iter().max()?.next_multiple_of(8);
        let code_bytes = code_end.into_iter().max()?.next_multiple_of(8);
        if frame_bytes > FRAME_BYTES_MAX || code_bytes > CODE_BYTES_MAX {
            return None;
        }
        process.frame_bytes = u16::try_from(frame_bytes).ok()?;
        process.code_bytes = u16::try_from(code_bytes).ok()?;
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let sizes = |minor: u32| {
            table(Version(3 << 24 | minor << 16)).map(|it| (it.process.frame_bytes, it.process.code_bytes))
        };
        assert_eq!(sizes(11), Some((72, 184)));
        assert_eq!(sizes(12), Some((72, 192)));
        assert_eq!(sizes(13), Some((72, 200)));
        assert_eq!(sizes(6), Some((128, 120)));
        assert_eq!(sizes(9), Some((112, 128)));
        assert_eq!(sizes(10), Some((104, 128)));
        assert_eq!(sizes(14), Some((80, 208)));
        assert_eq!(sizes(15), Some((80, 208)));
        assert_eq!(sizes(5), None);
        assert_eq!(sizes(16), None);
    }
}
