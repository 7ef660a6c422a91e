//! Offsets of kernel structs, from the running kernel's own type information (BTF).

use std::path::Path;

use btf_rs::{Btf, Struct, Type};

/// Where the kernel shows its types.
const KERNEL_BTF: &str = "/sys/kernel/btf/vmlinux";

/// A missing or unexpected piece of the kernel's type information.
#[derive(Debug, thiserror::Error)]
pub enum OffsetError {
    /// No type information.
    #[error(
        "no kernel type information at {KERNEL_BTF} ({0}): it needs a kernel built with \
         CONFIG_DEBUG_INFO_BTF (5.10 or later), and /sys mounted in the container"
    )]
    NoBtf(String),
    /// A struct or member is not there.
    #[error("kernel type {0} not found in {KERNEL_BTF}: please report the kernel version")]
    Missing(String),
}

/// Byte offsets that the programs read as globals.
#[derive(Clone, Copy, Debug)]
pub struct KernelOffsets {
    /// Thread pointer in `task_struct`.
    pub task_thread_pointer: u64,
    /// `task_struct.group_leader`.
    pub task_group_leader: u64,
    /// `task_struct.thread_pid`.
    pub task_thread_pid: u64,
    /// `task_struct.start_boottime`.
    pub task_start: u64,
    /// `task_struct.signal`.
    pub task_signal: u64,
    /// `signal_struct.live`.
    pub signal_live: u64,
    /// `pid.level`.
    pub pid_level: u64,
    /// `pid.numbers`.
    pub pid_numbers: u64,
    /// `pid_namespace.ns.inum`.
    pub namespace_inode: u64,
}

/// Thread pointer by architecture (arch/*/include/asm/processor.h).
#[cfg(target_arch = "x86_64")]
const THREAD_POINTER: &str = "thread.fsbase";
#[cfg(target_arch = "aarch64")]
const THREAD_POINTER: &str = "thread.uw.tp_value";

impl KernelOffsets {
    /// Reads them from the running kernel.
    ///
    /// # Errors
    /// [`OffsetError`]
    pub fn read() -> Result<Self, OffsetError> {
        let btf = Btf::from_file(Path::new(KERNEL_BTF)).map_err(|e| OffsetError::NoBtf(e.to_string()))?;
        let of = |name: &str, path: &str| offset(&btf, name, path);
        Ok(Self {
            task_thread_pointer: of("task_struct", THREAD_POINTER)?,
            task_group_leader: of("task_struct", "group_leader")?,
            task_thread_pid: of("task_struct", "thread_pid")?,
            task_start: of("task_struct", "start_boottime")?,
            task_signal: of("task_struct", "signal")?,
            signal_live: of("signal_struct", "live")?,
            pid_level: of("pid", "level")?,
            pid_numbers: of("pid", "numbers")?,
            namespace_inode: of("pid_namespace", "ns.inum")?,
        })
    }
}

fn offset(btf: &Btf, name: &str, path: &str) -> Result<u64, OffsetError> {
    let missing = || OffsetError::Missing(format!("{name}.{path}"));
    let types = btf.resolve_types_by_name(name).map_err(|_| missing())?;
    let mut current = types
        .into_iter()
        .find_map(|t| match t {
            Type::Struct(s) => Some(s),
            _ => None,
        })
        .ok_or_else(missing)?;
    let mut total = 0;
    let mut parts = path.split('.').peekable();
    while let Some(part) = parts.next() {
        let (bytes, member) = member(btf, &current, part).ok_or_else(missing)?;
        total += bytes;
        if parts.peek().is_some() {
            current = structure(btf, member).ok_or_else(missing)?;
        }
    }
    Ok(total)
}

/// A member by name, also inside anonymous members.
fn member(btf: &Btf, structure: &Struct, name: &str) -> Option<(u64, Type)> {
    for member in &structure.members {
        let bytes = u64::from(member.bit_offset() / 8);
        let kind = btf.resolve_chained_type(member).ok()?;
        let found = btf.resolve_name(member).unwrap_or_default();
        if found == name {
            return Some((bytes, kind));
        }
        if found.is_empty()
            && let Type::Struct(inner) | Type::Union(inner) = &kind
            && let Some((deeper, kind)) = self::member(btf, inner, name)
        {
            return Some((bytes + deeper, kind));
        }
    }
    None
}

/// The struct behind typedefs and qualifiers.
fn structure(btf: &Btf, mut kind: Type) -> Option<Struct> {
    loop {
        kind = match kind {
            Type::Struct(s) | Type::Union(s) => return Some(s),
            Type::Typedef(t) => btf.resolve_chained_type(&t).ok()?,
            Type::Const(t) | Type::Volatile(t) => btf.resolve_chained_type(&t).ok()?,
            _ => return None,
        };
    }
}
