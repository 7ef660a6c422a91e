//! What a target program wrote of itself (`tests/python/_case.py` says what it holds).

use std::path::Path;

use serde_json::Value;

use crate::folded::Frame;

/// One frame of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrueFrame {
    /// Qualified name.
    pub name: String,
    /// `co_filename`.
    pub file: String,
    /// Line of the call.
    pub line: i64,
}

impl TrueFrame {
    /// Whether a frame of the profile is this one, line included.
    pub fn is(&self, frame: &Frame) -> bool {
        self.name == frame.name && self.file == frame.file && Some(self.line) == frame.line
    }
}

/// Reads a truth file.
///
/// # Panics
/// When there is none, or it is not JSON.
pub fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The functions of a truth: (key, what it holds).
pub fn functions(truth: &Value) -> impl Iterator<Item = (&String, &Value)> {
    truth["functions"].as_object().expect("functions").iter()
}

/// The chains of one function, root first.
pub fn chains(function: &Value) -> Vec<Vec<TrueFrame>> {
    array(&function["chains"]).iter().map(|chain| array(chain).iter().map(true_frame).collect()).collect()
}

fn true_frame(value: &Value) -> TrueFrame {
    // Before 3.11 a code object has its plain name only.
    let name = if value["qualname"].is_null() { "name" } else { "qualname" };
    TrueFrame { name: text(&value[name]), file: text(&value["file"]), line: int(&value["line"]) }
}

/// A number that is whole.
pub fn int(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("no whole number: {value}"))
}

/// A process id.
pub fn pid(value: &Value) -> u32 {
    u32::try_from(int(value)).expect("a pid")
}

/// A number.
pub fn float(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// A string.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no string: {value}")).to_owned()
}

/// A list.
pub fn array(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

/// A list of whole numbers.
pub fn ints(value: &Value) -> Vec<i64> {
    array(value).iter().map(int).collect()
}
