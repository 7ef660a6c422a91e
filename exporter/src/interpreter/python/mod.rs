//! CPython: from a pid to what the walk needs, and from a code object to names and lines.
//!
//! ```text
//! pid → detect → PythonProcess (to the walk)
//! code record or address → code_object → line_table → line
//! ```

pub mod fingerprint;
pub mod line_table;
pub mod text;
