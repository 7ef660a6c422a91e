//! The clocks: the one process start times count in, the one samples are stamped with, and wall time.

use std::{
    io,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Time since boot, sleep included (`CLOCK_BOOTTIME`).
///
/// # Errors
///
/// When the kernel lacks the clock (before 2.6.39).
pub fn since_boot() -> io::Result<Duration> {
    read(libc::CLOCK_BOOTTIME)
}

/// Time since the Unix epoch; zero when the wall clock stands before it.
#[must_use]
pub fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// A duration in nanoseconds; zero beyond the 584 years that fit.
#[must_use]
pub fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or_default()
}

/// Nanoseconds to add to `CLOCK_MONOTONIC` to have nanoseconds since the Unix epoch.
///
/// # Errors
///
/// When the kernel lacks the clock.
pub fn monotonic_to_unix_ns() -> io::Result<u64> {
    let monotonic = read(libc::CLOCK_MONOTONIC)?;
    Ok(nanoseconds(since_epoch().saturating_sub(monotonic)))
}

fn read(clock: libc::clockid_t) -> io::Result<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec that outlives the call, which only writes to it.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Ok(Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or_default()))
}
