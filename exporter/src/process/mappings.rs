//! The mappings of a process, out of `/proc/PID/maps`.
//!
//! The text is untrusted (the target chooses its file names): a line that is not understood is left
//! out, and no line can be more than one mapping, since the kernel escapes line breaks in paths.

use std::{fs, io};

/// One mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Address after the last.
    pub end: u64,
    /// `r`, `w`, `x` and `p` (private) or `s` (shared), `-` where not.
    pub perms: [u8; 4],
    /// Byte offset in the file.
    pub offset: u64,
    /// Major and minor number of the device.
    pub dev: (u32, u32),
    /// Inode number, 0 for memory without a file.
    pub inode: u64,
    /// Path or name such as `[stack]`, without ` (deleted)`; empty for anonymous memory.
    pub path: String,
    /// Whether the file has been deleted.
    pub deleted: bool,
}

impl Mapping {
    /// Whether code can run from it.
    #[must_use]
    pub fn is_executable(&self) -> bool {
        self.perms[2] == b'x'
    }

    /// Whether a file lies behind it.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.inode != 0 && self.path.starts_with('/')
    }
}

/// Reads the mappings of a process.
///
/// # Errors
///
/// When the process is gone or may not be read.
pub fn read(pid: u32) -> io::Result<Vec<Mapping>> {
    fs::read(format!("/proc/{pid}/maps")).map(|text| parse(&text))
}

/// All mappings of the text, in its order.
#[must_use]
pub fn parse(text: &[u8]) -> Vec<Mapping> {
    text.split(|&byte| byte == b'\n').filter_map(parse_line).collect()
}

/// `START-END PERMS OFFSET MAJOR:MINOR INODE   PATH`
fn parse_line(line: &[u8]) -> Option<Mapping> {
    let mut rest = line;
    let (start, end) = split_pair(field(&mut rest)?, b'-')?;
    let (start, end) = (hex(start)?, hex(end)?);
    let perms = field(&mut rest)?.try_into().ok()?;
    let offset = hex(field(&mut rest)?)?;
    let (major, minor) = split_pair(field(&mut rest)?, b':')?;
    let dev = (hex(major)?.try_into().ok()?, hex(minor)?.try_into().ok()?);
    let inode = std::str::from_utf8(field(&mut rest)?).ok()?.parse().ok()?;
    let path = String::from_utf8_lossy(rest.trim_ascii_start()).replace("\\012", "\n");
    let (path, deleted) = match path.strip_suffix(" (deleted)") {
        Some(path) => (path.to_owned(), true),
        None => (path, false),
    };
    (start < end).then_some(Mapping { start, end, perms, offset, dev, inode, path, deleted })
}

/// Takes the bytes up to the next space.
fn field<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
    let (field, after) = rest.split_at_checked(end)?;
    *rest = after.get(1..).unwrap_or_default();
    (!field.is_empty()).then_some(field)
}

fn split_pair(bytes: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|&byte| byte == separator)?;
    Some((bytes.get(..at)?, bytes.get(at + 1..)?))
}

fn hex(bytes: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(bytes).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_lines() {
        let text = b"00400000-0041f000 r-xp 0001f000 fd:01 1234                           /opt/a b\\012c (deleted)\n\
            7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n\
            7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]\n\
            garbage\n\
            2000-1000 r--p 0 0:0 0\n";
        let found = parse(text);
        assert_eq!(found.len(), 3);
        assert_eq!(found[0].path, "/opt/a b\nc");
        assert!(found[0].deleted && found[0].is_executable() && found[0].is_file());
        assert_eq!((found[0].start, found[0].end, found[0].offset), (0x40_0000, 0x41_f000, 0x1_f000));
        assert_eq!((found[0].dev, found[0].inode), ((0xfd, 1), 1234));
        assert_eq!(found[1].path, "");
        assert_eq!(found[2].path, "[stack]");
        assert!(!found[2].is_file());
    }

    #[test]
    fn own_mappings_hold_own_code() {
        let address = (kinds_of_lines as fn()) as usize as u64;
        let found = read(std::process::id()).unwrap();
        let own = found.iter().find(|mapping| mapping.start <= address && address < mapping.end).unwrap();
        assert!(own.is_executable() && own.is_file());
    }
}
