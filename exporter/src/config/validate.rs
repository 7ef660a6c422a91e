//! Walks the tree with the sections' rules, and goes on after each fault, so that all are found together.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::document::{Node, Value};
use super::fault::Fault;
use super::origin::{Origin, Origins};
use super::placeholder::{Variables, expand};
use super::secret::Secret;

/// Collects faults and origins while sections are read.
pub(super) struct Reader<'a> {
    file: &'a str,
    variables: Variables<'a>,
    /// What is wrong so far.
    pub(super) faults: Vec<Fault>,
    /// Which keys the file set, and where.
    pub(super) origins: Origins,
}

/// A mapping whose keys are known.
pub(super) struct Section<'n> {
    path: String,
    line: usize,
    entries: BTreeMap<&'n str, (usize, &'n Node)>,
}

impl Section<'_> {
    fn key(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
}

impl<'a> Reader<'a> {
    /// A reader of `file`, with nothing found yet.
    pub(super) fn new(file: &'a str, variables: Variables<'a>) -> Self {
        Self { file, variables, faults: Vec::new(), origins: Origins::default() }
    }

    /// The document as the outermost section.
    pub(super) fn root<'n>(&mut self, node: &'n Node, known: &[&str]) -> Option<Section<'n>> {
        self.mapping(node, String::new(), Some(known))
    }

    /// The section `name` of `parent`, unless it is absent, empty or no mapping.
    pub(super) fn section<'n>(
        &mut self,
        parent: &Section<'n>,
        name: &str,
        known: &[&str],
    ) -> Option<Section<'n>> {
        let (_, node) = parent.entries.get(name)?;
        self.mapping(node, parent.key(name), Some(known))
    }

    /// Reads the scalar `name` into `target`, when it is there.
    pub(super) fn value<T>(
        &mut self,
        section: &Section<'_>,
        name: &str,
        target: &mut T,
        allowed: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) {
        let Some((line, node)) = section.entries.get(name) else {
            return;
        };
        let key = section.key(name);
        if let Some(value) = self.scalar(node, &key, allowed, parse) {
            *target = value;
            self.origins.set(key, Origin::File { line: *line });
        }
    }

    /// Reads the list of scalars `name` into `target`, when it is there.
    pub(super) fn list<T>(
        &mut self,
        section: &Section<'_>,
        name: &str,
        target: &mut Vec<T>,
        allowed: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) {
        let Some((line, node)) = section.entries.get(name) else {
            return;
        };
        let key = section.key(name);
        match &node.value {
            Value::Null => {}
            Value::List(items) => {
                let read = items.iter().filter_map(|item| self.scalar(item, &key, allowed, &parse));
                *target = read.collect();
                self.origins.set(key, Origin::File { line: *line });
            }
            Value::Scalar(_) | Value::Map(_) => self.fault(node.line, &key, "is not a list", allowed),
        }
    }

    /// Reads the mapping `name` of free names to secret values into `target`, when it is there.
    pub(super) fn headers(
        &mut self,
        section: &Section<'_>,
        name: &str,
        target: &mut BTreeMap<String, Secret>,
        parse: impl Fn(&str, &str) -> Result<(String, Secret), String>,
    ) {
        let Some((line, node)) = section.entries.get(name) else {
            return;
        };
        let path = section.key(name);
        let Some(inner) = self.mapping(node, path.clone(), None) else {
            return;
        };
        target.clear();
        for (header, (header_line, node)) in &inner.entries {
            let key = inner.key(header);
            let Some((name, value)) = self.scalar(node, &key, "", |text| parse(header, text)) else {
                continue;
            };
            if target.insert(name, value).is_some() {
                self.fault(*header_line, &key, "is given twice (case does not count)", "");
            }
        }
        self.origins.set(path, Origin::File { line: *line });
    }

    /// Reports a fault of a key in a section, at its line or else the section's.
    pub(super) fn fault_at(&mut self, section: &Section<'_>, name: &str, problem: String) {
        let line = section.entries.get(name).map_or(section.line, |(line, _)| *line);
        self.fault(line, &section.key(name), problem, "");
    }

    fn fault(&mut self, line: usize, key: &str, problem: impl Into<String>, allowed: &str) {
        self.faults.push(Fault {
            file: self.file.to_owned(),
            line: Some(line),
            key: key.to_owned(),
            problem: problem.into(),
            allowed: allowed.to_owned(),
        });
    }

    /// One scalar, its variables expanded; `None` after a fault.
    fn scalar<T>(
        &mut self,
        node: &Node,
        key: &str,
        allowed: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = match &node.value {
            Value::Scalar(text) => text,
            Value::Null => {
                self.fault(node.line, key, "has no value", allowed);
                return None;
            }
            Value::List(_) | Value::Map(_) => {
                self.fault(node.line, key, "is not a single value", allowed);
                return None;
            }
        };
        let text = match expand(text, self.variables) {
            Ok(text) => text,
            Err(problem) => {
                self.fault(node.line, key, problem, "");
                return None;
            }
        };
        match parse(&text) {
            Ok(value) => Some(value),
            Err(problem) => {
                self.fault(node.line, key, problem, allowed);
                None
            }
        }
    }

    /// The entries of a mapping; reports keys that repeat and, where `known` is given, those not in it.
    fn mapping<'n>(&mut self, node: &'n Node, path: String, known: Option<&[&str]>) -> Option<Section<'n>> {
        let allowed = known.map(|known| known.join(", ")).unwrap_or_default();
        let mut section = Section { path, line: node.line, entries: BTreeMap::new() };
        match &node.value {
            Value::Null => Some(section),
            Value::Map(entries) => {
                for (name, line, value) in entries {
                    let key = section.key(name);
                    if known.is_some_and(|known| !known.contains(&name.as_str())) {
                        self.fault(*line, &key, "unknown key", &allowed);
                    } else if let Some((first, _)) = section.entries.get(name.as_str()) {
                        let problem = format!("is given twice (first in line {first})");
                        self.fault(*line, &key, problem, "");
                    } else {
                        section.entries.insert(name, (*line, value));
                    }
                }
                Some(section)
            }
            Value::Scalar(_) | Value::List(_) => {
                let path = section.path;
                self.fault(node.line, &path, "is not a mapping of keys to values", &allowed);
                None
            }
        }
    }
}

/// Reads a whole number within `range`.
pub(super) fn number<T: FromStr + PartialOrd + Display>(
    text: &str,
    range: &RangeInclusive<T>,
) -> Result<T, String> {
    match text.trim().parse::<T>() {
        Ok(value) if range.contains(&value) => Ok(value),
        Ok(_) => Err(format!("`{text}` is out of range")),
        Err(_) => Err(format!("`{text}` is not a whole number in range")),
    }
}
