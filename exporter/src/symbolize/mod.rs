//! Frame records → named frames.

pub mod python;
