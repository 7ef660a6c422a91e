//! A good request has no findings; each mutation makes exactly its rule fire.

use std::collections::BTreeSet;

use opentelemetry_proto::tonic::common::v1::{AnyValue, any_value::Value};
use opentelemetry_proto::tonic::profiles::v1development::{
    Function, KeyValueAndUnit, Link, Mapping, Profile, Sample,
};

use super::*;
use crate::otlp::{fixture, profile::build};

type Request = ExportProfilesServiceRequest;
type Mutation = fn(&mut Request);

fn good() -> Request {
    build(&fixture::window())
}

fn profile(request: &mut Request) -> &mut Profile {
    &mut request.resource_profiles[0].scope_profiles[0].profiles[0]
}

fn sample(request: &mut Request) -> &mut Sample {
    &mut profile(request).samples[0]
}

fn tables(request: &mut Request) -> &mut ProfilesDictionary {
    request.dictionary.as_mut().unwrap()
}

fn string(request: &mut Request, text: &str) -> i32 {
    let strings = &mut tables(request).string_table;
    strings.push(text.to_owned());
    strings.len() as i32 - 1
}

/// A new attribute, on the first sample.
fn attribute(request: &mut Request, key: &str, value: Option<Value>) {
    let key_strindex = if key.is_empty() { 0 } else { string(request, key) };
    let value = value.map(|value| AnyValue { value: Some(value) });
    let table = &mut tables(request).attribute_table;
    table.push(KeyValueAndUnit { key_strindex, value, unit_strindex: 0 });
    let index = table.len() as i32 - 1;
    sample(request).attribute_indices.push(index);
}

/// A new mapping, with a build id if asked, on the first location.
fn mapping(request: &mut Request, start: u64, limit: u64, build_id: bool) {
    let mut mapping = Mapping { memory_start: start, memory_limit: limit, ..Default::default() };
    if build_id {
        attribute(request, "process.executable.build_id.gnu", Some(Value::StringValue("ab".into())));
        mapping.attribute_indices = sample(request).attribute_indices.pop().into_iter().collect();
    }
    mapping.filename_strindex = string(request, "libc.so.6");
    tables(request).mapping_table.push(mapping);
    tables(request).location_table[1].mapping_index = 1;
}

const MUTATIONS: &[(Rule, Mutation)] = &[
    (Rule::NotEmpty, |r| r.resource_profiles.push(r.resource_profiles[0].clone_without_scopes(77))),
    (Rule::Samples, |r| {
        let mut empty = profile(r).clone();
        empty.samples.clear();
        empty.profile_id[0] ^= 1;
        r.resource_profiles[0].scope_profiles[0].profiles.push(empty);
    }),
    (Rule::Present, |r| r.resource_profiles[0].scope_profiles[0].scope = None),
    (Rule::Present, |r| profile(r).period_type = None),
    (Rule::Present, |r| profile(r).sample_type = None),
    (Rule::Dictionary, |r| r.dictionary = None),
    (Rule::ZeroEntry, |r| tables(r).string_table[0] = "x".into()),
    (Rule::ZeroEntry, |r| tables(r).link_table.clear()),
    (Rule::ZeroEntry, |r| tables(r).link_table[0] = Link { trace_id: vec![0; 16], span_id: vec![0; 8] }),
    (Rule::IndexRange, |r| sample(r).link_index = 99),
    (Rule::IndexRange, |r| sample(r).link_index = -1),
    (Rule::IndexRange, |r| tables(r).location_table[1].mapping_index = 5),
    (Rule::DuplicateEntry, |r| {
        let copy = tables(r).function_table[1];
        tables(r).function_table.push(copy);
        let last = tables(r).function_table.len() as i32 - 1;
        let mut line = tables(r).location_table[1].lines[0];
        line.function_index = last;
        tables(r).location_table[1].lines.push(line);
    }),
    (Rule::UnreferencedEntry, |r| {
        string(r, "nobody");
    }),
    (Rule::UnreferencedEntry, |r| {
        tables(r).link_table.push(Link { trace_id: vec![1; 16], span_id: vec![1; 8] })
    }),
    (Rule::AttributeKeyUnique, |r| {
        let first = sample(r).attribute_indices[0];
        sample(r).attribute_indices.push(first);
    }),
    (Rule::AttributeValue, |r| attribute(r, "k", None)),
    (Rule::AttributeValue, |r| attribute(r, "", Some(Value::IntValue(1)))),
    (Rule::AttributeUnbounded, |r| attribute(r, "k", Some(Value::DoubleValue(0.5)))),
    (Rule::ResourceAttribute, |r| {
        let attributes = &mut r.resource_profiles[0].resource.as_mut().unwrap().attributes;
        attributes.push(attributes[2].clone());
    }),
    (Rule::ResourceAttribute, |r| {
        r.resource_profiles[0].resource.as_mut().unwrap().attributes[2].value = None
    }),
    (Rule::LinkId, |r| {
        tables(r).link_table.push(Link { trace_id: vec![1; 15], span_id: vec![1; 8] });
        sample(r).link_index = 1;
    }),
    (Rule::LineNegative, |r| tables(r).location_table[1].lines[0].line = -1),
    (Rule::LineNegative, |r| tables(r).function_table[1].start_line = -1),
    (Rule::FunctionNamed, |r| {
        tables(r).function_table.push(Function { start_line: 3, ..Default::default() });
        let last = tables(r).function_table.len() as i32 - 1;
        let mut line = tables(r).location_table[1].lines[0];
        line.function_index = last;
        tables(r).location_table[1].lines.push(line);
    }),
    (Rule::MappingRange, |r| mapping(r, 9, 9, true)),
    (Rule::MappingBuildId, |r| mapping(r, 1, 9, false)),
    (Rule::ProfileId, |r| profile(r).profile_id = vec![0; 16]),
    (Rule::ProfileId, |r| profile(r).profile_id = vec![1; 15]),
    (Rule::OriginalPayload, |r| profile(r).original_payload_format = "pprof".into()),
    (Rule::OriginalPayload, |r| {
        profile(r).original_payload_format = "own".into();
        profile(r).original_payload = vec![1];
    }),
    (Rule::Period, |r| profile(r).period = -1),
    (Rule::SampleData, |r| sample(r).timestamps_unix_nano.clear()),
    (Rule::SampleIdentity, |r| {
        let copy = sample(r).clone();
        profile(r).samples.push(copy);
    }),
    (Rule::TimestampInside, |r| sample(r).timestamps_unix_nano[0] = fixture::START - 1),
    (Rule::TimestampInside, |r| sample(r).timestamps_unix_nano[0] = fixture::START + 5_000_000_000),
    (Rule::OwnScope, |r| {
        r.resource_profiles[0].scope_profiles[0].scope.as_mut().unwrap().name = "other".into()
    }),
    (Rule::OwnProfileId, |r| profile(r).profile_id.clear()),
    (Rule::OwnTypes, |r| profile(r).period = 0),
    (Rule::OwnTypes, |r| {
        let swapped = profile(r).sample_type;
        profile(r).sample_type = profile(r).period_type;
        profile(r).period_type = swapped;
    }),
    (Rule::OwnTimestamps, |r| {
        for sample in &mut profile(r).samples {
            sample.values = vec![1; sample.timestamps_unix_nano.len()];
        }
    }),
    (Rule::OwnProcess, |r| {
        r.resource_profiles[1].resource = r.resource_profiles[0].resource.clone();
    }),
    (Rule::OwnProcess, |r| {
        r.resource_profiles[0].resource.as_mut().unwrap().attributes.remove(0);
    }),
    (Rule::OwnFrameType, |r| {
        let table = &mut tables(r).attribute_table;
        let cpython = Some(AnyValue { value: Some(Value::StringValue("cpython".into())) });
        let found = table.iter_mut().find(|attribute| attribute.value == cpython).unwrap();
        found.value = Some(AnyValue { value: Some(Value::StringValue("python".into())) });
    }),
    (Rule::OwnSampleAttributes, |r| {
        attribute(r, "other", Some(Value::IntValue(1)));
        let last = sample(r).attribute_indices.pop().unwrap();
        for sample in &mut profile(r).samples {
            sample.attribute_indices.push(last);
        }
        let id = tables(r).string_table.iter_mut().find(|s| *s == "thread.name").unwrap();
        *id = "thread.label".into();
    }),
];

/// These values break the contract too, so they are tried against the general rules alone.
const GENERAL: &[(Rule, Mutation)] = &[
    (Rule::SampleLengths, |r| {
        for sample in &mut profile(r).samples {
            sample.values = vec![1; 7];
        }
    }),
    (Rule::SampleOneValue, |r| {
        for sample in &mut profile(r).samples {
            sample.timestamps_unix_nano.clear();
            sample.values = vec![1; 2];
        }
    }),
    (Rule::SampleShape, |r| sample(r).values = vec![1; 2]),
];

trait CloneWithoutScopes {
    fn clone_without_scopes(&self, pid: i64) -> Self;
}

impl CloneWithoutScopes for opentelemetry_proto::tonic::profiles::v1development::ResourceProfiles {
    fn clone_without_scopes(&self, pid: i64) -> Self {
        let mut copy = self.clone();
        copy.scope_profiles.clear();
        copy.resource.as_mut().unwrap().attributes[0].value =
            Some(AnyValue { value: Some(Value::IntValue(pid)) });
        copy
    }
}

fn rules(findings: &[Finding]) -> BTreeSet<Rule> {
    findings.iter().map(|finding| finding.rule).collect()
}

#[test]
fn a_good_request_has_no_findings() {
    assert_eq!(validate_own(&good()), []);
}

#[test]
fn each_mutation_breaks_its_rule_and_no_other() {
    for (number, (rule, mutate)) in MUTATIONS.iter().enumerate() {
        let mut request = good();
        mutate(&mut request);
        let findings = validate_own(&request);
        assert_eq!(rules(&findings), BTreeSet::from([*rule]), "mutation {number}: {findings:?}");
    }
    for (rule, mutate) in GENERAL {
        let mut request = good();
        mutate(&mut request);
        let findings = validate(&request);
        assert_eq!(rules(&findings), BTreeSet::from([*rule]), "{findings:?}");
    }
}

#[test]
fn every_rule_has_a_mutation() {
    let tried: BTreeSet<Rule> = MUTATIONS.iter().chain(GENERAL).map(|(rule, _)| *rule).collect();
    let missing: Vec<_> = Rule::ALL.iter().filter(|rule| !tried.contains(rule)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
