//! Finding CPython in a process, and all that the walk must know of it.
//!
//! Enters: a pid. Leaves: a [`PythonProcess`] that has been checked against the live process, or the
//! reason why there is none. What a file says is kept, so that a further process of the same
//! interpreter costs a few reads of its memory and no look into a file.

use std::{
    collections::HashMap,
    fs::{self, File, Metadata},
    io,
    os::unix::fs::MetadataExt as _,
    sync::Arc,
};

use exporter_common::python::{HOLDER_GLOBAL, PythonProcess, TLS_DYNAMIC, TLS_STATIC, TSD_GLIBC, TSD_MUSL};

use super::{
    debug_offsets,
    elf::{ElfFacts, Legacy, Runtime, State, VersionSource},
    live_check::{self, CheckError},
    offsets::{self, Layout},
    thread_state::TlsRecipe,
    version::Version,
};
use crate::{
    process::{
        mappings::{self, Mapping},
        stat,
    },
    remote_memory::{ProcessMemory, ReadError, RemoteMemory},
};

/// Most files remembered in each of the two halves of the cache.
const CACHE_FILES: usize = 1_024;
/// glibc x86-64: offset of the first block of pthread keys in `struct pthread` (2.31 to 2.43).
const GLIBC_FIRST_BLOCK: u16 = 784;
/// glibc x86-64: offset of `struct pthread.specific` (2.31 to 2.43).
const GLIBC_SPECIFIC: u16 = 1_296;
/// musl x86-64: offset of the array of keys in `struct pthread` (1.2.3).
const MUSL_SPECIFIC: u16 = 128;
/// pthread keys there can be (glibc; musl has 128).
const KEY_LIMIT: u32 = 1_024;

/// Where the interpreter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildKind {
    /// In the executable.
    Static,
    /// In a library.
    Shared,
}

/// Where the layout comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutSource {
    /// The interpreter's own `_Py_DebugOffsets` (3.13 and later).
    DebugOffsets,
    /// The table of its version.
    Table,
}

/// A Python process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detected {
    /// What the walk must know.
    pub process: PythonProcess,
    /// Version of the interpreter (`3.12.1`).
    pub version: String,
    /// Where the interpreter is.
    pub build: BuildKind,
    /// Where the layout comes from.
    pub layout_source: LayoutSource,
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

/// A file's identity: device, inode, bytes, time of last change.
type FileKey = (u64, u64, u64, i64, i64);

/// What is known of files, bounded: when the younger half is full, the older is forgotten.
#[derive(Debug, Default)]
pub struct Cache {
    young: HashMap<FileKey, Arc<ElfFacts>>,
    old: HashMap<FileKey, Arc<ElfFacts>>,
    /// Files read.
    reads: u64,
}

impl Cache {
    /// An empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of files read so far: those that were not known.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.reads
    }

    /// Findings of the file behind a mapping.
    fn facts(&mut self, pid: u32, mapping: &Mapping) -> io::Result<Arc<ElfFacts>> {
        // Through the mapping the very file is reached, whatever the mount namespace or a deletion
        // did to its path; that needs a capability, the path does not.
        let by_mapping = format!("/proc/{pid}/map_files/{:x}-{:x}", mapping.start, mapping.end);
        let by_path = format!("/proc/{pid}/root{}", mapping.path);
        let (path, metadata) = match fs::metadata(&by_mapping) {
            Ok(metadata) => (by_mapping, metadata),
            Err(_) => {
                let metadata = fs::metadata(&by_path)?;
                (by_path, metadata)
            }
        };
        if !metadata.is_file() {
            return Ok(Arc::default());
        }
        let key = file_key(&metadata);
        if let Some(facts) = self.young.get(&key) {
            return Ok(Arc::clone(facts));
        }
        let facts = match self.old.remove(&key) {
            Some(facts) => facts,
            None => {
                self.reads += 1;
                Arc::new(ElfFacts::read(File::open(path)?))
            }
        };
        if self.young.len() >= CACHE_FILES {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, Arc::clone(&facts));
        Ok(facts)
    }
}

fn file_key(metadata: &Metadata) -> FileKey {
    (metadata.dev(), metadata.ino(), metadata.size(), metadata.mtime(), metadata.mtime_nsec())
}

/// Looks for CPython in the process `pid` that began at `start_ticks` (0 leaves that unchecked).
///
/// # Errors
///
/// [`NotPython`] says why there is nothing to walk; [`NotPython::NotYet`] asks for another look.
pub fn detect(pid: u32, generation: u32, start_ticks: u64, cache: &mut Cache) -> Result<Detected, NotPython> {
    let maps = mappings::read(pid).map_err(|error| NotPython::Unreadable(error.to_string()))?;
    let (mapping, facts, runtime) = find_runtime(pid, &maps, cache)?;
    let bias = load_bias(&facts, &mapping)?;
    let memory = ProcessMemory { pid };
    let version = match runtime.version {
        Some(VersionSource::Word(at)) => Version(memory.read_u32(at.wrapping_add(bias)).map_err(unreadable)?),
        Some(VersionSource::Text(version)) => version,
        None => return Err(NotPython::Unsupported("of an unknown version".to_owned())),
    };
    let table = offsets::table(version).ok_or_else(|| NotPython::Unsupported(version.to_string()))?;
    let (layout, layout_source) = match runtime.state {
        State::Runtime(at) => choose_layout(&memory, at.wrapping_add(bias), version, &table)?,
        State::Legacy(_) => (table, LayoutSource::Table),
    };
    let code_type = runtime
        .code_type
        .ok_or_else(|| NotPython::LayoutNotBelieved("PyCode_Type is not exported".to_owned()))?;

    let mut process = layout.process;
    process.generation = generation;
    process.start_ticks = start_ticks;
    let variables = Variables::of(&runtime, &layout, bias)?;
    process.interpreters_head = variables.interpreters_head;
    process.code_type = code_type.wrapping_add(bias);
    process.holder = variables.holder;
    live_check::check(&memory, &process).map_err(|error| match error {
        CheckError::NotYet => NotPython::NotYet,
        CheckError::Mismatch(reason) => NotPython::LayoutNotBelieved(reason.to_owned()),
        CheckError::Read(error) if error.is_gone() || error.is_forbidden() => unreadable(error),
        CheckError::Read(error) => NotPython::LayoutNotBelieved(error.to_string()),
    })?;
    let tls = if layout.tsd_key.is_none() { runtime.gilstate_tls.or(runtime.tls) } else { runtime.tls };
    set_tls(&memory, &mut process, tls, &facts, bias)?;
    set_tsd(&memory, &mut process, &variables, &facts)?;
    if start_ticks != 0 && stat::is_gone(pid, start_ticks) {
        return Err(NotPython::Unreadable("the process has ended".to_owned()));
    }
    let build = if facts.is_library { BuildKind::Shared } else { BuildKind::Static };
    Ok(Detected { process, version: version.to_string(), build, layout_source })
}

/// Addresses in the process of what the interpreter keeps for itself.
struct Variables {
    interpreters_head: u64,
    /// See `PythonProcess::holder`: an address, or an offset in the interpreter.
    holder: u64,
    key: Option<Key>,
}

/// The pthread key of the thread state.
struct Key {
    address: u64,
    /// The `int` that says whether there is a key; without it the key is −1 until it is made.
    is_initialised: Option<u64>,
}

impl Variables {
    fn of(runtime: &Runtime, layout: &Layout, bias: u64) -> Result<Self, NotPython> {
        match runtime.state {
            State::Runtime(at) => {
                let base = at.wrapping_add(bias);
                let holder = match layout.process.holder_kind {
                    HOLDER_GLOBAL => base.wrapping_add(layout.holder),
                    _ => layout.holder,
                };
                let key = layout.tsd_key.map(|offset| {
                    let address = base.wrapping_add(offset);
                    Key { address, is_initialised: Some(address.wrapping_sub(4)) }
                });
                Ok(Self { interpreters_head: base.wrapping_add(layout.interpreters_head), holder, key })
            }
            State::Legacy(Legacy { current, interpreters, key }) => {
                let interpreters = interpreters.ok_or_else(|| {
                    NotPython::LayoutNotBelieved("PyInterpreterState_Head has another form".to_owned())
                })?;
                let key = key.map(|at| Key { address: at.wrapping_add(bias), is_initialised: None });
                Ok(Self {
                    interpreters_head: interpreters.wrapping_add(bias),
                    holder: current.wrapping_add(bias),
                    key,
                })
            }
        }
    }
}

fn unreadable(error: ReadError) -> NotPython {
    NotPython::Unreadable(error.to_string())
}

/// The first file with code that holds a runtime.
fn find_runtime(
    pid: u32,
    maps: &[Mapping],
    cache: &mut Cache,
) -> Result<(Mapping, Arc<ElfFacts>, Runtime), NotPython> {
    let mut seen = Vec::new();
    let mut expected = false;
    let mut fault = None;
    for mapping in maps.iter().filter(|mapping| mapping.is_executable() && mapping.is_file()) {
        let file = (mapping.dev, mapping.inode);
        if seen.contains(&file) {
            continue;
        }
        seen.push(file);
        match cache.facts(pid, mapping) {
            Ok(facts) => {
                if let Some(runtime) = facts.runtime {
                    return Ok((mapping.clone(), facts, runtime));
                }
                expected |= facts.needs_runtime;
            }
            Err(error) => fault = Some(format!("{}: {error}", mapping.path)),
        }
    }
    Err(match fault {
        _ if expected => NotPython::NotYet,
        Some(fault) => NotPython::Unreadable(fault),
        None => NotPython::NoRuntime,
    })
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

/// The thread-local variable. Its module id is filled in by the loader before the runtime starts.
fn set_tls(
    memory: &impl RemoteMemory,
    process: &mut PythonProcess,
    recipe: Option<TlsRecipe>,
    facts: &ElfFacts,
    bias: u64,
) -> Result<(), NotPython> {
    match recipe {
        Some(TlsRecipe::Static(offset)) => {
            process.tls_kind = TLS_STATIC;
            process.tls_offset = i64::from(offset).cast_unsigned();
        }
        // musl's vector has cells of another size: the pthread key serves there.
        Some(TlsRecipe::Dynamic { pair, add }) if !facts.needs_musl => {
            let pair = pair.wrapping_add(bias);
            let module = memory.read_u64(pair).map_err(unreadable)?;
            let offset = memory.read_u64(pair.wrapping_add(8)).map_err(unreadable)?;
            if let Ok(module @ 1..) = u32::try_from(module) {
                process.tls_kind = TLS_DYNAMIC;
                process.tls_module = module;
                process.tls_offset = offset.wrapping_add_signed(add.into());
            }
        }
        Some(TlsRecipe::Dynamic { .. }) | None => {}
    }
    Ok(())
}

/// The pthread key. It is made after the first interpreter, so that for a moment it may be missing.
fn set_tsd(
    memory: &impl RemoteMemory,
    process: &mut PythonProcess,
    variables: &Variables,
    facts: &ElfFacts,
) -> Result<(), NotPython> {
    let Some(Key { address, is_initialised }) = variables.key else {
        return Ok(());
    };
    let key = memory.read_u32(address).map_err(unreadable)?;
    let is_initialised = match is_initialised {
        Some(at) => memory.read_u32(at).map_err(unreadable)?,
        None => u32::from(key != u32::MAX),
    };
    if is_initialised == 0 {
        return Err(NotPython::NotYet);
    }
    if is_initialised != 1 || key >= KEY_LIMIT {
        return Err(NotPython::LayoutNotBelieved("the key of the thread state is none".to_owned()));
    }
    process.tsd_key = key;
    if facts.needs_musl {
        process.tsd_kind = TSD_MUSL;
        process.tsd_specific = MUSL_SPECIFIC;
    } else {
        process.tsd_kind = TSD_GLIBC;
        process.tsd_specific = GLIBC_SPECIFIC;
        process.tsd_first_block = GLIBC_FIRST_BLOCK;
    }
    Ok(())
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
