//! The stages wired together.

pub mod profiler;
pub mod stop;
pub mod tracker;
