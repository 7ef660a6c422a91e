//! What a mapped ELF file says of an interpreter in it: addresses of a few symbols, whether it needs a
//! library that holds one. Found by symbol, section or constants, never by the file's name.
//!
//! ```text
//! .dynsym → .PyRuntime → (an executable with an interpreter's constants) .symtab → to be searched for
//! ```
//!
//! The file is untrusted, and read once (see [`super::files::Cache`]).

use std::fs::File;

use object::ReadCache;

use super::{
    elf_parts::Parts,
    hint, machine_code,
    symbols::Symbols,
    thread_state::{self, TlsRecipe},
    version::Version,
};

/// `DT_NEEDED`.
const TAG_NEEDED: u64 = 1;

/// Findings in one file. Addresses are those of the file: add the load bias.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElfFacts {
    /// The runtime, if the file holds one.
    pub runtime: Option<Runtime>,
    /// Whether it needs a shared library of Python's, so that a runtime is still to come.
    pub needs_runtime: bool,
    /// Whether it needs musl rather than glibc.
    pub needs_musl: bool,
    /// Whether it is a library rather than a program.
    pub is_library: bool,
    /// Whether it is, or starts, `python` itself rather than another program.
    pub is_launcher: bool,
    /// Whether it has no `.symtab`.
    pub is_stripped: bool,
    /// The executable segment: file offset, bytes in the file, address.
    pub code_segment: Option<(u64, u64, u64)>,
    /// Bytes of its thread-local storage, rounded up to their alignment.
    pub tls_bytes: Option<u64>,
    /// Versions that its constants may mean, where nothing names the version.
    pub versions: Vec<Version>,
}

/// An interpreter in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// Where its state is.
    pub state: State,
    /// Whether `.dynsym` names it.
    pub is_exported: bool,
    /// `PyCode_Type`.
    pub code_type: Option<u64>,
    /// Its version.
    pub version: Option<VersionSource>,
    /// How the attached thread state is found (3.12 and later).
    pub tls: Option<TlsRecipe>,
    /// How the thread state is found, attached or not (3.15 and later, which have no pthread key).
    pub gilstate_tls: Option<TlsRecipe>,
}

/// Where an interpreter keeps its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// `_PyRuntime` (3.7 and later).
    Runtime(u64),
    /// Variables of their own (3.6 and earlier).
    Legacy(Legacy),
    /// Nothing names it: it is searched for in the live process.
    Unknown,
}

/// The variables of 3.6. Those that are not exported are in the machine code of functions that are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Legacy {
    /// `_PyThreadState_Current`.
    pub current: u64,
    /// `interp_head`, from `PyInterpreterState_Head`.
    pub interpreters: Option<u64>,
    /// `autoTLSkey`, from `PyGILState_GetThisThreadState`.
    pub key: Option<u64>,
}

/// Where the version is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionSource {
    /// `Py_Version`: a 32-bit word at this address (3.11 and later).
    Word(u64),
    /// `PY_VERSION`, the text that `Py_GetVersion` shows.
    Text(Version),
}

impl ElfFacts {
    /// Reads a file; one that is no 64-bit little-endian ELF file has no findings.
    #[must_use]
    pub fn read(file: File) -> Self {
        let cache = ReadCache::new(file);
        Parts::parse(&cache).map_or_else(Self::default, |parts| Self::of(&parts))
    }

    fn of(parts: &Parts<'_>) -> Self {
        let (symbols, names) = parts.dynamic_symbols();
        let exported = Symbols::find(symbols, names);
        let mut facts = Self {
            is_library: !parts.is_program(),
            is_launcher: exported.is_launcher,
            is_stripped: parts.section_address(".symtab").is_none(),
            code_segment: parts
                .segments
                .iter()
                .find(|segment| segment.is_code())
                .map(|segment| (segment.offset, segment.size, segment.address)),
            tls_bytes: parts.tls_bytes(),
            ..Self::default()
        };
        for name in parts.tagged(TAG_NEEDED).filter_map(|at| string(names, at)) {
            facts.needs_runtime |= name.starts_with(b"libpython");
            facts.needs_musl |= name.starts_with(b"libc.musl") || name == b"libc.so";
        }
        // The section holds exactly the runtime (3.10 and later).
        let runtime_section = parts.section_address(".PyRuntime");
        let mut symbols = exported;
        let mut is_unknown = false;
        if !exported.has_state() {
            // Constants are read of programs only: an interpreter in a library exports its symbols.
            let may_hold = !facts.is_library && !facts.needs_runtime;
            if runtime_section.is_none() && !(may_hold && hint::has_interpreter(parts.constants())) {
                return facts;
            }
            symbols = Symbols::find(
                parts.section(".symtab").unwrap_or_default(),
                parts.section(".strtab").unwrap_or_default(),
            );
            symbols.runtime = symbols.runtime.or(runtime_section);
            if symbols.version.is_none() && symbols.get_version.is_none() {
                facts.versions = hint::versions(parts.constants());
                is_unknown = !symbols.has_state() && !facts.versions.is_empty();
            }
        }
        facts.runtime = Runtime::of(&symbols, parts, is_unknown)
            .map(|it| Runtime { is_exported: exported.has_state(), ..it });
        facts
    }
}

impl Runtime {
    fn of(symbols: &Symbols, parts: &Parts<'_>, is_unknown: bool) -> Option<Self> {
        let bytes = |address: u64, length: usize| parts.bytes(address, length as u64);
        let code = |address: Option<u64>| Some((bytes(address?, thread_state::CODE_BYTES)?, address?));
        let state = match (symbols.runtime, symbols.current) {
            (Some(address), _) => State::Runtime(address),
            (None, Some(current)) => State::Legacy(Legacy {
                current,
                interpreters: code(symbols.head).and_then(|(code, at)| machine_code::returned(code, at)),
                key: code(symbols.gilstate).and_then(|(code, at)| machine_code::first_argument(code, at)),
            }),
            (None, None) if is_unknown => State::Unknown,
            (None, None) => return None,
        };
        let text = || {
            let at = symbols.get_version?;
            machine_code::addresses(bytes(at, machine_code::VERSION_CODE_BYTES)?, at)
                .find_map(|address| Version::parse(bytes(address, Version::TEXT_BYTES)?))
        };
        Some(Self {
            state,
            is_exported: false,
            code_type: symbols.code_type,
            version: symbols.version.map(VersionSource::Word).or_else(|| text().map(VersionSource::Text)),
            tls: code(symbols.get_current).and_then(|(code, at)| thread_state::parse(code, at)),
            gilstate_tls: code(symbols.gilstate).and_then(|(code, at)| thread_state::parse(code, at)),
        })
    }
}

/// The string that begins at `at`.
pub(super) fn string(table: &[u8], at: u64) -> Option<&[u8]> {
    table.get(usize::try_from(at).ok()?..)?.split(|&byte| byte == 0).next()
}

/// A little-endian word.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_itself_holds_no_interpreter() {
        let facts = ElfFacts::read(File::open("/proc/self/exe").unwrap());
        assert_eq!(facts.runtime.map(|runtime| runtime.state), None);
        assert!(!facts.needs_runtime && !facts.is_library && facts.code_segment.is_some());
        assert!(!facts.is_stripped && facts.tls_bytes.is_some());
    }

    #[test]
    fn other_files_have_no_findings() {
        assert_eq!(ElfFacts::read(File::open("/proc/self/stat").unwrap()), ElfFacts::default());
        assert_eq!(ElfFacts::read(File::open("/dev/null").unwrap()), ElfFacts::default());
    }
}
