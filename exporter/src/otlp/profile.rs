//! A window as one OTLP request, whatever its size; [`super::split`] sees to the size.
//!
//! The form is the one that every known receiver takes: timestamps without values, empty
//! `link_table[0]`, inline resource strings, and resource, scope and types always present.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::profiles::v1development::{
    Profile, ResourceProfiles, Sample, ScopeProfiles, ValueType,
};

use crate::aggregate::window::{AggregatedSample, ProcessProfile, ProfileWindow, SampleKey};
use crate::otlp::dictionary::{AttributeValue, Dictionary};
use crate::otlp::resource::resource;

/// Name of the instrumentation scope.
pub const SCOPE_NAME: &str = "otel-profile-exporter";

/// Version of the instrumentation scope.
pub const SCOPE_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The request of a whole window: one ResourceProfiles for each process that has samples.
pub fn build(window: &ProfileWindow) -> ExportProfilesServiceRequest {
    let mut dictionary = Dictionary::default();
    let resource_profiles = window
        .processes
        .iter()
        .filter(|process| process.samples.iter().any(|sample| !sample.timestamps.is_empty()))
        .map(|process| resource_profiles(window, process, &mut dictionary))
        .collect();
    ExportProfilesServiceRequest { resource_profiles, dictionary: Some(dictionary.finish()) }
}

fn resource_profiles(
    window: &ProfileWindow,
    process: &ProcessProfile,
    dictionary: &mut Dictionary,
) -> ResourceProfiles {
    let scope = InstrumentationScope {
        name: SCOPE_NAME.to_owned(),
        version: SCOPE_VERSION.to_owned(),
        ..Default::default()
    };
    let scope_profiles = ScopeProfiles {
        scope: Some(scope),
        profiles: vec![cpu_profile(window, &process.samples, dictionary)],
        ..Default::default()
    };
    ResourceProfiles {
        resource: Some(resource(&process.process)),
        scope_profiles: vec![scope_profiles],
        ..Default::default()
    }
}

fn cpu_profile(window: &ProfileWindow, samples: &[AggregatedSample], dictionary: &mut Dictionary) -> Profile {
    let mut value_type = |kind, unit| ValueType {
        type_strindex: dictionary.string(kind),
        unit_strindex: dictionary.string(unit),
    };
    let sample_type = value_type("samples", "count");
    let period_type = value_type("cpu", "nanoseconds");
    // A late sample widens the profile: every timestamp must lie inside it.
    let times = || samples.iter().flat_map(|sample| &sample.timestamps).copied();
    let start = times().fold(window.start_unix_ns, u64::min);
    let end = times().map(|time| time.saturating_add(1)).fold(window.end_unix_ns, u64::max);
    Profile {
        sample_type: Some(sample_type),
        samples: merged_samples(samples, dictionary),
        time_unix_nano: start,
        duration_nano: end.saturating_sub(start),
        period_type: Some(period_type),
        period: i64::try_from(window.period_ns).unwrap_or(i64::MAX),
        profile_id: profile_id().to_vec(),
        ..Default::default()
    }
}

/// Keys that differ only in what OTLP does not carry become one Sample.
fn merged_samples(samples: &[AggregatedSample], dictionary: &mut Dictionary) -> Vec<Sample> {
    let mut merged: Vec<Sample> = Vec::with_capacity(samples.len());
    let mut index: HashMap<(i32, Vec<i32>), usize> = HashMap::with_capacity(samples.len());
    for sample in samples.iter().filter(|sample| !sample.timestamps.is_empty()) {
        let stack_index = dictionary.stack(&sample.key.stack);
        let attribute_indices = sample_attributes(&sample.key, dictionary);
        let at = *index.entry((stack_index, attribute_indices)).or_insert_with_key(|(stack, attributes)| {
            merged.push(Sample {
                stack_index: *stack,
                attribute_indices: attributes.clone(),
                ..Default::default()
            });
            merged.len() - 1
        });
        if let Some(entry) = merged.get_mut(at) {
            entry.timestamps_unix_nano.extend_from_slice(&sample.timestamps);
        }
    }
    merged
}

fn sample_attributes(key: &SampleKey, dictionary: &mut Dictionary) -> Vec<i32> {
    let SampleKey { stack: _, tid, thread_name, gil, completeness } = key;
    let (whole, reason) = completeness.as_attributes();
    let mut indices = vec![
        dictionary.attribute("thread.id", AttributeValue::Int(i64::from(*tid))),
        dictionary.attribute("thread.name", AttributeValue::Text(Arc::clone(thread_name))),
    ];
    let mut text = |key, value: Option<&str>| {
        indices.extend(value.map(|v| dictionary.attribute(key, AttributeValue::Text(Arc::from(v)))));
    };
    text("python.gil.state", gil.map(|state| state.as_str()));
    text("stack.completeness", Some(whole));
    text("stack.completeness.reason", reason);
    indices
}

/// 16 random bytes, never all zero. Each `RandomState` is seeded by the operating system.
pub(super) fn profile_id() -> [u8; 16] {
    let half = |salt: u64| RandomState::new().hash_one(salt);
    let id = (u128::from(half(1)) << 64) | u128::from(half(2));
    id.max(1).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otlp::fixture;

    #[test]
    fn each_process_has_its_resource_and_each_profile_its_id() {
        let request = build(&fixture::window());
        assert_eq!(request.resource_profiles.len(), 2);
        let ids: Vec<_> = request
            .resource_profiles
            .iter()
            .map(|rp| rp.scope_profiles[0].profiles[0].profile_id.clone())
            .collect();
        assert_eq!(ids[0].len(), 16);
        assert_ne!(ids[0], ids[1]);
    }

    #[test]
    fn a_late_sample_widens_the_profile() {
        let mut window = fixture::window();
        let early = window.start_unix_ns - 5;
        window.processes[0].samples[0].timestamps.push(early);
        let request = build(&window);
        let profile = &request.resource_profiles[0].scope_profiles[0].profiles[0];
        assert_eq!(profile.time_unix_nano, early);
        assert_eq!(profile.time_unix_nano + profile.duration_nano, window.end_unix_ns);
    }

    #[test]
    fn a_process_without_samples_is_left_out() {
        let mut window = fixture::window();
        window.processes[1].samples.clear();
        assert_eq!(build(&window).resource_profiles.len(), 1);
    }
}
