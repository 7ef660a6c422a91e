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

/// Follows interpreters, threads and a frame.
///
/// # Errors
///
/// When the runtime is not ready, or the layout does not fit.
pub fn check(memory: &impl RemoteMemory, layout: &PythonProcess) -> Result<(), CheckError> {
    let at = |base: u64, offset: u16| memory.read_u64(base.wrapping_add(offset.into()));
    let first = memory.read_u64(layout.interpreters_head)?;
    if first == 0 {
        return Err(CheckError::NotYet);
    }
    let name = memory.read_u64(layout.code_type.wrapping_add(TYPE_NAME))?;
    if name == 0 {
        return Err(CheckError::NotYet);
    }
    let mut text = [0; 5];
    memory.read(name, &mut text)?;
    if &text != b"code\0" {
        return Err(CheckError::Mismatch("the type of code objects is not named \"code\""));
    }
    let mut threads = 0;
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
            threads += 1;
            check_frame(memory, layout, thread)?;
            thread = at(thread, layout.ts_next)?;
        }
        interpreter = at(interpreter, layout.interp_next)?;
        if interpreter == 0 {
            break;
        }
    }
    if threads == 0 { Err(CheckError::NotYet) } else { Ok(()) }
}

/// A thread that runs while it is read may show a frame that is gone already: some looks are taken.
fn check_frame(memory: &impl RemoteMemory, layout: &PythonProcess, thread: u64) -> Result<(), CheckError> {
    for _ in 0..FRAME_ATTEMPTS {
        if matches!(frame_fits(memory, layout, thread), Ok(true)) {
            return Ok(());
        }
    }
    Err(CheckError::Mismatch("the frame of a thread has no code object"))
}

/// Whether the thread's innermost frame that is no shim has a code object, or it has no frame.
fn frame_fits(memory: &impl RemoteMemory, layout: &PythonProcess, thread: u64) -> Result<bool, ReadError> {
    let at = |base: u64, offset: u16| memory.read_u64(base.wrapping_add(offset.into()));
    let mut frame = at(thread, layout.ts_frame)?;
    if layout.cframe_current != CFRAME_NONE && frame != 0 {
        frame = at(frame, layout.cframe_current)?;
    }
    for _ in 0..SHIM_LIMIT {
        if frame == 0 {
            return Ok(true);
        }
        let mut owner = [0];
        memory.read(frame.wrapping_add(layout.frame_owner.into()), &mut owner)?;
        if owner[0] < layout.shim_owner {
            let code = at(frame, layout.frame_code)?;
            return Ok(memory.read_u64(code.wrapping_add(OBJECT_TYPE))? == layout.code_type);
        }
        frame = at(frame, layout.frame_previous)?;
    }
    Ok(true)
}
