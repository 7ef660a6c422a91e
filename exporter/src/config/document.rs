//! YAML text to a tree in which every node knows its line.
//!
//! A tree rather than serde's derived types, because a deserializer stops at the first fault, and the
//! reader of a configuration wants them all. Scalars keep their text as written (`1.10` stays `1.10`).

use serde_yaml::granit_parser::{Event, Parser, ScalarStyle};

/// Deepest nesting that is read: twice what the configuration has, far below what a stack holds.
const MAX_DEPTH: usize = 16;

/// A value and where it stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// Line from 1.
    pub(super) line: usize,
    /// What stands there.
    pub(super) value: Value,
}

/// What a node holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// Nothing, `~` or `null`.
    Null,
    /// Any other scalar, as text.
    Scalar(String),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping in the order of the file: key, line of the key, value. Keys may repeat.
    Map(Vec<(String, usize, Node)>),
}

/// Why the text is not a document that can be read, and the line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SyntaxFault {
    /// Line from 1.
    pub(super) line: usize,
    /// What the parser says.
    pub(super) problem: String,
}

/// A collection whose end has not come yet.
enum Open {
    List { line: usize, items: Vec<Node> },
    Map { line: usize, entries: Vec<(String, usize, Node)>, key: Option<(String, usize)> },
}

/// Reads one document. An empty file is an empty mapping.
pub(super) fn parse(text: &str) -> Result<Node, SyntaxFault> {
    let mut open: Vec<Open> = Vec::new();
    let mut root: Option<Node> = None;
    for item in Parser::new_from_str(text) {
        let (event, span) =
            item.map_err(|error| SyntaxFault { line: error.marker().line(), problem: error.info() })?;
        let line = span.start.line();
        let refuse = |problem: &str| Err(SyntaxFault { line, problem: problem.to_owned() });
        let complete = match event {
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, _, Some(_))
            | Event::MappingStart(_, _, Some(_)) => return refuse("tags (`!name`) are not supported"),
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                return refuse("aliases (`*name`) are not supported");
            }
            Event::DocumentStart(..) if root.is_some() => return refuse("more than one document (`---`)"),
            Event::Scalar(text, style, _, None) => {
                let null = style == ScalarStyle::Plain && matches!(text.as_ref(), "" | "~" | "null");
                let value = if null { Value::Null } else { Value::Scalar(text.into_owned()) };
                Some(Node { line, value })
            }
            Event::SequenceStart(_, _, None) | Event::MappingStart(_, _, None) if open.len() >= MAX_DEPTH => {
                return refuse("nested too deeply");
            }
            Event::SequenceStart(_, _, None) => {
                open.push(Open::List { line, items: Vec::new() });
                None
            }
            Event::MappingStart(_, _, None) => {
                open.push(Open::Map { line, entries: Vec::new(), key: None });
                None
            }
            Event::SequenceEnd | Event::MappingEnd => open.pop().map(|done| match done {
                Open::List { line, items } => Node { line, value: Value::List(items) },
                Open::Map { line, entries, .. } => Node { line, value: Value::Map(entries) },
            }),
            // Comments, anchors that nothing refers to, and the edges of the stream say nothing.
            _ => None,
        };
        let Some(node) = complete else { continue };
        match open.last_mut() {
            None => root = Some(node),
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Map { entries, key, .. }) => match (key.take(), node.value) {
                (Some((name, key_line)), value) => {
                    entries.push((name, key_line, Node { line: node.line, value }));
                }
                (None, Value::Scalar(name)) => *key = Some((name, node.line)),
                (None, _) => return refuse("a key must be a word"),
            },
        }
    }
    Ok(match root {
        Some(Node { line, value: Value::Null }) => Node { line, value: Value::Map(Vec::new()) },
        Some(node) => node,
        None => Node { line: 1, value: Value::Map(Vec::new()) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_know_their_lines_and_keep_their_text() {
        let root = parse("# why\na:\n  b: 1.10\n  c: [x, 'null']\n").unwrap();
        let Value::Map(entries) = root.value else { panic!("no map") };
        assert_eq!((entries[0].0.as_str(), entries[0].1), ("a", 2));
        let Value::Map(inner) = &entries[0].2.value else { panic!("no inner map") };
        assert_eq!(inner[0].2, Node { line: 3, value: Value::Scalar("1.10".to_owned()) });
        let Value::List(items) = &inner[1].2.value else { panic!("no list") };
        assert_eq!(items[1], Node { line: 4, value: Value::Scalar("null".to_owned()) });
    }

    #[test]
    fn an_empty_file_is_an_empty_mapping() {
        for text in ["", "# nothing\n", "---\n", "~"] {
            assert_eq!(parse(text).unwrap().value, Value::Map(Vec::new()), "{text:?}");
        }
    }

    #[test]
    fn what_can_not_be_read_is_refused_with_its_line() {
        let deep = "[".repeat(100);
        let cases = [
            ("a: 1\nb: [1, 2\nc: 3\n", 0),
            ("a: &x 1\nb: *x\n", 2),
            ("a: !!int 5\n", 1),
            ("a: 1\n---\nb: 1\n", 2),
            ("? [a]\n: b\n", 1),
            (deep.as_str(), 1),
        ];
        for (text, line) in cases {
            let fault = parse(text).unwrap_err();
            assert!(line == 0 || fault.line == line, "{text:?}: {fault:?}");
            assert!(!fault.problem.is_empty());
        }
    }
}
