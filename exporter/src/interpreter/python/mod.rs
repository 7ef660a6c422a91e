//! CPython: from a pid to what the walk needs, and from a code object to names and lines.
//!
//! ```text
//! pid → detect → PythonProcess (to the walk)
//! code record or address → code_object → line_table → line
//! ```

pub mod build;
pub mod code_object;
pub mod debug_offsets;
pub mod detect;
pub mod elf;
pub mod elf_parts;
pub mod files;
pub mod fingerprint;
pub mod hint;
pub mod line_table;
pub mod live_check;
pub mod machine_code;
pub mod offsets;
pub mod route;
pub mod scan;
pub mod symbols;
pub mod text;
pub mod thread_state;
pub mod tls_search;
pub mod version;

pub use build::{Build, BuildKind, LayoutSource, Missing};
pub use detect::{Detected, NotPython, detect};
pub use files::Cache;
