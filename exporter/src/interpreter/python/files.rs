//! The files behind a process's mappings, opened as the process itself has them, and what was read of
//! them.
//!
//! A path is never believed by itself: it may lead to another file outside the process's mount
//! namespace, or the file may have been replaced or deleted since. In order:
//!
//! ```text
//! /proc/PID/map_files/START-END   the very file; needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE
//! /proc/PID/exe                   the very file too, of the executable only
//! /proc/PID/root/PATH             the process's own root, if its head is what the process has mapped
//! ```

use std::{
    collections::HashMap,
    fs::{self, File, Metadata},
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    sync::Arc,
};

use super::elf::ElfFacts;
use crate::{
    process::mappings::Mapping,
    remote_memory::{ProcessMemory, RemoteMemory as _},
};

/// Most files remembered in each of the two halves of the cache.
const CACHE_FILES: usize = 1_024;
/// Bytes at the start of a file that tell one build from another: program headers and, in every
/// distribution's linker script, the build ID behind them.
const HEAD_BYTES: usize = 1_024;

/// A file's identity: device, inode, bytes, time of last change.
type FileKey = (u64, u64, u64, i64, i64);

/// What is known of files, bounded: when the younger half is full, the older is forgotten.
#[derive(Debug, Default)]
pub struct Cache {
    young: HashMap<FileKey, Arc<ElfFacts>>,
    old: HashMap<FileKey, Arc<ElfFacts>>,
    /// Files read.
    reads: u64,
}

impl Cache {
    /// An empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of files read so far: those that were not known.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.reads
    }

    /// Findings of the file behind a mapping of `maps`.
    ///
    /// # Errors
    /// When the file cannot be reached, or is not the one that the process has mapped.
    pub fn facts(&mut self, pid: u32, maps: &[Mapping], mapping: &Mapping) -> io::Result<Arc<ElfFacts>> {
        let (path, metadata) = reach(pid, maps, mapping)?;
        if !metadata.is_file() {
            return Ok(Arc::default());
        }
        let key = file_key(&metadata);
        if let Some(facts) = self.young.get(&key) {
            return Ok(Arc::clone(facts));
        }
        let facts = match self.old.remove(&key) {
            Some(facts) => facts,
            None => {
                self.reads += 1;
                Arc::new(ElfFacts::read(File::open(path)?))
            }
        };
        if self.young.len() >= CACHE_FILES {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, Arc::clone(&facts));
        Ok(facts)
    }
}

fn file_key(metadata: &Metadata) -> FileKey {
    (metadata.dev(), metadata.ino(), metadata.size(), metadata.mtime(), metadata.mtime_nsec())
}

/// A path that leads to the mapped file, whatever its name is now.
fn reach(pid: u32, maps: &[Mapping], mapping: &Mapping) -> io::Result<(String, Metadata)> {
    let by_mapping = format!("/proc/{pid}/map_files/{:x}-{:x}", mapping.start, mapping.end);
    if let Ok(metadata) = fs::metadata(&by_mapping) {
        return Ok((by_mapping, metadata));
    }
    let by_exe = format!("/proc/{pid}/exe");
    if let Ok(metadata) = fs::metadata(&by_exe)
        && metadata.ino() == mapping.inode
        && is_same(pid, maps, mapping, &by_exe)
    {
        return Ok((by_exe, metadata));
    }
    let by_path = format!("/proc/{pid}/root{}", mapping.path);
    let metadata = fs::metadata(&by_path)?;
    if metadata.is_file() && !is_same(pid, maps, mapping, &by_path) {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the file was replaced since the process began"));
    }
    Ok((by_path, metadata))
}

/// Whether the file begins with what the process has mapped of its start.
fn is_same(pid: u32, maps: &[Mapping], mapping: &Mapping, path: &str) -> bool {
    let head = maps.iter().find(|other| {
        (other.dev, other.inode) == (mapping.dev, mapping.inode)
            && other.offset == 0
            && other.perms[0] == b'r'
    });
    let Some(head) = head else { return false };
    let (mut mapped, mut read) = ([0; HEAD_BYTES], [0; HEAD_BYTES]);
    let is_read = File::open(path).and_then(|mut file| file.read_exact(&mut read)).is_ok();
    is_read && ProcessMemory { pid }.read(head.start, &mut mapped).is_ok() && mapped == read
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::mappings;

    #[test]
    fn a_file_is_the_mapped_one_or_none() {
        let own = std::process::id();
        let maps = mappings::read(own).unwrap();
        let exe = fs::read_link("/proc/self/exe").unwrap();
        let is_code = |mapping: &&Mapping| mapping.is_executable() && mapping.path == exe.to_string_lossy();
        let code = maps.iter().find(is_code).unwrap();
        assert!(is_same(own, &maps, code, &code.path));
        let other =
            maps.iter().find(|it| it.is_file() && it.is_executable() && it.path != code.path).unwrap();
        assert!(!is_same(own, &maps, code, &other.path));
        assert!(!is_same(own, &maps, code, "/dev/null"));
        assert!(!is_same(u32::MAX, &maps, code, &code.path));
    }
}
