//! Windows → OTLP. Enters: a [`crate::aggregate::window::ProfileWindow`]. Leaves: requests that every
//! receiver takes, each below the size limit. Read [`dictionary`] first, then [`profile`], then [`split`].
//!
//! [`validate`] checks a request, of this exporter or of any other; [`read`] turns one back into samples.

pub mod dictionary;
pub mod halve;
pub mod profile;
pub mod read;
pub mod resource;
pub mod split;
pub mod validate;

#[cfg(test)]
pub(crate) mod fixture;
