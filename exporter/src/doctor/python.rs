//! The Pythons there are, and why some are refused.

use std::fs;

use super::{Check, Verdict};
use crate::interpreter::python::{Cache, NotPython, detect};
use crate::process::stat;

const NEEDED: &str = "CPython 3.6 to 3.15";

/// The process asked for, or all.
#[must_use]
pub fn checks(asked: Option<u32>) -> Vec<Check> {
    let mut cache = Cache::new();
    if let Some(pid) = asked {
        return check(pid, true, &mut cache).into_iter().collect();
    }
    let entries = fs::read_dir("/proc").into_iter().flatten();
    let mut pids: Vec<u32> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    let own = std::process::id();
    let found: Vec<Check> =
        pids.into_iter().filter(|pid| *pid != own).filter_map(|pid| check(pid, false, &mut cache)).collect();
    if found.is_empty() {
        let cure = "start one, or look in the pid namespace where it runs";
        return vec![Check::new("Pythons", Verdict::Note, "none", NEEDED, cure)];
    }
    found
}

/// One process; nothing to say of others' processes that are no Python or are gone.
fn check(pid: u32, asked: bool, cache: &mut Cache) -> Option<Check> {
    let name = format!("process {pid}");
    let start_ticks = match stat::read(pid) {
        Ok(stat) => stat.start_ticks,
        Err(_) if asked => {
            let cure = "give the pid of one that runs, as this pid namespace numbers it";
            return Some(Check::new(name, Verdict::Bad, "no such process", NEEDED, cure));
        }
        Err(_) => return None,
    };
    let (verdict, found) = match detect(pid, 0, start_ticks, cache) {
        Ok(python) => (Verdict::Good, python.to_string()),
        Err(NotPython::NoRuntime) if !asked => return None,
        Err(NotPython::Unreadable(_)) if !asked && stat::is_gone(pid, start_ticks) => return None,
        Err(error) => (if asked { Verdict::Bad } else { Verdict::Note }, error.to_string()),
    };
    Some(Check::new(name, verdict, found, NEEDED, ""))
}
