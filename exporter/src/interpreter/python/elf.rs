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

use super::thread_state::{self, TlsRecipe};

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
    /// `_PyRuntime`.
    pub address: u64,
    /// `PyCode_Type`.
    pub code_type: Option<u64>,
    /// `Py_Version`: a 32-bit word (3.11 and later).
    pub version: Option<u64>,
    /// How the thread state is found (3.12 and later).
    pub tls: Option<TlsRecipe>,
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

        let (mut address, mut code_type, mut version, mut current) = (None, None, None, None);
        for symbol in section(".dynsym").unwrap_or_default().as_chunks::<SYMBOL_BYTES>().0 {
            // st_name @ 0, st_shndx @ 6, st_value @ 8
            let name_at = u64::from(u32::from_le_bytes([symbol[0], symbol[1], symbol[2], symbol[3]]));
            if (symbol[6], symbol[7]) == (0, 0)
                || !names
                    .get(name_at as usize..)
                    .is_some_and(|name| name.starts_with(b"_Py") || name.starts_with(b"Py"))
            {
                continue;
            }
            match string(names, name_at) {
                Some(b"_PyRuntime") => address = word(symbol, 8),
                Some(b"PyCode_Type") => code_type = word(symbol, 8),
                Some(b"Py_Version") => version = word(symbol, 8),
                Some(b"_PyThreadState_GetCurrent") => current = word(symbol, 8),
                _ => {}
            }
        }
        // An embedder may export nothing: the section holds exactly the runtime.
        let address = address.or_else(|| elf.section_by_name(".PyRuntime").map(|section| section.address()));
        let code = |address: u64| {
            let &(offset, _, base, _) = segments.iter().find(|(_, size, base, _)| {
                address
                    .checked_sub(*base)
                    .is_some_and(|into| into.saturating_add(thread_state::CODE_BYTES as u64) <= *size)
            })?;
            file.read_bytes_at(offset.checked_add(address - base)?, thread_state::CODE_BYTES as u64).ok()
        };
        facts.runtime = address.map(|address| Runtime {
            address,
            code_type,
            version,
            tls: current.and_then(|at| thread_state::parse(code(at)?, at)),
        });
        facts
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
