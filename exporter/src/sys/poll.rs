//! Waiting for descriptors.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Waits until one of the descriptors can be read or the time is over; true when one can be read. An
/// interruption by a signal counts as the end of the time.
///
/// # Errors
/// What poll(2) says, but for EINTR.
pub fn readable<const COUNT: usize>(
    descriptors: &[BorrowedFd<'_>; COUNT],
    timeout: Duration,
) -> io::Result<bool> {
    let mut entries =
        descriptors.map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    let milliseconds = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: COUNT valid entries, and the descriptors are borrowed for the call.
    let ready = unsafe { libc::poll(entries.as_mut_ptr(), COUNT as libc::nfds_t, milliseconds) };
    if ready < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::Interrupted { Ok(false) } else { Err(error) };
    }
    Ok(ready > 0)
}
