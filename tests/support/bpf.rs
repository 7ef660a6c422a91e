//! BPF programs and maps that the kernel holds, by id: which of them a process has open, and which
//! there are.

use std::collections::BTreeSet;
use std::fs;

/// `BPF_PROG_GET_NEXT_ID`, include/uapi/linux/bpf.h.
const PROG_GET_NEXT_ID: i64 = 11;
/// `BPF_MAP_GET_NEXT_ID`, include/uapi/linux/bpf.h.
const MAP_GET_NEXT_ID: i64 = 12;

/// The head of `union bpf_attr` for both commands.
#[repr(C)]
#[derive(Default)]
struct NextId {
    start_id: u32,
    next_id: u32,
    open_flags: u32,
}

/// Ids of programs and of maps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ids {
    /// Programs.
    pub programs: BTreeSet<u32>,
    /// Maps.
    pub maps: BTreeSet<u32>,
}

impl Ids {
    /// Everything the kernel holds now.
    pub fn of_kernel() -> Self {
        Self { programs: list(PROG_GET_NEXT_ID), maps: list(MAP_GET_NEXT_ID) }
    }

    /// What a process holds by descriptor.
    pub fn of_process(pid: u32) -> Self {
        let mut ids = Self::default();
        let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fdinfo")) else { return ids };
        for entry in entries.flatten() {
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            for line in text.lines() {
                let Some((key, value)) = line.split_once(':') else { continue };
                let Ok(id) = value.trim().parse() else { continue };
                match key {
                    "prog_id" => ids.programs.insert(id),
                    "map_id" => ids.maps.insert(id),
                    _ => false,
                };
            }
        }
        ids
    }

    /// What is in both.
    pub fn common(&self, other: &Self) -> Self {
        Self {
            programs: self.programs.intersection(&other.programs).copied().collect(),
            maps: self.maps.intersection(&other.maps).copied().collect(),
        }
    }
}

fn list(command: i64) -> BTreeSet<u32> {
    let mut ids = BTreeSet::new();
    let mut attr = NextId::default();
    loop {
        // SAFETY: bpf(2) reads and writes `attr` only, whose size is given, and both commands fill
        // `next_id` alone.
        let result =
            unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut attr, std::mem::size_of::<NextId>()) };
        if result != 0 {
            let error = std::io::Error::last_os_error();
            assert_eq!(error.raw_os_error(), Some(libc::ENOENT), "bpf({command}): {error}");
            return ids;
        }
        ids.insert(attr.next_id);
        attr.start_id = attr.next_id;
    }
}
