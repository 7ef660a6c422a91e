//! Processes: pid + start time → identity, mappings, service.

pub mod identity;
