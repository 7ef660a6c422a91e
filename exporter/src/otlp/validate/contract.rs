//! What this exporter promises beyond OTLP.

use std::collections::HashSet;

use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::profiles::v1development::{Profile, ValueType};
use opentelemetry_proto::tonic::resource::v1::Resource;

use super::{Checker, Rule};
use crate::otlp::dictionary::FRAME_TYPE;
use crate::otlp::profile::SCOPE_NAME;

const FRAME_TYPES: [&str; 3] = ["cpython", "native", "kernel"];

impl Checker<'_> {
    pub(super) fn contract(&mut self, request: &ExportProfilesServiceRequest) {
        let mut processes = HashSet::new();
        let mut profile_ids = HashSet::new();
        for (r, resource_profiles) in request.resource_profiles.iter().enumerate() {
            let place = format!("resource_profiles[{r}]");
            match resource_profiles.resource.as_ref().and_then(identity) {
                None => self.found(Rule::OwnProcess, &place, "no process.pid or process.creation.time"),
                Some(process) => {
                    let text = format!("{process:?} twice");
                    if !processes.insert(process) {
                        self.found(Rule::OwnProcess, &place, text);
                    }
                }
            }
            for scope_profiles in &resource_profiles.scope_profiles {
                if scope_profiles.scope.as_ref().is_some_and(|scope| scope.name != SCOPE_NAME) {
                    self.found(Rule::OwnScope, &place, format!("is not {SCOPE_NAME}"));
                }
                for profile in &scope_profiles.profiles {
                    self.own_profile(profile, &place);
                    if profile.profile_id.is_empty() || !profile_ids.insert(&profile.profile_id) {
                        self.found(Rule::OwnProfileId, &place, "empty or not unique");
                    }
                }
            }
        }
        for (i, location) in self.dictionary.location_table.iter().enumerate() {
            let found = location.attribute_indices.iter();
            let found = found.filter_map(|&index| super::at(&self.dictionary.attribute_table, index));
            let found = found.filter(|attribute| self.string(attribute.key_strindex) == FRAME_TYPE);
            let values = found.map(|attribute| attribute.value.as_ref()?.value.as_ref());
            let known = |value: Option<&Value>| matches!(value, Some(Value::StringValue(text)) if FRAME_TYPES.contains(&text.as_str()));
            let unknown: Vec<_> = values.filter(|value| !known(*value)).collect();
            if !unknown.is_empty() {
                let text = format!("{FRAME_TYPE} {unknown:?}");
                self.found(Rule::OwnFrameType, format!("location_table[{i}]"), text);
            }
        }
    }

    fn own_profile(&mut self, profile: &Profile, place: &str) {
        let named = |value_type: ValueType| {
            (self.string(value_type.type_strindex), self.string(value_type.unit_strindex))
        };
        let types = (profile.sample_type.map(named), profile.period_type.map(named));
        let is = |found: Option<(&str, &str)>, wanted| found.is_none_or(|found| found == wanted);
        if !is(types.0, ("samples", "count")) || !is(types.1, ("cpu", "nanoseconds")) || profile.period == 0 {
            self.found(Rule::OwnTypes, place, format!("{types:?} with period {}", profile.period));
        }
        for sample in &profile.samples {
            if !sample.values.is_empty() {
                self.found(Rule::OwnTimestamps, place, "a sample has values");
            }
            for key in ["thread.id", "thread.name", "stack.completeness"] {
                if !self.has_key(&sample.attribute_indices, |found| found == key) {
                    self.found(Rule::OwnSampleAttributes, place, format!("a sample has no {key}"));
                }
            }
        }
    }
}

/// pid and creation time.
fn identity(resource: &Resource) -> Option<(i64, &str)> {
    let value = |key| {
        let attribute = resource.attributes.iter().find(|attribute| attribute.key == key)?;
        attribute.value.as_ref()?.value.as_ref()
    };
    match (value("process.pid")?, value("process.creation.time")?) {
        (Value::IntValue(pid), Value::StringValue(time)) => Some((*pid, time)),
        _ => None,
    }
}
