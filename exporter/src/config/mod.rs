//! Configuration: what is asked, from flags, file, environment and defaults, in this order of weight.
//!
//! In: a YAML file ([`load()`]) or the environment alone ([`from_environment`]). Out: a [`Config`] in which every
//! value is allowed and knows its [`Origin`], or all [`Fault`]s at once. One section per file; the only place of
//! defaults is [`Config::default`]. Printed ([`std::fmt::Display`]), it is YAML again, with secrets masked.

mod document;
pub mod duration;
mod effective;
mod environment;
pub mod export;
pub mod fault;
pub mod load;
pub mod origin;
mod placeholder;
pub mod processes;
pub mod sampling;
pub mod secret;
#[cfg(test)]
mod tests;
mod validate;

use std::collections::BTreeMap;
use std::time::Duration;

pub use export::{Compression, Export, RetryOnFailure, SendingQueue};
pub use fault::Fault;
pub use load::{from_environment, load};
pub use origin::{Origin, Origins};
pub use processes::Processes;
pub use sampling::{Native, RATE_HZ, Sampling};
pub use secret::Secret;

/// All that can be configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How often, and how much of each stack.
    pub sampling: Sampling,
    /// Which processes.
    pub processes: Processes,
    /// Where profiles go.
    pub export: Export,
    /// Who set each key.
    pub origins: Origins,
    /// Environment variables that were ignored, and why: to be logged.
    pub warnings: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            // Low enough to leave running, and prime, so as not to keep step with timers.
            sampling: Sampling { rate: 19, native: Native::None },
            processes: Processes { pids: Vec::new() },
            export: Export {
                endpoint: "http://localhost:4317".to_owned(),
                headers: BTreeMap::new(),
                compression: Compression::None,
                // As in the specification of OTLP exporters.
                timeout: Duration::from_secs(10),
                interval: Duration::from_secs(5),
                // As in the Collector's exporterhelper.
                retry_on_failure: RetryOnFailure {
                    enabled: true,
                    initial_interval: Duration::from_secs(5),
                    max_interval: Duration::from_secs(30),
                    max_elapsed_time: Duration::from_secs(300),
                },
                // Five minutes of windows at the default interval, as long as retries go on.
                sending_queue: SendingQueue { queue_size: 64 },
            },
            origins: Origins::default(),
            warnings: Vec::new(),
        }
    }
}
