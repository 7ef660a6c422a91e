//! Named samples → windows. Enters: symbolized samples. Leaves: one [`window::ProfileWindow`] an interval.

pub mod frame;
pub mod window;
