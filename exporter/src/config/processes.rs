//! `processes`: which processes are profiled.

use super::validate::{Reader, Section, number};

/// The section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processes {
    /// Only these, in the exporter's own pid namespace; empty for every process with a Python runtime.
    pub pids: Vec<u32>,
}

/// Highest process id that the kernel's type for it (`pid_t`, signed 32 bits) can hold.
pub const MAX_PID: u32 = i32::MAX as u32;

/// Reads the section over `into`.
pub(super) fn read(reader: &mut Reader<'_>, section: &Section<'_>, into: &mut Processes) {
    let allowed = "a list of process ids (whole numbers above 0), such as [12, 34]";
    reader.list(section, "pids", &mut into.pids, allowed, |text| number(text, &(1..=MAX_PID)));
}
