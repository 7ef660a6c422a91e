//! The clock that process start times count in.

use std::{io, time::Duration};

/// Time since boot, sleep included (`CLOCK_BOOTTIME`).
///
/// # Errors
///
/// When the kernel lacks the clock (before 2.6.39).
pub fn since_boot() -> io::Result<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec that outlives the call, which only writes to it.
    if unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Ok(Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or_default()))
}
