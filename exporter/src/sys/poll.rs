//! Waiting for a descriptor.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Waits until the descriptor can be read or the time is over; true when it can be read. An
/// interruption by a signal counts as the end of the time.
///
/// # Errors
/// What poll(2) says, but for EINTR.
pub fn readable(descriptor: BorrowedFd<'_>, timeout: Duration) -> io::Result<bool> {
    let mut entry = libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let milliseconds = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: one valid pollfd, and the descriptor is borrowed for the call.
    let ready = unsafe { libc::poll(&raw mut entry, 1, milliseconds) };
    if ready < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::Interrupted { Ok(false) } else { Err(error) };
    }
    Ok(ready > 0)
}
