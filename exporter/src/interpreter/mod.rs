//! Language runtimes: finding them in a process, and reading what their stacks refer to.

pub mod python;
