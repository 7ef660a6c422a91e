//! One verb of the command line a file, each thin: read, call, print, say how to end.

pub mod check_config;
pub mod demo;
pub mod doctor;
pub mod receive;
pub mod record;
pub mod run;
