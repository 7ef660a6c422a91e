//! A window as requests that each stay below a size.
//!
//! Guarantees: the requests together hold every sample exactly once, and none is larger than the
//! limit unless it is a single sample, which cannot be made smaller.

use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use prost::Message as _;

use crate::aggregate::window::{AggregatedSample, ProcessProfile, ProfileWindow};
use crate::otlp::profile::build;

/// Default limit: the 4 MiB that a gRPC receiver takes by default (measured without compression),
/// less 64 KiB for whatever an intermediary adds.
pub const DEFAULT_MAX_BYTES: usize = 4 * 1024 * 1024 - 64 * 1024;

/// The requests of a window, each encoded in at most `max_bytes`. None for a window without samples.
pub fn requests(window: &ProfileWindow, max_bytes: usize) -> Vec<ExportProfilesServiceRequest> {
    let mut out = Vec::new();
    split_into(window, max_bytes, &mut out);
    out
}

fn split_into(window: &ProfileWindow, max_bytes: usize, out: &mut Vec<ExportProfilesServiceRequest>) {
    let request = build(window);
    if request.resource_profiles.is_empty() {
        return;
    }
    if request.encoded_len() > max_bytes
        && let Some((first, second)) = halves(window)
    {
        drop(request);
        split_into(&first, max_bytes, out);
        split_into(&second, max_bytes, out);
        return;
    }
    out.push(request);
}

/// Two smaller windows: by processes, then by distinct samples, then by times.
fn halves(window: &ProfileWindow) -> Option<(ProfileWindow, ProfileWindow)> {
    let with = |processes| ProfileWindow { processes, ..*window };
    match window.processes.as_slice() {
        [] => None,
        [process] => {
            let (first, second) = halves_of_samples(&process.samples)?;
            let with_samples =
                |samples| with(vec![ProcessProfile { process: process.process.clone(), samples }]);
            Some((with_samples(first), with_samples(second)))
        }
        many => {
            let (first, second) = many.split_at(many.len() / 2);
            Some((with(first.to_vec()), with(second.to_vec())))
        }
    }
}

fn halves_of_samples(samples: &[AggregatedSample]) -> Option<(Vec<AggregatedSample>, Vec<AggregatedSample>)> {
    match samples {
        [] => None,
        [sample] if sample.timestamps.len() < 2 => None,
        [sample] => {
            let (first, second) = sample.timestamps.split_at(sample.timestamps.len() / 2);
            let with = |times: &[u64]| {
                vec![AggregatedSample { key: sample.key.clone(), timestamps: times.to_vec() }]
            };
            Some((with(first), with(second)))
        }
        many => {
            let (first, second) = many.split_at(many.len() / 2);
            Some((first.to_vec(), second.to_vec()))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::otlp::fixture;
    use crate::otlp::validate::validate_own;

    /// Every sample as text → how often, over all requests.
    fn union(requests: &[ExportProfilesServiceRequest]) -> BTreeMap<String, i64> {
        let mut all = BTreeMap::new();
        for profile in requests.iter().flat_map(crate::otlp::read::profiles) {
            for sample in profile.samples {
                let text = format!("{:?} {:?} {:?}", profile.resource, sample.frames, sample.attributes);
                *all.entry(text).or_default() += sample.count;
            }
        }
        all
    }

    fn large() -> ProfileWindow {
        let mut window = fixture::window();
        for pid in 100..105 {
            let samples = (0..40)
                .map(|i| {
                    let stack = vec![fixture::frame(&format!("f{pid}_{i}"), i), fixture::frame("main", 1)];
                    fixture::sample(stack, 1, &[1, 2, 3])
                })
                .collect();
            let process = Arc::new(fixture::process(pid, Some("3.12.1")));
            window.processes.push(ProcessProfile { process, samples });
        }
        window
    }

    #[test]
    fn the_parts_are_the_whole_and_below_the_limit() {
        let whole = [build(&large())];
        for limit in [1_200, 4_000, 20_000, DEFAULT_MAX_BYTES] {
            let parts = requests(&large(), limit);
            assert_eq!(union(&parts), union(&whole), "limit {limit}");
            for part in &parts {
                assert_eq!(validate_own(part), [], "limit {limit}");
            }
            let largest = parts.iter().map(|part| part.encoded_len()).max();
            assert!(largest <= Some(limit), "limit {limit}: {largest:?}");
        }
    }

    #[test]
    fn a_single_sample_over_the_limit_is_sent_alone() {
        let parts = requests(&large(), 1);
        assert_eq!(union(&parts), union(&[build(&large())]));
        assert_eq!(parts.len() as u64, large().sample_count());
    }

    #[test]
    fn a_window_without_samples_makes_no_request() {
        assert!(requests(&ProfileWindow::default(), 1).is_empty());
    }
}
