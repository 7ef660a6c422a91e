//! The dictionary: zero entries, references between tables, duplicates, entries nobody refers to.

use std::collections::HashMap;

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use prost::Message;

use super::{Checker, Rule, TABLES, Table};

impl Checker<'_> {
    /// To be called after the profiles, so that their references are known.
    pub(super) fn tables(&mut self) {
        let tables = self.dictionary;
        self.mappings();
        self.locations();
        self.functions();
        self.links();
        self.attribute_table();
        for (i, stack) in tables.stack_table.iter().enumerate() {
            for &location in &stack.location_indices {
                self.refer(Table::Location, location, &format!("stack_table[{i}]"));
            }
        }
        self.entries(Table::Mapping, &encoded(&tables.mapping_table));
        self.entries(Table::Location, &encoded(&tables.location_table));
        self.entries(Table::Function, &encoded(&tables.function_table));
        self.entries(Table::Link, &encoded(&tables.link_table));
        let strings: Vec<_> = tables.string_table.iter().map(|s| s.clone().into_bytes()).collect();
        self.entries(Table::String, &strings);
        self.entries(Table::Attribute, &encoded(&tables.attribute_table));
        self.entries(Table::Stack, &encoded(&tables.stack_table));
        self.unreferenced();
    }

    fn mappings(&mut self) {
        for (i, mapping) in self.dictionary.mapping_table.iter().enumerate().skip(1) {
            let place = format!("mapping_table[{i}]");
            self.refer(Table::String, mapping.filename_strindex, &place);
            self.attributes(&mapping.attribute_indices, &place);
            let (start, limit) = (mapping.memory_start, mapping.memory_limit);
            if (start, limit) != (0, 0) && start >= limit {
                self.found(Rule::MappingRange, &place, format!("{start:#x} to {limit:#x}"));
            }
            if !self
                .has_key(&mapping.attribute_indices, |key| key.starts_with("process.executable.build_id."))
            {
                self.found(Rule::MappingBuildId, &place, "no build id attribute");
            }
        }
    }

    fn locations(&mut self) {
        for (i, location) in self.dictionary.location_table.iter().enumerate().skip(1) {
            let place = format!("location_table[{i}]");
            self.refer(Table::Mapping, location.mapping_index, &place);
            self.attributes(&location.attribute_indices, &place);
            for line in &location.lines {
                self.refer(Table::Function, line.function_index, &place);
                if line.line < 0 || line.column < 0 {
                    self.found(Rule::LineNegative, &place, format!("{}:{}", line.line, line.column));
                }
            }
        }
    }

    fn functions(&mut self) {
        for (i, function) in self.dictionary.function_table.iter().enumerate().skip(1) {
            let place = format!("function_table[{i}]");
            let names = [function.name_strindex, function.system_name_strindex, function.filename_strindex];
            for name in names {
                self.refer(Table::String, name, &place);
            }
            if names == [0; 3] {
                self.found(Rule::FunctionNamed, &place, "no name, system name or file");
            }
            if function.start_line < 0 {
                self.found(Rule::LineNegative, &place, format!("start_line {}", function.start_line));
            }
        }
    }

    fn links(&mut self) {
        for (i, link) in self.dictionary.link_table.iter().enumerate().skip(1) {
            let lengths = (link.trace_id.len(), link.span_id.len());
            if lengths != (16, 8) {
                self.found(Rule::LinkId, format!("link_table[{i}]"), format!("ids of {lengths:?} bytes"));
            }
        }
    }

    fn attribute_table(&mut self) {
        for (i, attribute) in self.dictionary.attribute_table.iter().enumerate().skip(1) {
            let place = format!("attribute_table[{i}]");
            self.refer(Table::String, attribute.key_strindex, &place);
            self.refer(Table::String, attribute.unit_strindex, &place);
            match attribute.value.as_ref().and_then(|value| value.value.as_ref()) {
                None => self.found(Rule::AttributeValue, &place, "no value"),
                Some(Value::DoubleValue(number)) => {
                    self.found(Rule::AttributeUnbounded, &place, format!("float {number}"));
                }
                Some(Value::StringValueStrindex(index)) => self.refer(Table::String, *index, &place),
                Some(_) => {}
            }
            if attribute.key_strindex == 0 {
                self.found(Rule::AttributeValue, &place, "no key");
            }
        }
    }

    /// Zero entry and duplicates, by encoded value.
    fn entries(&mut self, table: Table, entries: &[Vec<u8>]) {
        if entries.first().is_none_or(|zero| !zero.is_empty()) {
            self.found(Rule::ZeroEntry, format!("{}[0]", table.name()), "not the zero value");
        }
        let mut seen = HashMap::with_capacity(entries.len());
        for (i, entry) in entries.iter().enumerate() {
            if let Some(first) = seen.insert(entry, i) {
                let place = format!("{}[{i}]", table.name());
                self.found(Rule::DuplicateEntry, place, format!("equal to entry {first}"));
            }
        }
    }

    fn unreferenced(&mut self) {
        for table in TABLES {
            let used = self.used.get(table as usize).cloned().unwrap_or_default();
            for (i, _) in used.iter().enumerate().skip(1).filter(|(_, used)| !**used) {
                self.found(Rule::UnreferencedEntry, format!("{}[{i}]", table.name()), "nothing refers to it");
            }
        }
    }
}

fn encoded<M: Message>(entries: &[M]) -> Vec<Vec<u8>> {
    entries.iter().map(Message::encode_to_vec).collect()
}
