//! Whether profiling can work here: one question a file, each answered by [`Check`]s.

pub mod bpf;
pub mod capability;
pub mod collector;
pub mod kernel;
pub mod python;
pub mod quality;

use std::fmt;

use crate::exit::Exit;

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As needed.
    Good,
    /// Worth knowing; profiling works without.
    Note,
    /// Profiling cannot work so.
    Bad,
    /// Privilege is missing.
    Forbidden,
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was looked at.
    pub name: String,
    /// How it ended.
    pub verdict: Verdict,
    /// What is there.
    pub found: String,
    /// What has to be.
    pub needed: &'static str,
    /// What to do where it is not.
    pub cure: String,
}

impl Check {
    /// An answer.
    pub fn new(
        name: impl Into<String>,
        verdict: Verdict,
        found: impl Into<String>,
        needed: &'static str,
        cure: impl Into<String>,
    ) -> Self {
        Self { name: name.into(), verdict, found: found.into(), needed, cure: cure.into() }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.verdict {
            Verdict::Good => "ok",
            Verdict::Note => "note",
            Verdict::Bad => "BAD",
            Verdict::Forbidden => "DENIED",
        };
        write!(f, "{mark:<7}{}: found {}; needed {}", self.name, self.found, self.needed)?;
        if self.verdict != Verdict::Good && !self.cure.is_empty() {
            write!(f, "\n       cure: {}", self.cure)?;
        }
        Ok(())
    }
}

/// How to end after these: missing privilege first, since it hides the rest.
#[must_use]
pub fn exit_of(checks: &[Check]) -> Exit {
    let any = |verdict| checks.iter().any(|check| check.verdict == verdict);
    if any(Verdict::Forbidden) {
        Exit::MissingPrivilege
    } else if any(Verdict::Bad) {
        Exit::Failed
    } else {
        Exit::Success
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn privilege_wins_over_failure_and_notes_are_no_failure() {
        let of = |verdict| Check::new("x", verdict, "", "", "");
        assert_eq!(exit_of(&[of(Verdict::Good), of(Verdict::Note)]), Exit::Success);
        assert_eq!(exit_of(&[of(Verdict::Bad)]), Exit::Failed);
        assert_eq!(exit_of(&[of(Verdict::Bad), of(Verdict::Forbidden)]), Exit::MissingPrivilege);
    }
}
