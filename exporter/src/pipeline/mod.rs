//! The stages wired together.

pub mod profiler;
pub mod tracker;
pub mod stop;
