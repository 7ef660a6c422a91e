//! The kernel: its version, its type information, and whether /proc shows the own pid namespace.

use std::fs;
use std::path::Path;

use super::{Check, Verdict};
use crate::sampler::kernel_offsets::KernelOffsets;

/// The oldest kernel that works.
const OLDEST: (u32, u32) = (5, 10);

/// All of it.
#[must_use]
pub fn checks() -> Vec<Check> {
    vec![version(), btf(), namespace()]
}

fn version() -> Check {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let good = parse(&release).is_some_and(|version| version >= OLDEST);
    let verdict = if good { Verdict::Good } else { Verdict::Bad };
    Check::new("kernel", verdict, release.trim(), "5.10 or later", "boot a newer kernel")
}

/// Major and minor of `6.1.0-13-amd64`.
fn parse(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.trim().split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn btf() -> Check {
    let (verdict, found) = match KernelOffsets::read() {
        Ok(_) => (Verdict::Good, "every type".to_owned()),
        Err(error) => (Verdict::Bad, error.to_string()),
    };
    let cure = "use a kernel built with CONFIG_DEBUG_INFO_BTF, and mount /sys in the container";
    Check::new("kernel type information (BTF)", verdict, found, "/sys/kernel/btf/vmlinux", cure)
}

/// /proc/self names the reader as the namespace of that /proc numbers it.
fn namespace() -> Check {
    let shown = fs::read_link("/proc/self").unwrap_or_default();
    let same = shown == Path::new(&std::process::id().to_string());
    let verdict = if same { Verdict::Good } else { Verdict::Bad };
    let found = format!("own pid {}, in /proc {}", std::process::id(), shown.display());
    let cure = "run it in the pid namespace of its /proc (docker --pid=host, Kubernetes hostPID: true)";
    Check::new("pid namespace", verdict, found, "/proc of the own pid namespace", cure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases() {
        assert_eq!(parse("6.1.0-13-amd64\n"), Some((6, 1)));
        assert_eq!(parse("5.10"), Some((5, 10)));
        assert_eq!(parse("x"), None);
    }
}
