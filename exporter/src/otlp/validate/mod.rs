//! What is wrong with a request, by the OTLP profiles rules and by this exporter's own contract.
//!
//! A receiver seldom says so itself: the Collector passes bad indices on and drops the data later.
//! [`validate`] holds for any producer (all that profcheck checks, and what it leaves out);
//! [`validate_own`] adds what this exporter promises about its own requests.

mod contract;
mod profile;
mod tables;
#[cfg(test)]
mod tests;

use std::fmt;

use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::profiles::v1development::ProfilesDictionary;

macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident = $name:literal,)*) => {
        /// One rule that a request can break.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Rule { $($(#[$doc])* $rule,)* }

        impl Rule {
            /// Every rule.
            pub const ALL: &'static [Rule] = &[$(Rule::$rule,)*];

            /// Stable name.
            pub fn as_str(self) -> &'static str {
                match self { $(Rule::$rule => $name,)* }
            }
        }
    };
}

rules! {
    /// At least one ResourceProfiles, each with scopes, each with profiles.
    NotEmpty = "not-empty",
    /// A profile has samples.
    Samples = "samples",
    /// resource, scope, sample_type and period_type are present.
    Present = "message-present",
    /// The dictionary is present.
    Dictionary = "dictionary-present",
    /// Each table has its zero value at index 0.
    ZeroEntry = "zero-entry",
    /// Every index points into its table.
    IndexRange = "index-range",
    /// No two equal entries in a table.
    DuplicateEntry = "duplicate-entry",
    /// Every entry is referenced.
    UnreferencedEntry = "unreferenced-entry",
    /// Keys are unique in a list of attributes.
    AttributeKeyUnique = "attribute-key-unique",
    /// An attribute of the dictionary has a key and a value.
    AttributeValue = "attribute-value",
    /// No floats in the attribute table.
    AttributeUnbounded = "attribute-unbounded",
    /// Resource and scope attributes: one key, a value, references in range, no key twice.
    ResourceAttribute = "resource-attribute",
    /// Link ids are 16 and 8 bytes.
    LinkId = "link-id",
    /// Lines and columns are not negative.
    LineNegative = "line-negative",
    /// A function has a name, a system name or a file.
    FunctionNamed = "function-named",
    /// A mapping starts before its end.
    MappingRange = "mapping-range",
    /// A mapping has a build id.
    MappingBuildId = "mapping-build-id",
    /// profile_id is empty or 16 bytes that are not all zero.
    ProfileId = "profile-id",
    /// Original payload and its format come together, in a known format.
    OriginalPayload = "original-payload",
    /// The period is not negative.
    Period = "period",
    /// A sample has values or timestamps.
    SampleData = "sample-data",
    /// Values and timestamps are equally many.
    SampleLengths = "sample-lengths",
    /// Without timestamps there is one value.
    SampleOneValue = "sample-one-value",
    /// All samples of a profile have one shape.
    SampleShape = "sample-shape",
    /// Samples of one identity are one Sample.
    SampleIdentity = "sample-identity",
    /// Timestamps lie in [start, end).
    TimestampInside = "timestamp-inside",
    /// Contract: scope name.
    OwnScope = "own-scope",
    /// Contract: a profile_id is there, and each once.
    OwnProfileId = "own-profile-id",
    /// Contract: samples/count and cpu/nanoseconds with a period.
    OwnTypes = "own-types",
    /// Contract: timestamps without values.
    OwnTimestamps = "own-timestamps",
    /// Contract: one ResourceProfiles a process, with pid and creation time.
    OwnProcess = "own-process",
    /// Contract: known values of `profile.frame.type`.
    OwnFrameType = "own-frame-type",
    /// Contract: every sample has thread and completeness.
    OwnSampleAttributes = "own-sample-attributes",
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The broken rule.
    pub rule: Rule,
    /// Where, as a path into the request.
    pub place: String,
    /// What was found.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.rule.as_str(), self.place, self.text)
    }
}

/// Faults by the rules that hold for every producer.
pub fn validate(request: &ExportProfilesServiceRequest) -> Vec<Finding> {
    let empty = ProfilesDictionary::default();
    let mut checker = Checker::new(request.dictionary.as_ref().unwrap_or(&empty));
    if request.dictionary.is_none() {
        checker.found(Rule::Dictionary, "dictionary", "absent");
        return checker.findings;
    }
    checker.profiles(request);
    checker.tables();
    checker.findings
}

/// Faults by [`validate`] and by the contract of this exporter.
pub fn validate_own(request: &ExportProfilesServiceRequest) -> Vec<Finding> {
    let mut findings = validate(request);
    if let Some(dictionary) = &request.dictionary {
        let mut checker = Checker::new(dictionary);
        checker.contract(request);
        findings.append(&mut checker.findings);
    }
    findings
}

/// The seven tables, in the order of their fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Table {
    Mapping,
    Location,
    Function,
    Link,
    String,
    Attribute,
    Stack,
}

const TABLES: [Table; 7] = [
    Table::Mapping,
    Table::Location,
    Table::Function,
    Table::Link,
    Table::String,
    Table::Attribute,
    Table::Stack,
];

impl Table {
    fn name(self) -> &'static str {
        match self {
            Table::Mapping => "mapping_table",
            Table::Location => "location_table",
            Table::Function => "function_table",
            Table::Link => "link_table",
            Table::String => "string_table",
            Table::Attribute => "attribute_table",
            Table::Stack => "stack_table",
        }
    }

    fn len(self, tables: &ProfilesDictionary) -> usize {
        match self {
            Table::Mapping => tables.mapping_table.len(),
            Table::Location => tables.location_table.len(),
            Table::Function => tables.function_table.len(),
            Table::Link => tables.link_table.len(),
            Table::String => tables.string_table.len(),
            Table::Attribute => tables.attribute_table.len(),
            Table::Stack => tables.stack_table.len(),
        }
    }
}

/// What is being checked, and what came out so far.
struct Checker<'a> {
    dictionary: &'a ProfilesDictionary,
    findings: Vec<Finding>,
    /// For each table, which entries something refers to.
    used: [Vec<bool>; 7],
}

impl<'a> Checker<'a> {
    fn new(dictionary: &'a ProfilesDictionary) -> Self {
        let used = TABLES.map(|table| vec![false; table.len(dictionary)]);
        Self { dictionary, findings: Vec::new(), used }
    }

    fn found(&mut self, rule: Rule, place: impl Into<String>, text: impl Into<String>) {
        self.findings.push(Finding { rule, place: place.into(), text: text.into() });
    }

    /// Checks and notes one reference; 0 is "none" and always good.
    fn refer(&mut self, table: Table, index: i32, place: &str) {
        if index == 0 {
            return;
        }
        let used = self.used.get_mut(table as usize);
        match usize::try_from(index).ok().and_then(|index| used?.get_mut(index)) {
            Some(used) => *used = true,
            None => {
                let text =
                    format!("{index} is not in {} of {} entries", table.name(), table.len(self.dictionary));
                self.found(Rule::IndexRange, place, text);
            }
        }
    }

    fn string(&self, index: i32) -> &'a str {
        at(&self.dictionary.string_table, index).map_or("", String::as_str)
    }

    /// References of an attribute list, and the uniqueness of its keys.
    fn attributes(&mut self, indices: &[i32], place: &str) {
        let mut keys = Vec::with_capacity(indices.len());
        for &index in indices {
            self.refer(Table::Attribute, index, place);
            if let Some(attribute) = at(&self.dictionary.attribute_table, index) {
                let key = self.string(attribute.key_strindex);
                if keys.contains(&key) {
                    self.found(Rule::AttributeKeyUnique, place, format!("key {key:?} twice"));
                }
                keys.push(key);
            }
        }
    }

    /// Does a list have an attribute whose key satisfies this?
    fn has_key(&self, indices: &[i32], wanted: impl Fn(&str) -> bool) -> bool {
        let mut found = indices.iter().filter_map(|&index| at(&self.dictionary.attribute_table, index));
        found.any(|attribute| wanted(self.string(attribute.key_strindex)))
    }
}

fn at<T>(table: &[T], index: i32) -> Option<&T> {
    usize::try_from(index).ok().and_then(|index| table.get(index))
}
