//! Sample quality: a short recording, and how many of its stacks are whole and named.

use std::time::{Duration, Instant};

use super::{Check, Verdict};
use crate::aggregate::frame::{Completeness, FrameKind};
use crate::aggregate::window::{AggregatedSample, ProfileWindow};
use crate::pipeline::profiler::{Options, Profiler};
use crate::symbolize::python::UNKNOWN;

/// How long it records: at [`RATE`] one busy thread gives 199 samples a second.
const DURATION: Duration = Duration::from_secs(1);
/// Samples a second, prime to the rhythms that programs have.
const RATE: u32 = 199;
/// Share of whole and named stacks, in percent, below which something is wrong.
const GOOD_PERCENT: u64 = 99;
const NEEDED: &str = "99 % whole and named";

/// Records the process asked for, or all.
#[must_use]
pub fn check(pid: Option<u32>) -> Check {
    let options = Options { rate: RATE, pids: pid.into_iter().collect(), only_wanted: pid.is_some() };
    let mut profiler = match Profiler::start(&options) {
        Ok(profiler) => profiler,
        // The checks of BPF say why.
        Err(_) => return Check::new("sample quality", Verdict::Note, "no recording", NEEDED, ""),
    };
    let end = Instant::now() + DURATION;
    while Instant::now() < end {
        profiler.poll(end.saturating_duration_since(Instant::now()));
    }
    profiler.stop();
    judge(&profiler.take_window())
}

/// Samples of a window by what is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Quality {
    samples: u64,
    truncated: u64,
    unknown: u64,
    without_python: u64,
}

fn judge(window: &ProfileWindow) -> Check {
    let mut q = Quality::default();
    for sample in window.processes.iter().flat_map(|process| &process.samples) {
        count(&mut q, sample);
    }
    if q.samples == 0 {
        let cure = "give it work, or run doctor while it works";
        return Check::new(
            "sample quality",
            Verdict::Note,
            "no Python process on the CPU for 1 s",
            NEEDED,
            cure,
        );
    }
    let found = format!(
        "{} samples: {} with a missing root end, {} with a frame without name, {} of threads in no Python code",
        q.samples, q.truncated, q.unknown, q.without_python
    );
    let good = (q.samples - (q.truncated + q.unknown).min(q.samples)) * 100 >= q.samples * GOOD_PERCENT;
    let verdict = if good { Verdict::Good } else { Verdict::Note };
    Check::new(
        "sample quality",
        verdict,
        found,
        NEEDED,
        "a stack of more than 1,024 frames is cut, others should not be: report it with the output of python -VV",
    )
}

fn count(q: &mut Quality, sample: &AggregatedSample) {
    let n = sample.timestamps.len() as u64;
    let stack = &sample.key.stack;
    q.samples += n;
    if matches!(sample.key.completeness, Completeness::Truncated(_)) {
        q.truncated += n;
    } else if stack.iter().any(|frame| &*frame.name == UNKNOWN) {
        q.unknown += n;
    } else if stack.iter().all(|frame| frame.kind != FrameKind::Python) {
        q.without_python += n;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otlp::fixture;

    #[test]
    fn what_is_missing_is_counted_by_kind() {
        // Three whole samples, and one with a missing root end.
        let check = judge(&fixture::window());
        assert_eq!(check.verdict, Verdict::Note);
        assert!(check.found.starts_with("4 samples: 1 with a missing root end, 0 with"), "{}", check.found);
        let mut whole = fixture::window();
        whole.processes.pop();
        assert_eq!(judge(&whole).verdict, Verdict::Good);
        assert_eq!(judge(&ProfileWindow::default()).verdict, Verdict::Note);
    }
}
