//! How the program ends: the four exit codes that scripts and service managers may rely on.

use std::process::ExitCode;

/// Why the program ends. `record -- CMD` alone ends otherwise: with the exit code of CMD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It did what was asked.
    Success,
    /// It could not; the reason is on stderr.
    Failed,
    /// The command line is wrong (`EX_USAGE` of sysexits.h).
    Usage,
    /// The kernel refused for want of privilege (the code by which test harnesses know a skip).
    MissingPrivilege,
}

impl Exit {
    /// The number that the shell sees.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failed => 1,
            Self::Usage => 64,
            Self::MissingPrivilege => 77,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_the_documented_ones() {
        let all = [Exit::Success, Exit::Failed, Exit::Usage, Exit::MissingPrivilege];
        assert_eq!(all.map(Exit::code), [0, 1, 64, 77]);
    }
}
