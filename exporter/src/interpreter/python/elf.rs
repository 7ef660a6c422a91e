//! What a mapped ELF file says of an interpreter in it: addresses of a few exported symbols, whether
//! it needs a library that holds one. Found by symbol or section, never by the file's name.
//!
//! The file is untrusted. Only section headers, dynamic symbols and their names are read; a file is
//! read once (see [`super::detect::Cache`]).

use std::fs::File;

use object::{
    Object as _, ObjectSection as _, ObjectSegment as _, ReadCache, ReadRef as _, SegmentFlags, elf::PF_X,
    read::elf::ElfFile64,
};

use super::{
    machine_code,
    thread_state::{self, TlsRecipe},
    version::Version,
};

/// Most bytes of a section that is read; the largest seen (LLVM) are below 16 MiB.
const SECTION_LIMIT: u64 = 64 << 20;
/// Bytes of an ELF64 symbol.
const SYMBOL_BYTES: usize = 24;
/// `DT_NEEDED`.
const TAG_NEEDED: u64 = 1;
/// `DT_SONAME`.
const TAG_SONAME: u64 = 14;

/// Findings in one file. Addresses are those of the file: add the load bias.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElfFacts {
    /// The runtime, if the file holds one.
    pub runtime: Option<Runtime>,
    /// Whether it needs a shared library of Python's, so that a runtime is still to come.
    pub needs_runtime: bool,
    /// Whether it needs musl rather than glibc.
    pub needs_musl: bool,
    /// Whether it is a library (it has a `DT_SONAME`).
    pub is_library: bool,
    /// The executable segment: file offset, bytes in the file, address.
    pub code_segment: Option<(u64, u64, u64)>,
}

/// An interpreter in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// Where its state is.
    pub state: State,
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
        match ElfFile64::<object::LittleEndian, _>::parse(&cache) {
            Ok(elf) => Self::of(&elf, &cache),
            Err(_) => Self::default(),
        }
    }

    fn of<'a>(
        elf: &ElfFile64<'a, object::LittleEndian, &'a ReadCache<File>>,
        file: &'a ReadCache<File>,
    ) -> Self {
        let section = |name: &str| {
            let section = elf.section_by_name(name)?;
            (section.size() <= SECTION_LIMIT).then(|| section.data().ok()).flatten()
        };
        let mut facts = Self::default();
        let segments: Vec<_> = elf
            .segments()
            .map(|segment| {
                let (offset, size) = segment.file_range();
                let code =
                    matches!(segment.flags(), SegmentFlags::Elf { p_flags, .. } if p_flags.0 & PF_X.0 != 0);
                (offset, size, segment.address(), code)
            })
            .collect();
        facts.code_segment = segments
            .iter()
            .find(|segment| segment.3)
            .map(|&(offset, size, address, _)| (offset, size, address));

        let names = section(".dynstr").unwrap_or_default();
        for entry in section(".dynamic").unwrap_or_default().as_chunks::<16>().0 {
            let name = || string(names, word(entry, 8)?);
            match word(entry, 0) {
                Some(TAG_NEEDED) => {
                    let name = name().unwrap_or_default();
                    facts.needs_runtime |= name.starts_with(b"libpython");
                    facts.needs_musl |= name.starts_with(b"libc.musl") || name == b"libc.so";
                }
                Some(TAG_SONAME) => facts.is_library = true,
                _ => {}
            }
        }

        let symbols = Symbols::find(section(".dynsym").unwrap_or_default(), names);
        let bytes = |address: u64, length: usize| {
            let &(offset, _, base, _) = segments.iter().find(|(_, size, base, _)| {
                address.checked_sub(*base).is_some_and(|into| into.saturating_add(length as u64) <= *size)
            })?;
            file.read_bytes_at(offset.checked_add(address - base)?, length as u64).ok()
        };
        let code = |address: Option<u64>| Some((bytes(address?, thread_state::CODE_BYTES)?, address?));
        // An embedder may export nothing: the section holds exactly the runtime.
        let runtime =
            symbols.runtime.or_else(|| elf.section_by_name(".PyRuntime").map(|section| section.address()));
        let state = match (runtime, symbols.current) {
            (Some(address), _) => Some(State::Runtime(address)),
            (None, Some(current)) => Some(State::Legacy(Legacy {
                current,
                interpreters: code(symbols.head).and_then(|(code, at)| machine_code::returned(code, at)),
                key: code(symbols.gilstate).and_then(|(code, at)| machine_code::first_argument(code, at)),
            })),
            (None, None) => None,
        };
        let text = || {
            let at = symbols.get_version?;
            machine_code::addresses(bytes(at, machine_code::VERSION_CODE_BYTES)?, at)
                .find_map(|address| Version::parse(bytes(address, Version::TEXT_BYTES)?))
        };
        facts.runtime = state.map(|state| Runtime {
            state,
            code_type: symbols.code_type,
            version: symbols.version.map(VersionSource::Word).or_else(|| text().map(VersionSource::Text)),
            tls: code(symbols.get_current).and_then(|(code, at)| thread_state::parse(code, at)),
            gilstate_tls: code(symbols.gilstate).and_then(|(code, at)| thread_state::parse(code, at)),
        });
        facts
    }
}

/// Addresses of the exported symbols that tell of an interpreter.
#[derive(Default)]
struct Symbols {
    /// `_PyRuntime`.
    runtime: Option<u64>,
    /// `_PyThreadState_Current`.
    current: Option<u64>,
    /// `PyInterpreterState_Head`.
    head: Option<u64>,
    /// `PyGILState_GetThisThreadState`.
    gilstate: Option<u64>,
    /// `_PyThreadState_GetCurrent`.
    get_current: Option<u64>,
    /// `PyCode_Type`.
    code_type: Option<u64>,
    /// `Py_Version`.
    version: Option<u64>,
    /// `Py_GetVersion`.
    get_version: Option<u64>,
}

impl Symbols {
    fn find(table: &[u8], names: &[u8]) -> Self {
        let mut found = Self::default();
        for symbol in table.as_chunks::<SYMBOL_BYTES>().0 {
            // st_name @ 0, st_shndx @ 6, st_value @ 8
            let name_at = u64::from(u32::from_le_bytes([symbol[0], symbol[1], symbol[2], symbol[3]]));
            if (symbol[6], symbol[7]) == (0, 0)
                || !names
                    .get(name_at as usize..)
                    .is_some_and(|name| name.starts_with(b"_Py") || name.starts_with(b"Py"))
            {
                continue;
            }
            let field = match string(names, name_at) {
                Some(b"_PyRuntime") => &mut found.runtime,
                Some(b"_PyThreadState_Current") => &mut found.current,
                Some(b"PyInterpreterState_Head") => &mut found.head,
                Some(b"PyGILState_GetThisThreadState") => &mut found.gilstate,
                Some(b"_PyThreadState_GetCurrent") => &mut found.get_current,
                Some(b"PyCode_Type") => &mut found.code_type,
                Some(b"Py_Version") => &mut found.version,
                Some(b"Py_GetVersion") => &mut found.get_version,
                _ => continue,
            };
            *field = word(symbol, 8);
        }
        found
    }
}

/// The string that begins at `at`.
fn string(table: &[u8], at: u64) -> Option<&[u8]> {
    table.get(usize::try_from(at).ok()?..)?.split(|&byte| byte == 0).next()
}

/// A little-endian word.
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_itself_holds_no_interpreter() {
        let facts = ElfFacts::read(File::open("/proc/self/exe").unwrap());
        assert_eq!(facts.runtime, None);
        assert!(!facts.needs_runtime && !facts.is_library && facts.code_segment.is_some());
    }

    #[test]
    fn other_files_have_no_findings() {
        assert_eq!(ElfFacts::read(File::open("/proc/self/stat").unwrap()), ElfFacts::default());
        assert_eq!(ElfFacts::read(File::open("/dev/null").unwrap()), ElfFacts::default());
    }
}
