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
pub mod exit;
pub mod interpreter;
pub mod process;
pub mod sampler;
pub mod remote_memory;
pub mod sys;
pub mod pipeline;
pub mod symbolize;
pub mod unwind;
