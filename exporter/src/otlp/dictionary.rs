//! The seven dictionary tables of a request, filled by value.
//!
//! Enters: strings, attributes, frames, stacks. Leaves: indices, and at the end a [`ProfilesDictionary`]
//! in which every table has its zero entry at index 0, no entry stands twice, and, as entries are only
//! made for what is referenced, none is unreferenced.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use opentelemetry_proto::tonic::common::v1::{AnyValue, any_value};
use opentelemetry_proto::tonic::profiles::v1development::{
    Function, KeyValueAndUnit, Line, Link, Location, Mapping, ProfilesDictionary, Stack,
};

use crate::aggregate::frame::{Frame, FrameKind};

/// Attribute of a Location: what kind of code it is.
pub const FRAME_TYPE: &str = "profile.frame.type";

/// Name of a function whose name is not known.
pub const UNKNOWN: &str = "[unknown]";

/// Value of an attribute in the dictionary. No floats: their number is not bounded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AttributeValue {
    /// Text.
    Text(Arc<str>),
    /// Whole number.
    Int(i64),
}

/// One table: distinct values in the order they came, the zero value first.
#[derive(Debug)]
struct Table<T> {
    entries: Vec<T>,
    index: HashMap<T, i32>,
}

impl<T: Clone + Eq + Hash> Table<T> {
    fn new(zero: T) -> Self {
        Self { entries: vec![zero.clone()], index: HashMap::from([(zero, 0)]) }
    }

    fn intern(&mut self, value: T) -> i32 {
        if let Some(&index) = self.index.get(&value) {
            return index;
        }
        let index = next_index(self.entries.len());
        self.entries.push(value.clone());
        self.index.insert(value, index);
        index
    }
}

/// A request below the size limit has far fewer than 2³¹ entries, so the bound is never met.
fn next_index(len: usize) -> i32 {
    i32::try_from(len).unwrap_or(i32::MAX)
}

/// Builder of a [`ProfilesDictionary`].
#[derive(Debug)]
pub struct Dictionary {
    strings: Table<Arc<str>>,
    attributes: Table<(i32, Option<AttributeValue>)>,
    functions: Table<Function>,
    /// The line and the attribute `profile.frame.type`; both zero only for the zero entry.
    locations: Table<(Line, i32)>,
    stacks: Table<Stack>,
    /// Frame → location, so that a hot frame is looked up once by value and not rebuilt.
    frames: HashMap<Arc<Frame>, i32>,
}

impl Default for Dictionary {
    fn default() -> Self {
        Self {
            strings: Table::new(Arc::from("")),
            attributes: Table::new((0, None)),
            functions: Table::new(Function::default()),
            locations: Table::new((Line::default(), 0)),
            stacks: Table::new(Stack::default()),
            frames: HashMap::new(),
        }
    }
}

impl Dictionary {
    /// Index of a string; 0 for the empty one.
    pub fn string(&mut self, text: &str) -> i32 {
        match self.strings.index.get(text) {
            Some(&index) => index,
            None => self.strings.intern(Arc::from(text)),
        }
    }

    /// Index of an attribute.
    pub fn attribute(&mut self, key: &str, value: AttributeValue) -> i32 {
        let key = self.string(key);
        self.attributes.intern((key, Some(value)))
    }

    /// Index of the stack of these frames, leaf first.
    pub fn stack(&mut self, frames: &[Arc<Frame>]) -> i32 {
        let location_indices = frames.iter().map(|frame| self.location(frame)).collect();
        self.stacks.intern(Stack { location_indices })
    }

    fn location(&mut self, frame: &Arc<Frame>) -> i32 {
        if let Some(&index) = self.frames.get(frame) {
            return index;
        }
        let name = if frame.name.is_empty() { UNKNOWN } else { &frame.name };
        let function = Function {
            name_strindex: self.string(name),
            system_name_strindex: 0,
            filename_strindex: self.string(&frame.file),
            start_line: i64::from(frame.start_line),
        };
        let function_index = self.functions.intern(function);
        let kind = match frame_type(frame.kind) {
            Some(kind) => self.attribute(FRAME_TYPE, AttributeValue::Text(Arc::from(kind))),
            None => 0,
        };
        let line = Line { function_index, line: i64::from(frame.line), column: 0 };
        let index = self.locations.intern((line, kind));
        self.frames.insert(Arc::clone(frame), index);
        index
    }

    /// The tables. `link_table[0]` has empty ids: the only form that every known receiver takes.
    pub fn finish(self) -> ProfilesDictionary {
        let attribute = |(key_strindex, value): (i32, Option<AttributeValue>)| KeyValueAndUnit {
            key_strindex,
            value: value.map(any_value),
            unit_strindex: 0,
        };
        ProfilesDictionary {
            mapping_table: vec![Mapping::default()],
            location_table: self.locations.entries.into_iter().map(location).collect(),
            function_table: self.functions.entries,
            link_table: vec![Link::default()],
            string_table: self.strings.entries.iter().map(|s| s.to_string()).collect(),
            attribute_table: self.attributes.entries.into_iter().map(attribute).collect(),
            stack_table: self.stacks.entries,
        }
    }
}

/// Value of `profile.frame.type`; marks of the exporter itself have none.
pub fn frame_type(kind: FrameKind) -> Option<&'static str> {
    match kind {
        FrameKind::Python => Some("cpython"),
        FrameKind::Native => Some("native"),
        FrameKind::Kernel => Some("kernel"),
        FrameKind::Marker => None,
    }
}

fn location((line, kind): (Line, i32)) -> Location {
    let given = |index: &i32| *index != 0;
    Location {
        lines: Some(line).filter(|line| given(&line.function_index)).into_iter().collect(),
        attribute_indices: Some(kind).filter(given).into_iter().collect(),
        ..Default::default()
    }
}

fn any_value(value: AttributeValue) -> AnyValue {
    let value = match value {
        AttributeValue::Text(text) => any_value::Value::StringValue(text.to_string()),
        AttributeValue::Int(number) => any_value::Value::IntValue(number),
    };
    AnyValue { value: Some(value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otlp::fixture::frame;

    #[test]
    fn an_empty_dictionary_has_the_zero_entry_in_all_seven_tables() {
        let tables = Dictionary::default().finish();
        assert_eq!(tables.mapping_table, [Mapping::default()]);
        assert_eq!(tables.location_table, [Location::default()]);
        assert_eq!(tables.function_table, [Function::default()]);
        assert_eq!(tables.link_table, [Link::default()]);
        assert_eq!(tables.string_table, [""]);
        assert_eq!(tables.attribute_table, [KeyValueAndUnit::default()]);
        assert_eq!(tables.stack_table, [Stack::default()]);
    }

    #[test]
    fn equal_values_share_one_entry() {
        let mut dictionary = Dictionary::default();
        let (f, g) = (frame("f", 3), frame("g", 7));
        let first = dictionary.stack(&[f.clone(), g.clone()]);
        assert_eq!(first, dictionary.stack(&[frame("f", 3), g.clone()]));
        assert_ne!(first, dictionary.stack(&[g, f]));
        assert_eq!(dictionary.string(""), 0);
        let tables = dictionary.finish();
        assert_eq!(tables.location_table.len(), 3);
        assert_eq!(tables.stack_table.len(), 3);
    }
}
