//! Processes: pid + start time → identity, mappings, service.

pub mod container;
pub mod growth;
pub mod identity;
pub mod mappings;
pub mod registry;
pub mod service;
pub mod stat;
