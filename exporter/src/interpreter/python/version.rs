//! Versions of CPython, and which of them can be walked.

use std::fmt;

/// A version as `PY_VERSION_HEX` packs it.
///
/// Layout: `Include/patchlevel.h` of CPython (tag v3.13.0): major, minor, micro a byte each, then
/// release level (0xA alpha, 0xB beta, 0xC candidate, 0xF final) and serial, 4 bits each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32);

impl Version {
    /// Major number.
    #[must_use]
    pub fn major(self) -> u8 {
        (self.0 >> 24) as u8
    }

    /// Minor number.
    #[must_use]
    pub fn minor(self) -> u8 {
        (self.0 >> 16) as u8
    }

    /// Micro number.
    #[must_use]
    pub fn micro(self) -> u8 {
        (self.0 >> 8) as u8
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major(), self.minor(), self.micro())?;
        match (self.0 >> 4 & 15, self.0 & 15) {
            (0xa, serial) => write!(f, "a{serial}"),
            (0xb, serial) => write!(f, "b{serial}"),
            (0xc, serial) => write!(f, "rc{serial}"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        assert_eq!(Version(0x030c_01f0).to_string(), "3.12.1");
        assert_eq!(Version(0x030d_00c2).to_string(), "3.13.0rc2");
        assert_eq!(Version(0x030d_00b1).to_string(), "3.13.0b1");
    }
}
