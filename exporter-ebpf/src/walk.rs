//! A walk over the Python stack of the running thread: its state, its start and one frame step.
//!
//! The walk leaves records from the leaf to the root. A step handles one interpreter frame: a shim
//! becomes an entry record, another frame becomes a frame record (followed by an entry record in
//! 3.11, when the native eval loop was entered with it). All reads go through [`Memory`]; a failed
//! read ends the walk with a status and never loses the records made so far.

use exporter_common::limits::{MAX_PYTHON_RECORDS, SEEN_SLOTS};
use exporter_common::python::{CFRAME_NONE, INSTRUCTION_POINTER, INSTRUCTION_UNITS, PythonProcess};
use exporter_common::sample::{FRAME_ENTRY, PythonFrameRecord};
use exporter_common::walk_status;

use crate::code::{self, CodeSink};
use crate::memory::{Memory, at_most, mask, room};

/// Bytes of a frame's head that fit the buffer.
pub const FRAME_BUFFER: usize = 128;
/// Bytes of a code object's head that fit the buffer.
pub const CODE_BUFFER: usize = 256;

/// State of one walk; lies in per-CPU memory, so its size is no matter of the 512-byte BPF stack.
#[repr(C)]
pub struct Walk {
    /// What is known of the process.
    pub process: PythonProcess,
    /// Thread pointer of the running thread.
    pub thread_pointer: u64,
    /// Its thread state, 0 if none.
    pub thread_state: u64,
    /// Frame to look at next.
    pub frame: u64,
    /// 3.11: the cframe that the next entry frame belongs to.
    pub cframe: u64,
    /// Number of this sample on this CPU; makes old entries of `seen` invalid.
    pub sequence: u64,
    /// Process id, for code records.
    pub pid: u32,
    /// Records made.
    pub records: u32,
    /// [`walk_status`].
    pub status: u32,
    /// Code objects that may still be named by this sample.
    pub budget: u32,
    /// Head of the frame looked at.
    pub frame_buffer: [u64; FRAME_BUFFER / 8],
    /// Head of the code object looked at.
    pub code_buffer: [u64; CODE_BUFFER / 8],
    /// Heads of its name and its file name.
    pub text_buffer: [u64; 16],
    /// Code objects already looked at in this sample: address, sequence, fingerprint.
    pub seen: [[u64; 3]; SEEN_SLOTS],
}

/// 64-bit field of a buffer at an untrusted offset.
#[inline(always)]
pub fn word_at<const M: u32>(buffer: *const u64, offset: u16) -> u64 {
    // SAFETY: callers pass a buffer of at least M + 8 bytes; the mask keeps the offset inside and aligned.
    unsafe { *buffer.cast::<u8>().add(mask::<M>(offset as usize)).cast::<u64>() }
}

/// 32-bit field of a buffer at an untrusted offset.
#[inline(always)]
pub fn half_at<const M: u32>(buffer: *const u64, offset: u16) -> u32 {
    // SAFETY: callers pass a buffer of at least M + 4 bytes; the mask keeps the offset inside and aligned.
    unsafe { *buffer.cast::<u8>().add(mask::<M>(offset as usize)).cast::<u32>() }
}

#[inline(always)]
fn byte_at(buffer: *const u64, offset: u16) -> u8 {
    // SAFETY: callers pass the 128-byte frame buffer.
    unsafe { *buffer.cast::<u8>().add(mask::<0x7f>(offset as usize)) }
}

impl Walk {
    /// A walk that has not begun.
    pub const fn new(process: PythonProcess) -> Self {
        Self {
            process,
            thread_pointer: 0,
            thread_state: 0,
            frame: 0,
            cframe: 0,
            sequence: 1,
            pid: 0,
            records: 0,
            status: walk_status::NO_THREAD_STATE as u32,
            budget: 0,
            frame_buffer: [0; FRAME_BUFFER / 8],
            code_buffer: [0; CODE_BUFFER / 8],
            text_buffer: [0; 16],
            seen: [[0; 3]; SEEN_SLOTS],
        }
    }

    /// Finds the first frame of the thread state. False (with `status` set) when there is none.
    #[inline(always)]
    pub fn begin<M: Memory>(&mut self, memory: &M) -> bool {
        self.status = walk_status::STATE_FAULT as u32;
        let process = &self.process;
        let Some(mut frame) = memory.word(self.thread_state.wrapping_add(process.ts_frame as u64)) else {
            return false;
        };
        if process.cframe_current != CFRAME_NONE {
            self.cframe = frame;
            if frame != 0 {
                match memory.word(frame.wrapping_add(process.cframe_current as u64)) {
                    Some(first) => frame = first,
                    None => return false,
                }
            }
        }
        self.frame = frame;
        self.status = walk_status::NO_FRAME as u32;
        frame != 0
    }

    /// Looks at one frame. True while there is another one.
    ///
    /// # Safety
    /// `records` must be valid for writes of [`MAX_PYTHON_RECORDS`] records.
    #[inline(always)]
    pub unsafe fn step<M: Memory, S: CodeSink>(
        &mut self,
        records: *mut PythonFrameRecord,
        memory: &M,
        sink: &mut S,
    ) -> bool {
        let address = self.frame;
        let length = at_most::<{ FRAME_BUFFER as u32 }>(self.process.frame_bytes as u64);
        // SAFETY: the frame buffer has FRAME_BUFFER bytes.
        if !memory.read(unsafe { room(self.frame_buffer.as_mut_ptr().cast(), length) }, address) {
            self.status = walk_status::FRAME_FAULT as u32;
            return false;
        }
        let buffer = self.frame_buffer.as_ptr();
        let owner = byte_at(buffer, self.process.frame_owner);
        let previous = word_at::<0x78>(buffer, self.process.frame_previous);
        // The last record is kept free: a frame and its entry record take two.
        if self.records as usize >= MAX_PYTHON_RECORDS - 1 {
            self.status = walk_status::TRUNCATED as u32;
            return false;
        }
        if owner >= self.process.shim_owner {
            // SAFETY: as the caller promises; `push` keeps the index inside.
            unsafe { self.push(records, address, 0, 0, owner, FRAME_ENTRY) };
        } else {
            let object = word_at::<0x78>(buffer, self.process.frame_code) & !7;
            let instruction = match self.process.instruction_kind {
                INSTRUCTION_POINTER => {
                    let pointer = word_at::<0x78>(buffer, self.process.frame_instruction);
                    let first = object.wrapping_add(self.process.code_instructions as u64);
                    pointer.wrapping_sub(first) as i32
                }
                INSTRUCTION_UNITS => {
                    half_at::<0x7c>(buffer, self.process.frame_instruction).wrapping_mul(2) as i32
                }
                _ => half_at::<0x7c>(buffer, self.process.frame_instruction) as i32,
            };
            let entry = self.process.frame_is_entry != 0 && byte_at(buffer, self.process.frame_is_entry) != 0;
            let Some((fingerprint, flags)) = code::inspect(self, object, memory, sink) else {
                self.status = walk_status::CODE_FAULT as u32;
                return false;
            };
            // SAFETY: as above.
            unsafe { self.push(records, object, fingerprint, instruction, owner, flags) };
            if entry {
                let cframe = self.cframe;
                // SAFETY: as above.
                unsafe { self.push(records, cframe, 0, 0, owner, FRAME_ENTRY) };
                self.cframe = match cframe {
                    0 => 0,
                    _ => memory.word(cframe.wrapping_add(self.process.cframe_previous as u64)).unwrap_or(0),
                };
            }
        }
        self.frame = previous;
        self.status = walk_status::COMPLETE as u32;
        previous != 0
    }

    /// # Safety
    /// `records` must be valid for writes of [`MAX_PYTHON_RECORDS`] records.
    #[inline(always)]
    unsafe fn push(
        &mut self,
        records: *mut PythonFrameRecord,
        code: u64,
        fingerprint: u64,
        instruction: i32,
        owner: u8,
        flags: u8,
    ) {
        let index = self.records as usize;
        if index < MAX_PYTHON_RECORDS {
            // 2,047 is the mask next above MAX_PYTHON_RECORDS; the scratch has room for as many.
            // SAFETY: index is inside by the check above.
            let record = unsafe { &mut *records.add(mask::<2047>(index)) };
            record.code = code;
            record.fingerprint = fingerprint;
            record.instruction = instruction;
            record.owner = owner;
            record.flags = flags;
            record.pad = 0;
            self.records = index as u32 + 1;
        }
    }
}
