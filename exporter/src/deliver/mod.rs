//! Requests → a Collector. Enters: encoded requests, through [`queue`]. Leaves: their [`outcome`], counted.
//!
//! ```text
//! otlp → queue (bounded, oldest dropped) → exporter task: send → outcome → retry by backoff, or count
//! ```
//! What is retried is decided by the OTLP table in [`outcome`] and nowhere else; how long to wait by
//! [`backoff`], a pure value. Nothing is lost without a counter.

pub mod backoff;
pub mod exporter;
pub mod grpc;
pub mod outcome;
pub mod queue;

#[cfg(test)]
mod tests;
