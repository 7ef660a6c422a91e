//! Frame records of a sample → the whole stack, in true order, and how whole it is.

pub mod merge;
