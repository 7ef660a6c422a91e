//! When a process began and whether it still lives, out of `/proc/PID/stat`.

use std::{fs, io, path::PathBuf, sync::OnceLock, time::Duration};

use crate::sys::clock;

/// Nanoseconds of a clock tick (`USER_HZ` is 100 on every architecture supported).
pub const TICK_NS: u64 = 10_000_000;

/// What is needed of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessStat {
    /// State letter (field 3): `Z` is a zombie.
    pub state: u8,
    /// Start, clock ticks since boot (field 22).
    pub start_ticks: u64,
}

/// Reads a process's stat; a missing process is [`io::ErrorKind::NotFound`].
///
/// # Errors
///
/// When the process is gone, or its stat is not understood.
pub fn read(pid: u32) -> io::Result<ProcessStat> {
    let text = fs::read(format!("/proc/{pid}/stat"))?;
    parse(&text)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "/proc/PID/stat has an unknown form"))
}

/// Parses the text. The name of the process (field 2) is free text in brackets: the fields are
/// counted from the last closing one.
#[must_use]
pub fn parse(text: &[u8]) -> Option<ProcessStat> {
    let close = text.iter().rposition(|&byte| byte == b')')?;
    let after = std::str::from_utf8(text.get(close + 1..)?).ok()?;
    let mut fields = after.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let start_ticks = fields.nth(18)?.parse().ok()?;
    Some(ProcessStat { state, start_ticks })
}

/// Whether the process that began at `start_ticks` has ended (its pid may have been given anew).
#[must_use]
pub fn is_gone(pid: u32, start_ticks: u64) -> bool {
    match read(pid) {
        Ok(stat) => stat.start_ticks != start_ticks || matches!(stat.state, b'Z' | b'X'),
        Err(_) => true,
    }
}

/// Path of the executable, as `/proc/PID/exe` has it.
///
/// # Errors
///
/// When the process is gone, is a kernel thread, or may not be read.
pub fn executable_path(pid: u32) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe"))
}

/// A start in clock ticks as nanoseconds since the Unix epoch. The time of boot is looked up once,
/// so that one process has one start whatever happens to the wall clock.
#[must_use]
pub fn start_unix_ns(start_ticks: u64) -> u64 {
    static BOOT_UNIX_NS: OnceLock<u64> = OnceLock::new();
    let boot = *BOOT_UNIX_NS.get_or_init(|| {
        clock::nanoseconds(clock::since_epoch().saturating_sub(clock::since_boot().unwrap_or(Duration::ZERO)))
    });
    boot.saturating_add(start_ticks.saturating_mul(TICK_NS))
}

#[cfg(test)]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    #[test]
    fn a_name_with_brackets() {
        let text = b"12 (a) S) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20 21\n";
        assert_eq!(parse(text), Some(ProcessStat { state: b'R', start_ticks: 4242 }));
        assert_eq!(parse(b"12 (a) R 1 2"), None);
        assert_eq!(parse(b""), None);
    }

    #[test]
    fn own_start_is_in_the_past() {
        let stat = read(std::process::id()).unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let start = start_unix_ns(stat.start_ticks);
        assert!(start <= now + TICK_NS && now - start.min(now) < 3_600_000_000_000, "{start} {now}");
        assert!(!is_gone(std::process::id(), stat.start_ticks));
        assert!(is_gone(std::process::id(), stat.start_ticks + 1));
    }
}
