//! What is wrong with a configuration, told so that a person can mend it.

use std::fmt;

/// One thing that is wrong: where, which key, what, and what is allowed instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The file, as the user named it.
    pub file: String,
    /// Line from 1; `None` when the fault is the file's as a whole (it can not be read).
    pub line: Option<usize>,
    /// Path of the key, such as `export.timeout`; empty for the syntax of the file.
    pub key: String,
    /// What is wrong. Never holds a header's value.
    pub problem: String,
    /// What is allowed; empty where `problem` says it.
    pub allowed: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.problem)?;
        if !self.allowed.is_empty() {
            write!(f, "; allowed: {}", self.allowed)?;
        }
        Ok(())
    }
}
