//! Kernel side → [`raw::RawSample`]. Loads and attaches the eBPF programs, drains the ring buffers,
//! checks every record before it is believed.

pub mod counters;
pub mod decode;
pub mod kernel_offsets;
pub mod loader;
pub mod raw;
