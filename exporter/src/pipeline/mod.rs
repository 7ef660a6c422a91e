//! The stages wired together.

pub mod pause;
pub mod profiler;
pub mod stop;
pub mod tracker;
