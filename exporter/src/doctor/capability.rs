//! Capabilities in effect, out of /proc/self/status.

use std::fs;

use super::{Check, Verdict};

/// CAP_SYS_ADMIN, which stands for BPF, PERFMON and CHECKPOINT_RESTORE (linux/capability.h).
const SYS_ADMIN: u32 = 21;
/// Name, bit, and whether SYS_ADMIN stands for it.
const NEEDED: [(&str, u32, bool); 4] =
    [("BPF", 39, true), ("PERFMON", 38, true), ("SYS_PTRACE", 19, false), ("CHECKPOINT_RESTORE", 40, true)];

/// One check a capability.
#[must_use]
pub fn checks() -> Vec<Check> {
    let mask =
        fs::read_to_string("/proc/self/status").ok().and_then(|status| parse(&status)).unwrap_or_default();
    judge(mask)
}

/// The mask `CapEff`.
fn parse(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

fn judge(mask: u64) -> Vec<Check> {
    let has = |bit: u32| mask >> bit & 1 == 1;
    NEEDED
        .iter()
        .map(|&(name, bit, by_admin)| {
            let (verdict, found) = match (has(bit), by_admin && has(SYS_ADMIN)) {
                (true, _) => (Verdict::Good, "granted"),
                (false, true) => (Verdict::Good, "CAP_SYS_ADMIN instead"),
                (false, false) => (Verdict::Forbidden, "missing"),
            };
            let needed = if by_admin { "this or CAP_SYS_ADMIN" } else { "this" };
            let cure = format!(
                "run as root, or docker --cap-add {name}, compose cap_add, \
                 Kubernetes securityContext.capabilities.add"
            );
            Check::new(format!("CAP_{name}"), verdict, found, needed, cure)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks() {
        assert_eq!(parse("Name:\tx\nCapEff:\t000001fffeffffff\n"), Some(0x1ff_feff_ffff));
        assert_eq!(parse("CapEff:\tx"), None);
        assert!(judge(0x1ff_feff_ffff).iter().all(|check| check.verdict == Verdict::Good));
        assert!(judge(0).iter().all(|check| check.verdict == Verdict::Forbidden));
        let admin = judge(1 << SYS_ADMIN).iter().filter(|check| check.verdict == Verdict::Good).count();
        assert_eq!(admin, 3);
    }
}
