//! Reading the memory of another process by `process_vm_readv`.
//!
//! Enters: a pid, an address in that process, a buffer. Leaves: the whole buffer filled, or an
//! error. The process is neither stopped nor changed.

use std::io;

/// Fills `buffer` from `address` in the process `pid`.
///
/// # Errors
///
/// `ESRCH` when the process is gone, `EPERM` when it may not be read, `EFAULT` when the memory is
/// not mapped as a whole; a short read is reported as `EFAULT`.
pub fn read_process(pid: u32, address: u64, buffer: &mut [u8]) -> io::Result<()> {
    let fault = || io::Error::from_raw_os_error(libc::EFAULT);
    if buffer.is_empty() {
        return Ok(());
    }
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    let start = usize::try_from(address).map_err(|_| fault())?;
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let remote =
        libc::iovec { iov_base: std::ptr::with_exposed_provenance_mut(start), iov_len: buffer.len() };
    // SAFETY: `local` describes `buffer`, which is borrowed mutably until after the call; `remote`
    // is only an address in the other process, which the kernel checks; both counts are 1.
    let read = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    match usize::try_from(read) {
        Ok(count) if count == buffer.len() => Ok(()),
        Ok(_) => Err(fault()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_itself_and_refuses_null() {
        let data = *b"hello";
        let mut buffer = [0; 5];
        read_process(std::process::id(), data.as_ptr().addr() as u64, &mut buffer).unwrap();
        assert_eq!(buffer, data);
        let error = read_process(std::process::id(), 8, &mut buffer).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EFAULT));
    }
}
