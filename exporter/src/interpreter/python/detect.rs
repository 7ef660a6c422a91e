//! Finding CPython in a process, and all that the walk must know of it.
//!
//! Enters: a pid. Leaves: a [`PythonProcess`] that has been checked against the live process, or the
//! reason why there is none. What a file says is kept, so that a further process of the same
//! interpreter costs a few reads of its memory and no look into a file.
//!
//! ```text
//! mapped files → those with a runtime → version and address (told, else guessed)
//!              → layout → checked against live threads → routes to the thread state
//! ```
//!
//! A process may hold several runtimes. One is walked: that which was walked before, else the first that
//! runs, in the order of addresses; the others are named in [`Detected::others`].

use std::{fmt, sync::Arc};

use exporter_common::python::{PythonProcess, TLS_NONE, TSD_NONE};

use super::{
    build::{Build, BuildKind, LayoutSource, Missing},
    debug_offsets,
    elf::{ElfFacts, Runtime, State, VersionSource},
    files::Cache,
    live_check::{self, CheckError, Found, Trust},
    offsets::{self, Layout},
    route::{self, Variables, unreadable},
    scan, tls_search,
    version::Version,
};
use crate::{
    process::{
        mappings::{self, Mapping},
        stat,
    },
    remote_memory::{ProcessMemory, RemoteMemory},
};

/// A Python process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detected {
    /// What the walk must know.
    pub process: PythonProcess,
    /// Version of the interpreter (`3.12.1`).
    pub version: String,
    /// How the interpreter was built into the process.
    pub build: Build,
    /// Where the layout comes from.
    pub layout_source: LayoutSource,
    /// What its profile lacks.
    pub missing: Vec<Missing>,
    /// Further interpreters that run in the process and are not walked: version and file.
    pub others: Vec<String>,
}

impl fmt::Display for Detected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CPython {} ({}), layout by {}", self.version, self.build, self.layout_source)?;
        for (at, missing) in self.missing.iter().enumerate() {
            write!(f, "{}{missing}", if at == 0 { "; missing: " } else { ", " })?;
        }
        self.others.iter().try_for_each(|other| write!(f, "; not walked: CPython {other}"))
    }
}

/// Why a process has no Python stacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotPython {
    /// No interpreter is mapped, and none is to come.
    #[error("no Python interpreter is mapped: it is profiled without Python frames")]
    NoRuntime,
    /// The interpreter is still starting: look again.
    #[error("the Python interpreter is still starting: it is looked at again soon")]
    NotYet,
    /// An interpreter of another version.
    #[error(
        "Python {0} cannot be walked: run it with CPython 3.6 to 3.15, built with the GIL, to see its frames"
    )]
    Unsupported(String),
    /// The process does not look as its version says.
    #[error(
        "the interpreter does not have the layout of its version ({0}): report it with the output of python -VV"
    )]
    LayoutNotBelieved(String),
    /// Its files or memory cannot be read.
    #[error(
        "the process cannot be read ({0}): run the exporter with CAP_SYS_PTRACE and CAP_CHECKPOINT_RESTORE, in the host's pid namespace"
    )]
    Unreadable(String),
}

/// Looks for CPython in the process `pid` that began at `start_ticks` (0 leaves that unchecked).
///
/// # Errors
///
/// [`NotPython`] says why there is nothing to walk; [`NotPython::NotYet`] asks for another look.
pub fn detect(pid: u32, generation: u32, start_ticks: u64, cache: &mut Cache) -> Result<Detected, NotPython> {
    let maps = mappings::read(pid).map_err(|error| NotPython::Unreadable(error.to_string()))?;
    let found = detect_in(pid, start_ticks, &maps, None, cache)?;
    Ok(Detected { process: PythonProcess { generation, ..found.process }, ..found })
}

/// The same, with the mappings of the process as they were a moment ago; `walked` is the
/// `interpreters_head` of the runtime that is walked already. The generation is left 0.
///
/// # Errors
///
/// As [`detect`].
pub fn detect_in(
    pid: u32,
    start_ticks: u64,
    maps: &[Mapping],
    walked: Option<u64>,
    cache: &mut Cache,
) -> Result<Detected, NotPython> {
    let files = files_of(pid, maps, cache);
    let is_embedded = !files.facts.iter().any(|(_, facts)| facts.is_launcher && !facts.is_library);
    let mut all: Vec<(Detected, &Mapping)> = Vec::new();
    let mut error = None;
    for (mapping, facts) in &files.facts {
        let Some(runtime) = facts.runtime else { continue };
        let candidate = Candidate { memory: ProcessMemory { pid }, maps, mapping, facts, runtime };
        match candidate.detect() {
            Ok(found) => all.push((found, mapping)),
            Err(NotPython::NotYet) => error = Some(NotPython::NotYet),
            Err(other) => error = error.or(Some(other)),
        }
    }
    // The one that is walked comes first.
    all.sort_by_key(|(found, _)| Some(found.process.interpreters_head) != walked);
    let mut all = all.into_iter();
    let Some((mut found, _)) = all.next() else {
        return Err(match (error, files.fault) {
            (Some(error), _) => error,
            (None, _) if files.needs_runtime => NotPython::NotYet,
            (None, Some(fault)) => NotPython::Unreadable(fault),
            (None, None) => NotPython::NoRuntime,
        });
    };
    if start_ticks != 0 && stat::is_gone(pid, start_ticks) {
        return Err(NotPython::Unreadable("the process has ended".to_owned()));
    }
    found.process.start_ticks = start_ticks;
    found.build.is_embedded = is_embedded;
    found.others = all.map(|(other, mapping)| format!("{} ({})", other.version, mapping.path)).collect();
    found.missing.extend((!found.others.is_empty()).then_some(Missing::OtherRuntimes));
    Ok(found)
}

/// The files that a process runs code of.
struct Files<'a> {
    /// Each with the first of its executable mappings.
    facts: Vec<(&'a Mapping, Arc<ElfFacts>)>,
    /// Whether one needs a runtime.
    needs_runtime: bool,
    /// What hindered from reading one.
    fault: Option<String>,
}

fn files_of<'a>(pid: u32, maps: &'a [Mapping], cache: &mut Cache) -> Files<'a> {
    let mut seen = Vec::new();
    let mut files = Files { facts: Vec::new(), needs_runtime: false, fault: None };
    for mapping in maps.iter().filter(|mapping| mapping.is_executable() && mapping.is_file()) {
        let file = (mapping.dev, mapping.inode);
        if seen.contains(&file) {
            continue;
        }
        seen.push(file);
        match cache.facts(pid, maps, mapping) {
            Ok(facts) => {
                files.needs_runtime |= facts.needs_runtime;
                files.facts.push((mapping, facts));
            }
            Err(error) => files.fault = Some(format!("{}: {error}", mapping.path)),
        }
    }
    files
}

/// A file with a runtime, in a process.
struct Candidate<'a> {
    memory: ProcessMemory,
    maps: &'a [Mapping],
    mapping: &'a Mapping,
    facts: &'a ElfFacts,
    runtime: Runtime,
}

impl Candidate<'_> {
    fn detect(&self) -> Result<Detected, NotPython> {
        let bias = load_bias(self.facts, self.mapping)?;
        let (versions, trust) = self.versions(bias)?;
        let mut last = NotPython::Unsupported("of an unknown version".to_owned());
        let mut not_yet = false;
        for version in versions {
            let Some(table) = offsets::table(version) else {
                last = NotPython::Unsupported(version.to_string());
                continue;
            };
            let bases = match self.runtime.state {
                State::Runtime(at) => vec![Some(at.wrapping_add(bias))],
                State::Legacy(_) => vec![None],
                State::Unknown => {
                    // Nothing is found before it is initialised.
                    not_yet = true;
                    let places = scan::places(&self.memory, self.maps, self.mapping, version, &table);
                    places.into_iter().map(Some).collect()
                }
            };
            for base in bases {
                match self.attempt(bias, base, version, &table, trust) {
                    Ok(found) => return Ok(found),
                    Err(NotPython::NotYet) => not_yet = true,
                    Err(error) => last = error,
                }
            }
        }
        Err(if not_yet { NotPython::NotYet } else { last })
    }

    /// The version that is told, or those that it may be.
    fn versions(&self, bias: u64) -> Result<(Vec<Version>, Trust), NotPython> {
        match (self.runtime.version, self.runtime.state) {
            (Some(VersionSource::Word(at)), _) => {
                let word = self.memory.read_u32(at.wrapping_add(bias)).map_err(unreadable)?;
                Ok((vec![Version(word)], Trust::Told))
            }
            (Some(VersionSource::Text(version)), _) => Ok((vec![version], Trust::Told)),
            (None, State::Runtime(at)) => {
                let mut head = [0; 16];
                self.memory.read(at.wrapping_add(bias), &mut head).map_err(unreadable)?;
                // From 3.13 on, the runtime says its version behind the cookie.
                match head.strip_prefix(debug_offsets::COOKIE).and_then(|rest| rest.first_chunk()) {
                    Some(word) => Ok((vec![Version(u32::from_le_bytes(*word))], Trust::Told)),
                    None => Ok((self.facts.versions.clone(), Trust::Guessed)),
                }
            }
            (None, State::Unknown) => Ok((self.facts.versions.clone(), Trust::Guessed)),
            (None, State::Legacy(_)) => Ok((Vec::new(), Trust::Guessed)),
        }
    }

    fn attempt(
        &self,
        bias: u64,
        base: Option<u64>,
        version: Version,
        table: &Layout,
        trust: Trust,
    ) -> Result<Detected, NotPython> {
        let (layout, layout_source) = match base {
            Some(base) => choose_layout(&self.memory, base, version, table)?,
            None => (*table, LayoutSource::Table),
        };
        let layout_source = match (layout_source, trust) {
            (LayoutSource::Table, Trust::Guessed) => LayoutSource::TableByTrial,
            (source, _) => source,
        };
        let mut process = layout.process;
        let variables = Variables::of(&self.runtime, base, &layout, bias)?;
        process.interpreters_head = variables.interpreters_head;
        process.holder = variables.holder;
        process.code_type = self.runtime.code_type.map_or(0, |at| at.wrapping_add(bias));
        let live = live_check::check(&self.memory, &process, trust).map_err(|error| match error {
            CheckError::NotYet => NotPython::NotYet,
            CheckError::Mismatch(reason) => NotPython::LayoutNotBelieved(reason.to_owned()),
            CheckError::Read(error) if error.is_gone() || error.is_forbidden() => unreadable(error),
            CheckError::Read(error) => NotPython::LayoutNotBelieved(error.to_string()),
        })?;
        process.code_type = live.code_type;
        self.set_routes(&mut process, &layout, &variables, &live, version, bias)?;
        let mut missing = Vec::new();
        missing.extend((version.minor() < 11).then_some(Missing::QualifiedNames));
        let has_route = process.tls_kind != TLS_NONE || process.tsd_kind != TSD_NONE;
        missing.extend((!has_route).then_some(Missing::Route));
        Ok(Detected {
            process,
            version: version.to_string(),
            build: Build {
                kind: if self.facts.is_library { BuildKind::Shared } else { BuildKind::Static },
                is_embedded: false,
                is_stripped: self.facts.is_stripped,
                is_exported: self.runtime.is_exported,
            },
            layout_source,
            missing,
            others: Vec::new(),
        })
    }

    fn set_routes(
        &self,
        process: &mut PythonProcess,
        layout: &Layout,
        variables: &Variables,
        live: &Found,
        version: Version,
        bias: u64,
    ) -> Result<(), NotPython> {
        let gilstate = self.runtime.gilstate_tls.filter(|_| layout.tsd_key.is_none());
        route::set_tls(&self.memory, process, gilstate.or(self.runtime.tls), self.facts, bias)?;
        // The variable exists from 3.12 on; musl's vector has cells of another size.
        if process.tls_kind == TLS_NONE
            && version.minor() >= 12
            && !self.facts.needs_musl
            && let Some(bytes) = self.facts.tls_bytes
            && let Some(place) = tls_search::search(&self.memory, &live.threads, bytes, self.facts.is_library)
        {
            route::set_found_tls(process, place);
        }
        route::set_tsd(&self.memory, process, variables, self.facts)
    }
}

/// What to add to an address of the file.
fn load_bias(facts: &ElfFacts, mapping: &Mapping) -> Result<u64, NotPython> {
    let (offset, _, address) = facts
        .code_segment
        .filter(|&(offset, size, _)| {
            mapping.offset.saturating_add(0xfff) >= offset && mapping.offset < offset.saturating_add(size)
        })
        .ok_or_else(|| NotPython::LayoutNotBelieved("its code is not mapped as its file says".to_owned()))?;
    Ok(mapping.start.wrapping_sub(mapping.offset).wrapping_add(offset).wrapping_sub(address))
}

/// The interpreter's own word where it gives one, else the table.
fn choose_layout(
    memory: &impl RemoteMemory,
    base: u64,
    version: Version,
    table: &Layout,
) -> Result<(Layout, LayoutSource), NotPython> {
    if version.minor() < 13 {
        return Ok((*table, LayoutSource::Table));
    }
    let mut bytes = [0; debug_offsets::SIZE];
    memory.read(base, &mut bytes).map_err(unreadable)?;
    match debug_offsets::apply(&bytes, version, table) {
        Ok((layout, differing)) => {
            if differing > 0 {
                tracing::debug!(%version, differing, "the interpreter's own layout differs from the table and is used");
            }
            Ok((layout, LayoutSource::DebugOffsets))
        }
        Err(debug_offsets::DebugOffsetsError::FreeThreaded) => {
            Err(NotPython::Unsupported(format!("{version} without the GIL")))
        }
        Err(error) => Err(NotPython::LayoutNotBelieved(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_itself_is_no_python_and_is_read_once() {
        let mut cache = Cache::new();
        assert_eq!(detect(std::process::id(), 1, 0, &mut cache), Err(NotPython::NoRuntime));
        let reads = cache.reads();
        assert!(reads > 0);
        assert_eq!(detect(std::process::id(), 1, 0, &mut cache), Err(NotPython::NoRuntime));
        assert_eq!(cache.reads(), reads);
        assert!(matches!(detect(u32::MAX, 1, 0, &mut cache), Err(NotPython::Unreadable(_))));
    }
}
