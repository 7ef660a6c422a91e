//! Whether a layout fits the live process: what it says must be found there before it is believed.

use exporter_common::python::{CFRAME_NONE, PythonProcess};

use super::offsets::{OBJECT_TYPE, TYPE_NAME};
use crate::remote_memory::{ReadError, RemoteMemory};

/// Most interpreters and most threads of each that are looked at.
const LIST_LIMIT: usize = 64;
/// Most shim frames that are stepped over.
const SHIM_LIMIT: usize = 4;
/// Looks at a running thread's frame, which may be torn, before the layout is given up.
const FRAME_ATTEMPTS: usize = 8;

/// Bits of a frame's code pointer that tell of its reference (3.14 and later; objects are aligned to 8):
/// `Py_TAG_BITS`, `Include/internal/pycore_stackref.h` of CPython v3.14.0.
const TAG_BITS: u64 = 3;
/// Where the block that a thread pointer points at holds its own address: x86-64 psABI, variant II of
/// thread-local storage (`tcbhead_t.tcb` of glibc, `struct pthread.self` of musl).
const THREAD_SELF: u64 = 0;

/// What the check came to.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The runtime has no interpreter or no thread yet.
    #[error("the runtime is not initialised")]
    NotYet,
    /// Something else was found than the layout says.
    #[error("{0}")]
    Mismatch(&'static str),
    /// Memory that must be there is not.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// What the check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// `PyCode_Type`: what was given, or the type of the code objects in frames.
    pub code_type: u64,
    /// Thread states with their `thread_id`, in the order of the lists.
    pub threads: Vec<(u64, u64)>,
}

/// How much is believed before the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Version and addresses are the interpreter's own word.
    Told,
    /// One of them was guessed: objects and threads must prove it.
    Guessed,
}

/// Follows interpreters, threads and a frame. A `code_type` of 0 is looked up in a live frame.
///
/// # Errors
///
/// When the runtime is not ready, or the layout does not fit.
pub fn check(memory: &impl RemoteMemory, layout: &PythonProcess, trust: Trust) -> Result<Found, CheckError> {
    let at = |base: u64, offset: u16| memory.read_u64(base.wrapping_add(offset.into()));
    let first = memory.read_u64(layout.interpreters_head)?;
    if first == 0 {
        return Err(CheckError::NotYet);
    }
    let mut found = Found { code_type: layout.code_type, threads: Vec::new() };
    if found.code_type != 0 {
        match type_is(memory, found.code_type, b"code\0")? {
            None => return Err(CheckError::NotYet),
            Some(false) => {
                return Err(CheckError::Mismatch("the type of code objects is not named \"code\""));
            }
            Some(true) => {}
        }
    }
    let mut frames = 0;
    let mut interpreter = first;
    for _ in 0..LIST_LIMIT {
        let mut thread = at(interpreter, layout.interp_threads)?;
        for _ in 0..LIST_LIMIT {
            if thread == 0 {
                break;
            }
            if at(thread, layout.ts_interp)? != interpreter {
                return Err(CheckError::Mismatch("a thread does not point back to its interpreter"));
            }
            let id = at(thread, layout.ts_thread_id)?;
            if trust == Trust::Guessed && id != 0 && memory.read_u64(id.wrapping_add(THREAD_SELF))? != id {
                return Err(CheckError::Mismatch("the id of a thread is none"));
            }
            found.threads.push((thread, id));
            frames += usize::from(check_frame(memory, layout, thread, trust, &mut found.code_type)?);
            thread = at(thread, layout.ts_next)?;
        }
        interpreter = at(interpreter, layout.interp_next)?;
        if interpreter == 0 {
            break;
        }
    }
    // What was guessed is proved by a frame alone.
    let is_proved = frames > 0 || (trust == Trust::Told && found.code_type != 0);
    if found.threads.is_empty() || !is_proved { Err(CheckError::NotYet) } else { Ok(found) }
}

/// Whether the thread has a frame; it fits then. A thread that runs while it is read may show a frame
/// that is gone already: some looks are taken.
fn check_frame(
    memory: &impl RemoteMemory,
    layout: &PythonProcess,
    thread: u64,
    trust: Trust,
    code_type: &mut u64,
) -> Result<bool, CheckError> {
    for _ in 0..FRAME_ATTEMPTS {
        let Ok(code) = code_of(memory, layout, thread) else { continue };
        let Some(code) = code else { return Ok(false) };
        let Ok(kind) = memory.read_u64(code.wrapping_add(OBJECT_TYPE)) else { continue };
        if *code_type == 0 {
            let is_code = matches!(type_is(memory, kind, b"code\0"), Ok(Some(true)));
            if is_code && names_are_strings(memory, layout, code) {
                *code_type = kind;
                return Ok(true);
            }
        } else if kind == *code_type && (trust == Trust::Told || names_are_strings(memory, layout, code)) {
            return Ok(true);
        }
    }
    Err(CheckError::Mismatch("the frame of a thread has no code object"))
}

/// Code object of the thread's innermost frame that is no shim; `None` without one.
fn code_of(
    memory: &impl RemoteMemory,
    layout: &PythonProcess,
    thread: u64,
) -> Result<Option<u64>, ReadError> {
    let at = |base: u64, offset: u16| memory.read_u64(base.wrapping_add(offset.into()));
    let mut frame = at(thread, layout.ts_frame)?;
    if layout.cframe_current != CFRAME_NONE && frame != 0 {
        frame = at(frame, layout.cframe_current)?;
    }
    for _ in 0..SHIM_LIMIT {
        if frame == 0 {
            return Ok(None);
        }
        let mut owner = [0];
        memory.read(frame.wrapping_add(layout.frame_owner.into()), &mut owner)?;
        if owner[0] < layout.shim_owner {
            return at(frame, layout.frame_code).map(|code| Some(code & !TAG_BITS));
        }
        frame = at(frame, layout.frame_previous)?;
    }
    Ok(None)
}

/// Whether a type has this name; `None` while it has none.
fn type_is(memory: &impl RemoteMemory, kind: u64, name: &[u8; 5]) -> Result<Option<bool>, ReadError> {
    let text = memory.read_u64(kind.wrapping_add(TYPE_NAME))?;
    if text == 0 {
        return Ok(None);
    }
    let mut found = [0; 5];
    memory.read(text, &mut found)?;
    Ok(Some(&found == name))
}

/// Whether file and name of a code object are strings and its line table is bytes.
fn names_are_strings(memory: &impl RemoteMemory, layout: &PythonProcess, code: u64) -> bool {
    let kind = |offset: u16, is: &[u8]| -> Result<bool, ReadError> {
        let object = memory.read_u64(code.wrapping_add(offset.into()))?;
        let kind = memory.read_u64(object.wrapping_add(OBJECT_TYPE))?;
        let name = memory.read_u64(kind.wrapping_add(TYPE_NAME))?;
        let mut found = [0; 6];
        memory.read(name, &mut found)?;
        Ok(found.starts_with(is))
    };
    let fields = [
        (layout.code_filename, &b"str\0"[..]),
        (layout.code_qualname, b"str\0"),
        (layout.code_line_table, b"bytes\0"),
    ];
    fields.iter().all(|(offset, is)| matches!(kind(*offset, is), Ok(true)))
}
