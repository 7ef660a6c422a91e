//! All unsafe code of the user side; every other module forbids it.

pub mod wire;
