//! A request as two smaller ones, for a receiver that says it is too large.
//!
//! Works on the request itself, as its window is gone by then. Each half has a dictionary with just
//! what it refers to; the second half of a profile gets an id of its own.

use std::collections::HashMap;

use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::profiles::v1development::{
    Function, Link, Mapping, Profile, ProfilesDictionary, ResourceProfiles, Stack,
};

use crate::otlp::profile::profile_id;

/// Two halves, by resources, then scopes, profiles and samples. None for a single sample.
pub fn halve(
    request: &ExportProfilesServiceRequest,
) -> Option<(ExportProfilesServiceRequest, ExportProfilesServiceRequest)> {
    let (first, second) = match request.resource_profiles.as_slice() {
        [] => return None,
        [resource] => halve_resource(resource)?,
        many => split(many)?,
    };
    let old = request.dictionary.clone().unwrap_or_default();
    Some((compact(first, &old), compact(second, &old)))
}

fn split<T: Clone>(items: &[T]) -> Option<(Vec<T>, Vec<T>)> {
    let (first, second) = items.split_at(items.len() / 2);
    (!first.is_empty()).then(|| (first.to_vec(), second.to_vec()))
}

fn halve_resource(resource: &ResourceProfiles) -> Option<(Vec<ResourceProfiles>, Vec<ResourceProfiles>)> {
    let with = |scope_profiles| vec![ResourceProfiles { scope_profiles, ..resource.clone() }];
    let [scope] = resource.scope_profiles.as_slice() else {
        return split(&resource.scope_profiles).map(|(first, second)| (with(first), with(second)));
    };
    let with = |profiles| {
        let mut scope = scope.clone();
        scope.profiles = profiles;
        with(vec![scope])
    };
    let [profile] = scope.profiles.as_slice() else {
        return split(&scope.profiles).map(|(first, second)| (with(first), with(second)));
    };
    let (first, second) = split(&profile.samples)?;
    let first = Profile { samples: first, ..profile.clone() };
    let mut second = Profile { samples: second, ..profile.clone() };
    if !second.profile_id.is_empty() {
        second.profile_id = profile_id().to_vec();
    }
    Some((with(vec![first]), with(vec![second])))
}

fn compact(
    mut resource_profiles: Vec<ResourceProfiles>,
    old: &ProfilesDictionary,
) -> ExportProfilesServiceRequest {
    let mut compactor = Compactor::new(old);
    for resource in &mut resource_profiles {
        if let Some(resource) = &mut resource.resource {
            compactor.key_values(&mut resource.attributes);
        }
        for scope in &mut resource.scope_profiles {
            if let Some(scope) = &mut scope.scope {
                compactor.key_values(&mut scope.attributes);
            }
            scope.profiles.iter_mut().for_each(|profile| compactor.profile(profile));
        }
    }
    ExportProfilesServiceRequest { resource_profiles, dictionary: Some(compactor.new) }
}

/// Copies what is referred to from an old dictionary into a new one.
struct Compactor<'a> {
    old: &'a ProfilesDictionary,
    new: ProfilesDictionary,
    /// (table, old index) → new index.
    moved: HashMap<(u8, i32), i32>,
}

macro_rules! mover {
    ($name:ident, $number:literal, $table:ident, |$self:ident, $entry:ident| $fix:block) => {
        /// New index of an entry, which is copied at its first use. An index out of range stays.
        fn $name(&mut $self, index: i32) -> i32 {
            if let Some(&moved) = $self.moved.get(&($number, index)) {
                return moved;
            }
            let old = usize::try_from(index).ok().and_then(|index| $self.old.$table.get(index));
            let Some(mut $entry) = old.filter(|_| index != 0).cloned() else { return index };
            $fix
            let moved = i32::try_from($self.new.$table.len()).unwrap_or(i32::MAX);
            $self.new.$table.push($entry);
            $self.moved.insert(($number, index), moved);
            moved
        }
    };
}

impl<'a> Compactor<'a> {
    fn new(old: &'a ProfilesDictionary) -> Self {
        let new = ProfilesDictionary {
            mapping_table: vec![Mapping::default()],
            location_table: vec![Default::default()],
            function_table: vec![Function::default()],
            link_table: vec![Link::default()],
            string_table: vec![String::new()],
            attribute_table: vec![Default::default()],
            stack_table: vec![Stack::default()],
        };
        Self { old, new, moved: HashMap::new() }
    }

    mover!(link, 1, link_table, |self, entry| {
        entry.trace_id.shrink_to_fit();
    });
    mover!(string, 2, string_table, |self, entry| {
        entry.shrink_to_fit();
    });
    mover!(attribute, 3, attribute_table, |self, entry| {
        entry.key_strindex = self.string(entry.key_strindex);
        entry.unit_strindex = self.string(entry.unit_strindex);
        self.value(entry.value.as_mut());
    });
    mover!(mapping, 4, mapping_table, |self, entry| {
        entry.filename_strindex = self.string(entry.filename_strindex);
        self.attributes(&mut entry.attribute_indices);
    });
    mover!(function, 5, function_table, |self, entry| {
        entry.name_strindex = self.string(entry.name_strindex);
        entry.system_name_strindex = self.string(entry.system_name_strindex);
        entry.filename_strindex = self.string(entry.filename_strindex);
    });
    mover!(location, 6, location_table, |self, entry| {
        entry.mapping_index = self.mapping(entry.mapping_index);
        for line in &mut entry.lines {
            line.function_index = self.function(line.function_index);
        }
        self.attributes(&mut entry.attribute_indices);
    });
    mover!(stack, 7, stack_table, |self, entry| {
        for location in &mut entry.location_indices {
            *location = self.location(*location);
        }
    });

    fn attributes(&mut self, indices: &mut [i32]) {
        for index in indices {
            *index = self.attribute(*index);
        }
    }

    fn value(&mut self, value: Option<&mut AnyValue>) {
        match value.and_then(|value| value.value.as_mut()) {
            Some(Value::StringValueStrindex(index)) => *index = self.string(*index),
            Some(Value::ArrayValue(array)) => {
                array.values.iter_mut().for_each(|item| self.value(Some(item)));
            }
            Some(Value::KvlistValue(list)) => self.key_values(&mut list.values),
            _ => {}
        }
    }

    fn key_values(&mut self, list: &mut [KeyValue]) {
        for attribute in list {
            attribute.key_strindex = self.string(attribute.key_strindex);
            self.value(attribute.value.as_mut());
        }
    }

    fn profile(&mut self, profile: &mut Profile) {
        for value_type in [&mut profile.sample_type, &mut profile.period_type].into_iter().flatten() {
            value_type.type_strindex = self.string(value_type.type_strindex);
            value_type.unit_strindex = self.string(value_type.unit_strindex);
        }
        self.attributes(&mut profile.attribute_indices);
        for sample in &mut profile.samples {
            sample.stack_index = self.stack(sample.stack_index);
            sample.link_index = self.link(sample.link_index);
            self.attributes(&mut sample.attribute_indices);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otlp::{fixture, profile::build, read, validate::validate_own};

    fn samples(request: &ExportProfilesServiceRequest) -> Vec<String> {
        let profiles = read::profiles(request);
        let text = |profile: &read::PlainProfile| -> Vec<String> {
            profile.samples.iter().map(|sample| format!("{:?} {sample:?}", profile.resource)).collect()
        };
        profiles.iter().flat_map(text).collect()
    }

    #[test]
    fn halves_are_valid_and_together_the_whole() {
        let whole = build(&fixture::window());
        let (mut parts, mut single) = (vec![whole.clone()], Vec::new());
        while let Some(part) = parts.pop() {
            assert_eq!(validate_own(&part), []);
            match halve(&part) {
                Some((first, second)) => parts.extend([second, first]),
                None => single.push(part),
            }
        }
        assert_eq!(single.len(), 3);
        let union: Vec<String> = single.iter().flat_map(samples).collect();
        assert_eq!(union, samples(&whole));
    }
}
