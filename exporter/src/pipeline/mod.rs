//! The stages wired together.

pub mod agenda;
pub mod detector;
pub mod pause;
pub mod profiler;
pub mod stop;
pub mod tracker;
