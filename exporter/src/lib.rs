//! An OpenTelemetry profiling signal exporter for Python.
//!
//! The way of a sample, and the order in which to read:
//!
//! ```text
//! exporter-ebpf ─ ring buffer → sampler → unwind → symbolize → aggregate → otlp → deliver
//!                   beside it:  process · interpreter/python
//! ```

pub mod aggregate;
pub mod deliver;
pub mod otlp;
pub mod process;
pub mod receive;
pub mod sinks;
