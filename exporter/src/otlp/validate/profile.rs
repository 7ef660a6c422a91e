//! Resources, scopes, profiles and samples.

use std::collections::HashSet;

use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::profiles::v1development::{Profile, Sample, ValueType};

use super::{Checker, Rule, Table};

impl Checker<'_> {
    pub(super) fn profiles(&mut self, request: &ExportProfilesServiceRequest) {
        if request.resource_profiles.is_empty() {
            self.found(Rule::NotEmpty, "resource_profiles", "empty");
        }
        for (r, resource_profiles) in request.resource_profiles.iter().enumerate() {
            let place = format!("resource_profiles[{r}]");
            match &resource_profiles.resource {
                Some(resource) => self.inline_attributes(&resource.attributes, &place),
                None => self.found(Rule::Present, &place, "no resource"),
            }
            if resource_profiles.scope_profiles.is_empty() {
                self.found(Rule::NotEmpty, &place, "no scope_profiles");
            }
            for (s, scope_profiles) in resource_profiles.scope_profiles.iter().enumerate() {
                let place = format!("{place}.scope_profiles[{s}]");
                match &scope_profiles.scope {
                    Some(scope) => self.inline_attributes(&scope.attributes, &place),
                    None => self.found(Rule::Present, &place, "no scope"),
                }
                if scope_profiles.profiles.is_empty() {
                    self.found(Rule::NotEmpty, &place, "no profiles");
                }
                for (p, profile) in scope_profiles.profiles.iter().enumerate() {
                    self.profile(profile, &format!("{place}.profiles[{p}]"));
                }
            }
        }
    }

    fn inline_attributes(&mut self, attributes: &[KeyValue], place: &str) {
        let mut keys = HashSet::new();
        for attribute in attributes {
            let mut bad = |text: String| self.found(Rule::ResourceAttribute, place, text);
            if attribute.key.is_empty() == (attribute.key_strindex == 0) {
                bad(format!("key {:?} with key_strindex {}", attribute.key, attribute.key_strindex));
            }
            let value = attribute.value.as_ref().and_then(|value| value.value.as_ref());
            if value.is_none() {
                bad(format!("key {:?} has no value", attribute.key));
            }
            self.refer(Table::String, attribute.key_strindex, place);
            if let Some(Value::StringValueStrindex(index)) = value {
                self.refer(Table::String, *index, place);
            }
            let key = match attribute.key.as_str() {
                "" => self.string(attribute.key_strindex),
                key => key,
            };
            if !keys.insert(key) {
                self.found(Rule::ResourceAttribute, place, format!("key {key:?} twice"));
            }
        }
    }

    fn profile(&mut self, profile: &Profile, place: &str) {
        self.value_type(profile.sample_type, "sample_type", place);
        self.value_type(profile.period_type, "period_type", place);
        self.attributes(&profile.attribute_indices, place);
        if profile.period < 0 {
            self.found(Rule::Period, place, format!("{}", profile.period));
        }
        let id = &profile.profile_id;
        if !id.is_empty() && (id.len() != 16 || id.iter().all(|byte| *byte == 0)) {
            self.found(Rule::ProfileId, place, format!("{} bytes, or all zero", id.len()));
        }
        let format = profile.original_payload_format.as_str();
        let known = matches!(format, "" | "pprof" | "jfr" | "linux_perf");
        if !known || format.is_empty() != profile.original_payload.is_empty() {
            let text = format!("format {format:?} with {} bytes", profile.original_payload.len());
            self.found(Rule::OriginalPayload, place, text);
        }
        if profile.samples.is_empty() {
            self.found(Rule::Samples, place, "no samples");
        }
        let mut identities = HashSet::new();
        let mut shapes = HashSet::new();
        for (i, sample) in profile.samples.iter().enumerate() {
            let place = format!("{place}.samples[{i}]");
            self.sample(profile, sample, &place);
            let mut attributes = sample.attribute_indices.clone();
            attributes.sort_unstable();
            if !identities.insert((sample.stack_index, attributes, sample.link_index)) {
                self.found(Rule::SampleIdentity, &place, "same stack, attributes and link as another");
            }
            let shape = (sample.values.is_empty(), sample.timestamps_unix_nano.is_empty());
            if shape != (true, true) {
                shapes.insert(shape);
            }
        }
        if shapes.len() > 1 {
            self.found(Rule::SampleShape, place, "samples with and without values or timestamps");
        }
    }

    fn value_type(&mut self, value_type: Option<ValueType>, name: &str, place: &str) {
        match value_type {
            Some(ValueType { type_strindex, unit_strindex }) => {
                self.refer(Table::String, type_strindex, place);
                self.refer(Table::String, unit_strindex, place);
            }
            None => self.found(Rule::Present, place, format!("no {name}")),
        }
    }

    fn sample(&mut self, profile: &Profile, sample: &Sample, place: &str) {
        self.refer(Table::Stack, sample.stack_index, place);
        self.refer(Table::Link, sample.link_index, place);
        self.attributes(&sample.attribute_indices, place);
        match (sample.values.len(), sample.timestamps_unix_nano.len()) {
            (0, 0) => self.found(Rule::SampleData, place, "neither values nor timestamps"),
            (0, _) | (1, 0) => {}
            (values, 0) => self.found(Rule::SampleOneValue, place, format!("{values} values")),
            (values, times) if values != times => {
                self.found(Rule::SampleLengths, place, format!("{values} values, {times} timestamps"));
            }
            _ => {}
        }
        let start = profile.time_unix_nano;
        let inside = start..start.saturating_add(profile.duration_nano);
        if let Some(time) = sample.timestamps_unix_nano.iter().find(|time| !inside.contains(time)) {
            self.found(Rule::TimestampInside, place, format!("{time} is not in {inside:?}"));
        }
    }
}
