//! An OpenTelemetry profiling signal exporter for Python.
//!
//! The way of a sample, and the order in which to read:
//!
//! ```text
//! exporter-ebpf ─ ring buffer → sampler → unwind → symbolize → aggregate → otlp → deliver
//!                   beside it:  process · interpreter/python
//! ```

pub mod aggregate;
pub mod cli;
pub mod commands;
pub mod config;
pub mod deliver;
pub mod doctor;
pub mod exit;
pub mod interpreter;
pub mod otlp;
pub mod pipeline;
pub mod process;
pub mod receive;
pub mod remote_memory;
pub mod sampler;
pub mod say;
pub mod sinks;
pub mod symbolize;
pub mod sys;
pub mod unwind;
