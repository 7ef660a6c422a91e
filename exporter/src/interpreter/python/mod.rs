//! CPython: from a pid to what the walk needs, and from a code object to names and lines.
//!
//! ```text
//! pid → detect → PythonProcess (to the walk)
//! code record or address → code_object → line_table → line
//! ```

pub mod code_object;
pub mod debug_offsets;
pub mod detect;
pub mod elf;
pub mod fingerprint;
pub mod line_table;
pub mod live_check;
pub mod machine_code;
pub mod offsets;
pub mod text;
pub mod thread_state;
pub mod version;

pub use detect::{BuildKind, Cache, Detected, LayoutSource, NotPython, detect};
