//! Windows → files for people: folded stacks and the flame graph drawn from them.

pub mod flamegraph;
pub mod folded;
