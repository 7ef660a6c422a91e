//! The memory of a target process, behind a trait so that tests can bring an image of their own.
//!
//! What is read here is untrusted: callers bound every length before they read.

use std::io;

use crate::sys::remote_read;

/// A read of a target's memory that did not succeed.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {length} bytes at {address:#x} of the target: {source}")]
pub struct ReadError {
    /// Where the read began.
    pub address: u64,
    /// Bytes asked for.
    pub length: usize,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

impl ReadError {
    /// Whether the target process is gone.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.source.raw_os_error() == Some(libc::ESRCH)
    }

    /// Whether reading the target is forbidden.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        self.source.raw_os_error() == Some(libc::EPERM)
    }
}

/// Memory that can be read by address; all or nothing.
pub trait RemoteMemory {
    /// Fills the whole of `buffer` from `address` on.
    ///
    /// # Errors
    ///
    /// When a part of the range cannot be read.
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), ReadError>;

    /// One little-endian 64-bit word.
    ///
    /// # Errors
    ///
    /// As [`RemoteMemory::read`].
    fn read_u64(&self, address: u64) -> Result<u64, ReadError> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// One little-endian 32-bit word.
    ///
    /// # Errors
    ///
    /// As [`RemoteMemory::read`].
    fn read_u32(&self, address: u64) -> Result<u32, ReadError> {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }
}

/// The memory of a live process.
#[derive(Clone, Copy, Debug)]
pub struct ProcessMemory {
    /// Process id in the exporter's pid namespace.
    pub pid: u32,
}

impl RemoteMemory for ProcessMemory {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), ReadError> {
        remote_read::read_process(self.pid, address, buffer).map_err(|source| ReadError {
            address,
            length: buffer.len(),
            source,
        })
    }
}

/// A memory image made by hand: pieces at addresses. For tests and captured memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryImage {
    pieces: Vec<(u64, Vec<u8>)>,
}

impl MemoryImage {
    /// Adds a piece; a later piece wins over an earlier one that it overlaps.
    pub fn put(&mut self, address: u64, bytes: impl Into<Vec<u8>>) {
        self.pieces.push((address, bytes.into()));
    }
}

impl RemoteMemory for MemoryImage {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), ReadError> {
        let found = self.pieces.iter().rev().find_map(|(start, bytes)| {
            let from = usize::try_from(address.checked_sub(*start)?).ok()?;
            bytes.get(from..from.checked_add(buffer.len())?)
        });
        match found {
            Some(bytes) => {
                buffer.copy_from_slice(bytes);
                Ok(())
            }
            None => {
                let source = io::Error::from_raw_os_error(libc::EFAULT);
                Err(ReadError { address, length: buffer.len(), source })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_reads_whole_ranges_only() {
        let mut image = MemoryImage::default();
        image.put(0x1000, 7_u64.to_le_bytes());
        assert_eq!(image.read_u64(0x1000).unwrap(), 7);
        assert_eq!(image.read_u32(0x1004).unwrap(), 0);
        assert!(image.read_u64(0x1001).is_err());
        assert!(image.read_u64(0xfff).is_err());
        assert!(image.read_u64(u64::MAX).is_err());
    }
}
