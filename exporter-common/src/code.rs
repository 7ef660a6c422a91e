//! The record that names a code object at first sight:
//!
//! ```text
//! CodeHeader | name_bytes | file_bytes | line_table_bytes
//! ```
//!
//! It is written by the sampled thread's own interrupt, so the code object cannot change meanwhile.

use crate::{Wire, layout};

/// Start of a code record.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct CodeHeader {
    /// [`crate::record_kind::CODE`].
    pub record_kind: u32,
    /// Process id in the exporter's pid namespace.
    pub pid: u32,
    /// Generation of the process.
    pub generation: u32,
    /// `co_firstlineno`.
    pub first_line: u32,
    /// Address of the code object.
    pub code: u64,
    /// Mix of the code object's head and of what its names hold; with the address and the
    /// generation it is the identity of the code object.
    pub fingerprint: u64,
    /// Characters of the qualified name (`str` length).
    pub name_length: u32,
    /// Characters of the file name.
    pub file_length: u32,
    /// Bytes of the line table.
    pub line_table_length: u32,
    /// Bytes of the qualified name that follow.
    pub name_bytes: u16,
    /// Bytes of the file name that follow.
    pub file_bytes: u16,
    /// Bytes of the line table that follow.
    pub line_table_bytes: u16,
    /// Bytes a character of the qualified name (1, 2, 4; 1 is Latin-1 or ASCII).
    pub name_kind: u8,
    /// Bytes a character of the file name.
    pub file_kind: u8,
    /// Zero.
    pub pad: u32,
}
layout!(CodeHeader, size 56, record_kind @ 0, pid @ 4, generation @ 8, first_line @ 12, code @ 16,
    fingerprint @ 24, name_length @ 32, file_length @ 36, line_table_length @ 40, name_bytes @ 44,
    file_bytes @ 46, line_table_bytes @ 48, name_kind @ 50, file_kind @ 51, pad @ 52);
// SAFETY: repr(C), integers only, padding explicit (layout checked above).
unsafe impl Wire for CodeHeader {}
