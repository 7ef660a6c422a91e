//! Whether the programs load and perf events open: done in earnest, and undone at once.

use super::{Check, Verdict};
use crate::sampler::loader::{LoadError, Sampler};

/// A slow rate: this only tries.
const PERIOD_NS: u64 = 1_000_000_000;

/// Load, then attach.
#[must_use]
pub fn checks() -> Vec<Check> {
    match Sampler::load(PERIOD_NS) {
        Ok(mut sampler) => {
            vec![answer("BPF load", Ok(())), answer("perf events", sampler.programs.attach())]
        }
        Err(error) => vec![answer("BPF load", Err(error))],
    }
}

fn answer(name: &str, result: Result<(), LoadError>) -> Check {
    let (verdict, found) = match result {
        Ok(()) => (Verdict::Good, "accepted".to_owned()),
        Err(error @ LoadError::NotPermitted { .. }) => (Verdict::Forbidden, error.to_string()),
        Err(error) => (Verdict::Bad, error.to_string()),
    };
    Check::new(name, verdict, found, "accepted by the kernel", "")
}
