//! Where each value of a configuration came from.

use std::collections::BTreeMap;
use std::fmt;

/// Who set a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody: the default.
    Default,
    /// The configuration file.
    File {
        /// Line of the key, from 1.
        line: usize,
    },
    /// An environment variable, by name.
    Environment(&'static str),
    /// A flag, as written.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { line } => write!(f, "line {line}"),
            Self::Environment(name) => write!(f, "environment: {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// Origins by key path, such as `export.timeout`; a key that is not in it has its default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins(BTreeMap<String, Origin>);

impl Origins {
    /// Who set `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Origin {
        self.0.get(key).cloned().unwrap_or(Origin::Default)
    }

    /// Records who set `key`.
    pub fn set(&mut self, key: impl Into<String>, origin: Origin) {
        self.0.insert(key.into(), origin);
    }
}
