//! Identity of a code object, and its naming at first sight.
//!
//! A code object is known by address, generation of the process and fingerprint. The fingerprint
//! mixes what a reused address would not repeat: the pointers to names and tables, the first line,
//! and `co_version` where the interpreter numbers its code objects (3.12+); where it does not, also
//! the length, hash and first characters of the name and the file name. What is not known is copied
//! into the ring while the thread stands still, within a budget for each sample.

use exporter_common::code::CodeHeader;
use exporter_common::limits::{MAX_FILE_BYTES, MAX_LINE_TABLE_BYTES, MAX_NAME_BYTES, SEEN_SLOTS};
use exporter_common::record_kind;
use exporter_common::sample::FRAME_UNNAMED;

use crate::memory::{Memory, at_most, mask, mix, room};
use crate::walk::{CODE_BUFFER, Walk, half_at, word_at};

/// Offset of `ob_type` in every object, and of `ob_size` in those with a variable part.
const OB_TYPE: usize = 1;
const OB_SIZE: usize = 2;
/// A string is looked at from its length on; 48 bytes hold length, hash, state and 16 characters
/// (no string object is shorter: its allocation is 64 bytes).
const TEXT_HEAD: u64 = 16;
const TEXT_BYTES: u64 = 48;
const COMPACT_AND_ASCII: u32 = 0x60;
const ASCII: u32 = 0x40;

/// Where code records go, and which code objects went already.
pub trait CodeSink {
    /// Whether this code object was sent before.
    fn is_known(&self, tag: u64) -> bool;
    /// Remembers it.
    fn remember(&mut self, tag: u64);
    /// Memory of [`exporter_common::limits::CODE_SCRATCH_BYTES`] in which to build a record, null if none.
    fn scratch(&mut self) -> *mut u8;
    /// Sends the first `length` bytes of the scratch; false when there is no room.
    fn send(&mut self, length: usize) -> bool;
    /// Counts one that was left for later.
    fn over_budget(&mut self);
}

/// Fingerprint of the code object at `address` and the flags of its frame record; `None` when it is
/// unreadable or no code object. Names it if it is not known yet.
#[inline(always)]
pub fn inspect<M: Memory, S: CodeSink>(
    walk: &mut Walk,
    address: u64,
    memory: &M,
    sink: &mut S,
) -> Option<(u64, u8)> {
    let slot = mask::<{ SEEN_SLOTS as u32 - 1 }>((address >> 5) as usize);
    // SAFETY: the mask keeps the slot inside.
    let seen = unsafe { &*walk.seen.as_ptr().add(slot) };
    if seen[0] == address && seen[1] == walk.sequence {
        let fingerprint = seen[2];
        // The lowest bit keeps whether the frame is named; it is no part of the fingerprint.
        return Some((fingerprint & !1, if fingerprint & 1 == 0 { 0 } else { FRAME_UNNAMED }));
    }
    let length = at_most::<{ CODE_BUFFER as u32 }>(walk.process.code_bytes as u64);
    // SAFETY: the code buffer has CODE_BUFFER bytes.
    if !memory.read(unsafe { room(walk.code_buffer.as_mut_ptr().cast(), length) }, address) {
        return None;
    }
    if walk.code_buffer[OB_TYPE] != walk.process.code_type {
        return None;
    }
    let fingerprint = fingerprint(walk, memory) & !1;
    let tag = mix(address ^ mix(fingerprint ^ walk.process.generation as u64));
    let mut unnamed = 0u8;
    if !sink.is_known(tag) {
        if walk.budget == 0 {
            sink.over_budget();
            unnamed = FRAME_UNNAMED;
        } else {
            walk.budget -= 1;
            if send(walk, address, fingerprint, memory, sink) {
                sink.remember(tag);
            } else {
                unnamed = FRAME_UNNAMED;
            }
        }
    }
    // SAFETY: as above.
    let seen = unsafe { &mut *walk.seen.as_mut_ptr().add(slot) };
    seen[0] = address;
    seen[1] = walk.sequence;
    seen[2] = fingerprint | (unnamed != 0) as u64;
    Some((fingerprint, unnamed))
}

#[inline(always)]
fn fingerprint<M: Memory>(walk: &mut Walk, memory: &M) -> u64 {
    let process = walk.process;
    let head = walk.code_buffer.as_ptr();
    let name = word_at::<0xf8>(head, process.code_qualname);
    let file = word_at::<0xf8>(head, process.code_filename);
    let mut value = mix(walk.code_buffer[OB_SIZE] ^ first_line(walk) as u64);
    value = mix(value ^ name);
    value = mix(value ^ file);
    value = mix(value ^ word_at::<0xf8>(head, process.code_line_table));
    let version = if process.code_version == 0 { 0 } else { half_at::<0xfc>(head, process.code_version) };
    if version != 0 {
        return mix(value ^ version as u64);
    }
    let text = walk.text_buffer.as_mut_ptr();
    // SAFETY: the text buffer has 128 bytes; the two reads fill 48 each. An unreadable string leaves
    // what was there before; it is unnamed either way.
    unsafe {
        memory.read(room(text.cast(), TEXT_BYTES), name.wrapping_add(TEXT_HEAD));
        memory.read(room(text.add(8).cast(), TEXT_BYTES), file.wrapping_add(TEXT_HEAD));
    }
    let words = &walk.text_buffer;
    for index in [0, 1, 4, 5, 8, 9, 12, 13] {
        value = mix(value ^ words[index]);
    }
    value
}

#[inline(always)]
fn first_line(walk: &Walk) -> u32 {
    half_at::<0xfc>(walk.code_buffer.as_ptr(), walk.process.code_first_line)
}

/// One string copied behind what is there; `None` when it is unreadable or of an unknown form.
struct Text {
    length: u32,
    bytes: u64,
    kind: u8,
}

#[inline(always)]
fn copy_text<M: Memory, const LIMIT: u32>(
    process: &exporter_common::python::PythonProcess,
    object: u64,
    to: *mut u8,
    memory: &M,
) -> Option<Text> {
    let length = memory.word(object.wrapping_add(process.str_length as u64))?;
    let state = memory.half(object.wrapping_add(process.str_state as u64))?;
    let kind = (state >> 2) & 7;
    let (data, size) = match state & COMPACT_AND_ASCII {
        COMPACT_AND_ASCII => (process.str_ascii_data, 1),
        ASCII | 0 => return None,
        _ => (process.str_compact_data, kind as u64),
    };
    let bytes = at_most::<LIMIT>(length.wrapping_mul(size));
    // SAFETY: the caller keeps LIMIT bytes free behind `to`.
    if !memory.read(unsafe { room(to, bytes) }, object.wrapping_add(data as u64)) {
        return None;
    }
    Some(Text { length: length as u32, bytes, kind: size as u8 })
}

#[inline(always)]
fn send<M: Memory, S: CodeSink>(
    walk: &mut Walk,
    address: u64,
    fingerprint: u64,
    memory: &M,
    sink: &mut S,
) -> bool {
    let scratch = sink.scratch();
    if scratch.is_null() {
        return false;
    }
    let process = &walk.process;
    let head = walk.code_buffer.as_ptr();
    let start = core::mem::size_of::<CodeHeader>();
    // SAFETY: the scratch holds a header and the three pieces at their limits (asserted in limits.rs).
    let name = unsafe { scratch.add(start) };
    let Some(name) = copy_text::<M, { MAX_NAME_BYTES as u32 }>(
        process,
        word_at::<0xf8>(head, process.code_qualname),
        name,
        memory,
    ) else {
        return false;
    };
    let mut length = start + mask::<{ 2 * MAX_NAME_BYTES as u32 - 1 }>(name.bytes as usize);
    // SAFETY: as above.
    let file = unsafe { scratch.add(length) };
    let Some(file) = copy_text::<M, { MAX_FILE_BYTES as u32 }>(
        process,
        word_at::<0xf8>(head, process.code_filename),
        file,
        memory,
    ) else {
        return false;
    };
    length += mask::<{ 2 * MAX_FILE_BYTES as u32 - 1 }>(file.bytes as usize);
    let table = word_at::<0xf8>(head, process.code_line_table);
    let Some(table_length) = memory.word(table.wrapping_add(process.bytes_size as u64)) else { return false };
    let table_bytes = at_most::<{ MAX_LINE_TABLE_BYTES as u32 }>(table_length);
    // SAFETY: as above.
    let table_read = unsafe {
        memory.read(room(scratch.add(length), table_bytes), table.wrapping_add(process.bytes_data as u64))
    };
    if !table_read {
        return false;
    }
    length += mask::<{ 2 * MAX_LINE_TABLE_BYTES as u32 - 1 }>(table_bytes as usize);
    // SAFETY: the scratch begins with room for a header and is aligned to 8.
    let header = unsafe { &mut *scratch.cast::<CodeHeader>() };
    header.record_kind = record_kind::CODE;
    header.pid = walk.pid;
    header.generation = process.generation;
    header.first_line = first_line(walk);
    header.code = address;
    header.fingerprint = fingerprint;
    header.name_length = name.length;
    header.file_length = file.length;
    header.line_table_length = if table_length > u32::MAX as u64 { u32::MAX } else { table_length as u32 };
    header.name_bytes = name.bytes as u16;
    header.file_bytes = file.bytes as u16;
    header.line_table_bytes = table_bytes as u16;
    header.name_kind = name.kind;
    header.file_kind = file.kind;
    header.pad = 0;
    sink.send(length)
}
