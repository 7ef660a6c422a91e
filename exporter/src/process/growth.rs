//! Whether a process has mapped new code since the last look, at the price of one small file: its
//! mappings are read only when its size has changed by more than a libpython could hide in.

use std::{
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io,
};

use super::mappings::{self, Mapping};

/// Pages by which the size must differ until mappings are read: 1 MiB of 4 KiB pages. The smallest
/// libpython (3.6 to 3.15, stripped) has 2.5 MiB.
const PAGES: u64 = 256;

/// What a process had mapped when it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedCode {
    /// Size of its address space, pages.
    pages: u64,
    /// Hash of the files that it runs code of.
    files: u64,
}

/// What a look shows.
#[derive(Debug)]
pub enum Growth {
    /// No new code.
    Same(MappedCode),
    /// Perhaps new code; the mappings.
    Changed(MappedCode, Vec<Mapping>),
    /// It has no memory: a kernel thread, or a process that ends.
    Nothing,
}

/// Looks at a process that was `seen` so.
///
/// # Errors
/// When the process is gone or may not be read.
pub fn look(pid: u32, seen: Option<MappedCode>) -> io::Result<Growth> {
    let pages = pages(&fs::read(format!("/proc/{pid}/statm"))?);
    if pages == 0 {
        return Ok(Growth::Nothing);
    }
    if let Some(seen) = seen.filter(|seen| seen.pages.abs_diff(pages) < PAGES) {
        return Ok(Growth::Same(seen));
    }
    let maps = mappings::read(pid)?;
    if maps.is_empty() {
        return Ok(Growth::Nothing);
    }
    let now = MappedCode { pages, files: files(&maps) };
    Ok(match seen {
        Some(seen) if seen.files == now.files => Growth::Same(now),
        Some(_) | None => Growth::Changed(now, maps),
    })
}

/// The first field of `/proc/PID/statm`: size in pages (Linux `Documentation/filesystems/proc.rst`).
fn pages(text: &[u8]) -> u64 {
    let field = text.split(|byte| !byte.is_ascii_digit()).next().unwrap_or_default();
    std::str::from_utf8(field).ok().and_then(|field| field.parse().ok()).unwrap_or_default()
}

fn files(maps: &[Mapping]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for mapping in maps.iter().filter(|mapping| mapping.is_executable() && mapping.is_file()) {
        (mapping.dev, mapping.inode, mapping.start).hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_memory_is_the_same_until_code_is_mapped() {
        let own = std::process::id();
        let Growth::Changed(seen, maps) = look(own, None).unwrap() else { panic!("no first look") };
        assert!(!maps.is_empty());
        assert!(matches!(look(own, Some(seen)), Ok(Growth::Same(it)) if it == seen));
        // As if it had been smaller: the mappings are read, and hold the same code.
        let smaller = MappedCode { pages: seen.pages - PAGES, ..seen };
        assert!(matches!(look(own, Some(smaller)), Ok(Growth::Same(it)) if it.pages >= seen.pages));
        let other = MappedCode { files: !seen.files, ..smaller };
        assert!(matches!(look(own, Some(other)), Ok(Growth::Changed(..))));
        assert!(look(u32::MAX, None).is_err());
    }

    #[test]
    fn sizes() {
        assert_eq!(pages(b"4321 12 3 1 0 5 0\n"), 4321);
        assert_eq!(pages(b"0 0 0 0 0 0 0\n"), 0);
        assert_eq!(pages(b"99999999999999999999 1"), 0);
        assert_eq!(pages(b""), 0);
    }
}
