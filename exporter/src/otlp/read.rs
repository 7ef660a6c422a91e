//! A request → plain samples: for `receive`, and for tests that compare by content.
//!
//! Forgiving on purpose: an index that points nowhere reads as empty. [`super::validate`] is what
//! complains about it.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::profiles::v1development::{Location, Profile, ProfilesDictionary, Sample};

/// One profile with everything looked up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlainProfile {
    /// Resource attributes, values as text.
    pub resource: BTreeMap<String, String>,
    /// Name and version of the scope.
    pub scope: (String, String),
    /// Type and unit of the samples.
    pub sample_type: (String, String),
    /// Type and unit of the period.
    pub period_type: (String, String),
    /// Period.
    pub period: i64,
    /// Start, nanoseconds since the Unix epoch.
    pub start_unix_ns: u64,
    /// Length in nanoseconds.
    pub duration_ns: u64,
    /// The samples.
    pub samples: Vec<PlainSample>,
}

/// One Sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlainSample {
    /// Frames, leaf first, inlined ones apart.
    pub frames: Vec<PlainFrame>,
    /// Attributes, values as text.
    pub attributes: BTreeMap<String, String>,
    /// Times, nanoseconds since the Unix epoch.
    pub timestamps: Vec<u64>,
    /// Sum of the values, or the number of timestamps where there are none.
    pub count: i64,
}

/// One frame.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PlainFrame {
    /// `profile.frame.type`, empty if unset.
    pub kind: String,
    /// Function.
    pub name: String,
    /// File of the function.
    pub file: String,
    /// Line being executed, 0 if unset.
    pub line: i64,
    /// First line of the function, 0 if unset.
    pub start_line: i64,
    /// File of the mapping, empty if there is none.
    pub mapping: String,
    /// Address, 0 if unset.
    pub address: u64,
}

/// All profiles of a request.
pub fn profiles(request: &ExportProfilesServiceRequest) -> Vec<PlainProfile> {
    let empty = ProfilesDictionary::default();
    let reader = Reader { tables: request.dictionary.as_ref().unwrap_or(&empty) };
    let mut out = Vec::new();
    for resource in &request.resource_profiles {
        let attributes =
            resource.resource.as_ref().map(|r| reader.key_values(&r.attributes)).unwrap_or_default();
        for scope in &resource.scope_profiles {
            let name = scope.scope.as_ref().map(|s| (s.name.clone(), s.version.clone())).unwrap_or_default();
            for profile in &scope.profiles {
                out.push(PlainProfile {
                    resource: attributes.clone(),
                    scope: name.clone(),
                    ..reader.profile(profile)
                });
            }
        }
    }
    out
}

/// Samples of a request, repeated ones counted.
pub fn sample_count(request: &ExportProfilesServiceRequest) -> u64 {
    let samples = request
        .resource_profiles
        .iter()
        .flat_map(|resource| &resource.scope_profiles)
        .flat_map(|scope| &scope.profiles)
        .flat_map(|profile| &profile.samples);
    samples.map(|sample| u64::try_from(count(sample)).unwrap_or(0)).sum()
}

fn count(sample: &Sample) -> i64 {
    match sample.values.as_slice() {
        [] => i64::try_from(sample.timestamps_unix_nano.len()).unwrap_or(i64::MAX),
        values => values.iter().fold(0, |sum, value| sum.saturating_add(*value)),
    }
}

struct Reader<'a> {
    tables: &'a ProfilesDictionary,
}

fn at<T>(table: &[T], index: i32) -> Option<&T> {
    usize::try_from(index).ok().and_then(|index| table.get(index))
}

impl Reader<'_> {
    fn string(&self, index: i32) -> String {
        at(&self.tables.string_table, index).cloned().unwrap_or_default()
    }

    fn value(&self, value: Option<&AnyValue>) -> String {
        match value.and_then(|value| value.value.as_ref()) {
            None => String::new(),
            Some(Value::StringValue(text)) => text.clone(),
            Some(Value::StringValueStrindex(index)) => self.string(*index),
            Some(Value::BoolValue(value)) => value.to_string(),
            Some(Value::IntValue(value)) => value.to_string(),
            Some(Value::DoubleValue(value)) => value.to_string(),
            Some(Value::BytesValue(bytes)) => format!("{} bytes", bytes.len()),
            Some(Value::ArrayValue(array)) => {
                let items: Vec<_> = array.values.iter().map(|item| self.value(Some(item))).collect();
                format!("[{}]", items.join(", "))
            }
            Some(Value::KvlistValue(list)) => format!("{:?}", self.key_values(&list.values)),
        }
    }

    fn key_values(&self, list: &[KeyValue]) -> BTreeMap<String, String> {
        let key = |kv: &KeyValue| match kv.key.as_str() {
            "" => self.string(kv.key_strindex),
            key => key.to_owned(),
        };
        list.iter().map(|kv| (key(kv), self.value(kv.value.as_ref()))).collect()
    }

    fn attributes(&self, indices: &[i32]) -> BTreeMap<String, String> {
        let found = indices.iter().filter_map(|index| at(&self.tables.attribute_table, *index));
        found.map(|kv| (self.string(kv.key_strindex), self.value(kv.value.as_ref()))).collect()
    }

    fn profile(&self, profile: &Profile) -> PlainProfile {
        let named = |kind: Option<_>| {
            let kind: opentelemetry_proto::tonic::profiles::v1development::ValueType =
                kind.unwrap_or_default();
            (self.string(kind.type_strindex), self.string(kind.unit_strindex))
        };
        PlainProfile {
            sample_type: named(profile.sample_type),
            period_type: named(profile.period_type),
            period: profile.period,
            start_unix_ns: profile.time_unix_nano,
            duration_ns: profile.duration_nano,
            samples: profile.samples.iter().map(|sample| self.sample(sample)).collect(),
            ..Default::default()
        }
    }

    fn sample(&self, sample: &Sample) -> PlainSample {
        let stack = at(&self.tables.stack_table, sample.stack_index);
        let indices = stack.map(|stack| stack.location_indices.as_slice()).unwrap_or_default();
        let locations = indices.iter().filter_map(|index| at(&self.tables.location_table, *index));
        PlainSample {
            frames: locations.flat_map(|location| self.frames(location)).collect(),
            attributes: self.attributes(&sample.attribute_indices),
            timestamps: sample.timestamps_unix_nano.clone(),
            count: count(sample),
        }
    }

    /// One frame a line; a location without lines is one frame without a name.
    fn frames(&self, location: &Location) -> Vec<PlainFrame> {
        let kind = self.attributes(&location.attribute_indices).remove("profile.frame.type");
        let mapping = at(&self.tables.mapping_table, location.mapping_index);
        let bare = PlainFrame {
            kind: kind.unwrap_or_default(),
            mapping: mapping.map(|mapping| self.string(mapping.filename_strindex)).unwrap_or_default(),
            address: location.address,
            ..Default::default()
        };
        if location.lines.is_empty() {
            return vec![bare];
        }
        let with_line = |line: &opentelemetry_proto::tonic::profiles::v1development::Line| {
            let function = at(&self.tables.function_table, line.function_index).copied().unwrap_or_default();
            PlainFrame {
                name: self.string(function.name_strindex),
                file: self.string(function.filename_strindex),
                line: line.line,
                start_line: function.start_line,
                ..bare.clone()
            }
        };
        location.lines.iter().map(with_line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otlp::{fixture, profile::build};

    #[test]
    fn a_window_reads_back_as_it_was() {
        let read = profiles(&build(&fixture::window()));
        assert_eq!(read.len(), 2);
        assert_eq!(read[0].resource["process.pid"], "7");
        assert_eq!(read[0].resource["process.runtime.name"], "cpython");
        assert_eq!(read[0].scope.0, "otel-profile-exporter");
        assert_eq!(read[0].sample_type, ("samples".into(), "count".into()));
        assert_eq!(read[0].period_type, ("cpu".into(), "nanoseconds".into()));
        let sample = &read[0].samples[0];
        assert_eq!(sample.count, 2);
        let names: Vec<_> =
            sample.frames.iter().map(|f| (f.kind.as_str(), f.name.as_str(), f.line)).collect();
        assert_eq!(names, [("kernel", "read", 0), ("cpython", "leaf", 4), ("cpython", "main", 9)]);
        assert_eq!(sample.attributes["thread.id"], "7");
        assert_eq!(sample.attributes["python.gil.state"], "held");
        let truncated = &read[1].samples[0];
        assert_eq!(truncated.attributes["stack.completeness.reason"], "max_frames");
        assert!(!truncated.attributes.contains_key("python.gil.state"));
        assert_eq!(truncated.frames[1].kind, "");
        assert_eq!(sample_count(&build(&fixture::window())), 4);
    }

    #[test]
    fn a_request_without_dictionary_reads_as_empty_text() {
        let mut request = build(&fixture::window());
        request.dictionary = None;
        assert!(profiles(&request)[0].samples[0].frames.is_empty());
    }
}
