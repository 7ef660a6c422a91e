//! Calls of the operating system: all `unsafe` of the user side is in here.

pub mod clock;
pub mod remote_read;
