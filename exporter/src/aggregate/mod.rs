//! Named samples → windows. Enters: symbolized samples. Leaves: one [`window::ProfileWindow`] an interval.

pub mod aggregator;
pub mod frame;
pub mod window;
