//! Versions of CPython, and which of them can be walked.

use std::fmt;

/// A version as `PY_VERSION_HEX` packs it.
///
/// Layout: `Include/patchlevel.h` of CPython (tag v3.13.0): major, minor, micro a byte each, then
/// release level (0xA alpha, 0xB beta, 0xC candidate, 0xF final) and serial, 4 bits each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32);

impl Version {
    /// Bytes in which the text of a version and the zero behind it lie.
    pub const TEXT_BYTES: usize = 24;

    /// Reads `PY_VERSION` (`3.8.18`, `3.10.0rc2`, `3.9.2+`), which a zero ends; `None` for other text.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let text = bytes.split(|byte| *byte == 0).next().filter(|text| text.len() < bytes.len())?;
        let text = std::str::from_utf8(text).ok()?;
        let text = text.strip_suffix('+').unwrap_or(text);
        let (major, rest) = text.split_once('.')?;
        let (minor, rest) = rest.split_once('.')?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (micro, level) = rest.split_at_checked(digits)?;
        let (level, serial) = match level {
            "" => (0xf, ""),
            _ => [("a", 0xa), ("b", 0xb), ("rc", 0xc)]
                .into_iter()
                .find_map(|(name, number)| Some((number, level.strip_prefix(name)?)))?,
        };
        let number = |text: &str| -> Option<u32> {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| text.parse::<u8>().ok())?.map(u32::from)
        };
        let serial = if level == 0xf { 0 } else { number(serial).filter(|serial| *serial < 16)? };
        Some(Self(number(major)? << 24 | number(minor)? << 16 | number(micro)? << 8 | level << 4 | serial))
    }

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
    fn text() {
        let parse = |text: &[u8]| Version::parse(text).map(|version| version.0);
        assert_eq!(parse(b"3.8.18\0xx"), Some(0x0308_12f0));
        assert_eq!(parse(b"3.10.0rc2\0"), Some(0x030a_00c2));
        assert_eq!(parse(b"3.9.2+\0"), Some(0x0309_02f0));
        for other in
            ["3.8.18", "3.8\0", "3.8.\0", "a.8.1\0", "3.8.1x\0", "3.8.1b\0", "3.-8.1\0", "%.80s\0", "\0"]
        {
            assert_eq!(parse(other.as_bytes()), None, "{other:?}");
        }
    }

    #[test]
    fn forms() {
        assert_eq!(Version(0x030c_01f0).to_string(), "3.12.1");
        assert_eq!(Version(0x030d_00c2).to_string(), "3.13.0rc2");
        assert_eq!(Version(0x030d_00b1).to_string(), "3.13.0b1");
    }
}
