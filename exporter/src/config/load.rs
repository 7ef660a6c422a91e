//! From a file, or from nothing but the environment, to a [`Config`] or to everything that is wrong.

use std::io::Read;
use std::path::Path;

use super::fault::Fault;
use super::placeholder::Variables;
use super::validate::Reader;
use super::{Config, document, environment, export, processes, sampling};

/// Longest file that is read: a hundred times what every key with its comment takes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Loads a configuration file, then OpenTelemetry's environment variables for what it leaves open.
///
/// # Errors
/// Every fault that can be found at once, in the order of lines.
pub fn load(path: &Path) -> Result<Config, Vec<Fault>> {
    let file = path.display().to_string();
    let text = read_text(path).map_err(|problem| {
        vec![Fault { file: file.clone(), line: None, key: String::new(), problem, allowed: String::new() }]
    })?;
    load_text(&file, &text, &process_environment)
}

/// The configuration without a file: defaults and the environment.
#[must_use]
pub fn from_environment() -> Config {
    let mut config = Config::default();
    environment::apply(&mut config, &process_environment);
    config
}

/// Loads text that stands in `file`.
pub(super) fn load_text(file: &str, text: &str, variables: Variables<'_>) -> Result<Config, Vec<Fault>> {
    let mut config = Config::default();
    let root = document::parse(text).map_err(|syntax| {
        vec![Fault {
            file: file.to_owned(),
            line: Some(syntax.line),
            key: String::new(),
            problem: syntax.problem,
            allowed: String::new(),
        }]
    })?;
    let mut reader = Reader::new(file, variables);
    if let Some(root) = reader.root(&root, &["sampling", "processes", "export"]) {
        if let Some(section) = reader.section(&root, "sampling", &["rate", "native"]) {
            sampling::read(&mut reader, &section, &mut config.sampling);
        }
        if let Some(section) = reader.section(&root, "processes", &["pids"]) {
            processes::read(&mut reader, &section, &mut config.processes);
        }
        if let Some(section) = reader.section(&root, "export", &export::KEYS) {
            export::read(&mut reader, &section, &mut config.export);
        }
    }
    let Reader { mut faults, origins, .. } = reader;
    if !faults.is_empty() {
        faults.sort_by_key(|fault| fault.line);
        return Err(faults);
    }
    config.origins = origins;
    environment::apply(&mut config, variables);
    Ok(config)
}

/// A variable of this process; one that is not Unicode counts as undefined.
fn process_environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The file's text, or why there is none.
fn read_text(path: &Path) -> Result<String, String> {
    let file = std::fs::File::open(path).map_err(|error| format!("cannot open the file: {error}"))?;
    let mut bytes = Vec::new();
    let read = file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("cannot read the file: {error}"))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("the file is longer than {MAX_FILE_BYTES} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "the file is not UTF-8 text".to_owned())
}
