//! Wire types shared by the eBPF programs (`exporter-ebpf`) and the exporter.
//!
//! What is here lies in BPF maps and in ring buffer records, byte for byte. So every type is
//! `repr(C)`, made of integers only, with explicit padding, and its size and offsets are checked at
//! compile time beside its definition. Both sides are built from this one crate; the records never
//! leave the machine, so there is no version field: the object is embedded in the binary.
//!
//! | file | what |
//! |---|---|
//! | `limits.rs` | every bound of the kernel side, with its reason |
//! | `sample.rs` | the record of one sample: header, frame records |
//! | `code.rs` | the record that names a code object at first sight |
//! | `python.rs` | what the walk must know of one process |
//! | `process_event.rs` | exec, fork and exit notices |
//! | `counter.rs` | every kernel-side count |
//! | `walk_status.rs` | how a Python walk ended |
#![no_std]

pub mod code;
pub mod counter;
pub mod limits;
pub mod process_event;
pub mod python;
pub mod sample;
pub mod walk_status;

/// Ring buffer records start with one of these in their first four bytes.
pub mod record_kind {
    /// A [`crate::sample::SampleHeader`] and its frame records.
    pub const SAMPLE: u32 = 1;
    /// A [`crate::code::CodeHeader`] and its bytes.
    pub const CODE: u32 = 2;
    /// A [`crate::process_event::ProcessEvent`].
    pub const PROCESS: u32 = 3;
}

/// Declares that a wire type may be seen as bytes.
///
/// # Safety
/// The type must be `repr(C)`, made of integers without implicit padding.
pub unsafe trait Wire: Copy + 'static {}
// SAFETY: a plain integer.
unsafe impl Wire for u32 {}

/// Asserts at compile time the size of a wire type and the offset of each named field.
#[macro_export]
macro_rules! layout {
    ($type:ty, size $size:expr, $($field:ident @ $offset:expr),+ $(,)?) => {
        const _: () = {
            assert!(core::mem::size_of::<$type>() == $size, "size of a wire type changed");
            $(assert!(core::mem::offset_of!($type, $field) == $offset, "offset of a wire field changed");)+
        };
    };
}
