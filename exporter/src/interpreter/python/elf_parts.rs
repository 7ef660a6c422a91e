//! The parts of an ELF file that tell of an interpreter: by section, or by program header where a file was
//! stripped of its section headers too.
//!
//! The file is untrusted: every size is bounded, and what lies outside of it is absent.

use std::fs::File;

use object::{
    LittleEndian, Object as _, ObjectSection as _, ReadCache, ReadRef as _,
    elf::{ET_EXEC, PF_W, PF_X, PT_DYNAMIC, PT_INTERP, PT_LOAD, PT_TLS},
    read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _},
};

use super::elf::word;

/// Most bytes of a section that is read; the largest seen (LLVM) are below 16 MiB.
const SECTION_LIMIT: u64 = 64 << 20;
/// Most bytes of constants that are searched for an interpreter; those of a static CPython are 3 MiB.
const CONSTANTS_LIMIT: u64 = 32 << 20;
/// Most bytes of thread-local storage of a file; that of an interpreter is below 1 KiB.
const TLS_LIMIT: u64 = 64 << 10;
/// Most bytes of `PT_DYNAMIC`: 4,096 entries, where a large program has some 60.
const DYNAMIC_LIMIT: u64 = 64 << 10;
/// `DT_STRTAB`.
const TAG_NAMES: u64 = 5;
/// `DT_SYMTAB`.
const TAG_SYMBOLS: u64 = 6;
/// `DT_STRSZ`.
const TAG_NAMES_BYTES: u64 = 10;
/// `DT_FLAGS_1`.
const TAG_FLAGS: u64 = 0x6fff_fffb;
/// `DF_1_PIE`.
const FLAG_PIE: u64 = 0x0800_0000;

type Elf<'a> = ElfFile64<'a, LittleEndian, &'a ReadCache<File>>;

/// A mapped segment.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Bytes in the file.
    pub size: u64,
    /// Address.
    pub address: u64,
    flags: u32,
}

impl Segment {
    /// Whether code can run from it.
    #[must_use]
    pub fn is_code(&self) -> bool {
        self.flags & PF_X.0 != 0
    }
}

/// A parsed file.
pub struct Parts<'a> {
    elf: Elf<'a>,
    file: &'a ReadCache<File>,
    /// `PT_LOAD`, in their order.
    pub segments: Vec<Segment>,
    /// `PT_DYNAMIC`.
    pub dynamic: &'a [u8],
}

impl<'a> Parts<'a> {
    /// Parses it; `None` for one that is no 64-bit little-endian ELF file.
    #[must_use]
    pub fn parse(file: &'a ReadCache<File>) -> Option<Self> {
        let elf = ElfFile64::<LittleEndian, _>::parse(file).ok()?;
        let headers = || elf.elf_program_headers().iter();
        let segments = headers()
            .filter(|header| header.p_type(LittleEndian) == PT_LOAD)
            .map(|header| Segment {
                offset: header.p_offset(LittleEndian),
                size: header.p_filesz(LittleEndian),
                address: header.p_vaddr(LittleEndian),
                flags: header.p_flags(LittleEndian).0,
            })
            .collect();
        let dynamic = headers().find(|header| header.p_type(LittleEndian) == PT_DYNAMIC).and_then(|header| {
            let size = Some(header.p_filesz(LittleEndian)).filter(|size| *size <= DYNAMIC_LIMIT)?;
            file.read_bytes_at(header.p_offset(LittleEndian), size).ok()
        });
        Some(Self { elf, file, segments, dynamic: dynamic.unwrap_or_default() })
    }

    /// A section's bytes, if it is there and not absurdly large.
    #[must_use]
    pub fn section(&self, name: &str) -> Option<&'a [u8]> {
        self.section_within(name, SECTION_LIMIT)
    }

    fn section_within(&self, name: &str, limit: u64) -> Option<&'a [u8]> {
        let section = self.elf.section_by_name(name)?;
        (section.size() <= limit).then(|| section.data().ok()).flatten()
    }

    /// A section's address.
    #[must_use]
    pub fn section_address(&self, name: &str) -> Option<u64> {
        self.elf.section_by_name(name).map(|section| section.address())
    }

    /// The file's bytes at an address.
    #[must_use]
    pub fn bytes(&self, address: u64, length: u64) -> Option<&'a [u8]> {
        let segment = self.segments.iter().find(|segment| {
            let into = address.checked_sub(segment.address);
            into.is_some_and(|into| into.saturating_add(length) <= segment.size)
        })?;
        self.file.read_bytes_at(segment.offset.checked_add(address - segment.address)?, length).ok()
    }

    /// Values of `PT_DYNAMIC` with this tag.
    pub fn tagged(&self, tag: u64) -> impl Iterator<Item = u64> + 'a {
        let entries = self.dynamic.as_chunks::<16>().0.iter();
        entries.filter(move |entry| word(*entry, 0) == Some(tag)).filter_map(|entry| word(entry, 8))
    }

    /// Whether it is a program rather than a library.
    #[must_use]
    pub fn is_program(&self) -> bool {
        let is_pie = || self.tagged(TAG_FLAGS).any(|flags| flags & FLAG_PIE != 0);
        let mut headers = self.elf.elf_program_headers().iter();
        self.elf.elf_header().e_type(LittleEndian) == ET_EXEC
            || headers.any(|header| header.p_type(LittleEndian) == PT_INTERP)
            || is_pie()
    }

    /// Dynamic symbols, and the names they and `PT_DYNAMIC` point into. Without section headers nothing
    /// says how many symbols there are: linkers lay the names right behind them.
    #[must_use]
    pub fn dynamic_symbols(&self) -> (&'a [u8], &'a [u8]) {
        if let (Some(symbols), Some(names)) = (self.section(".dynsym"), self.section(".dynstr")) {
            return (symbols, names);
        }
        let first = |tag| self.tagged(tag).next();
        let part = |start: Option<u64>, length: Option<u64>| {
            let length = length.filter(|length| *length <= SECTION_LIMIT)?;
            self.bytes(start?, length)
        };
        let (symbols, names) = (first(TAG_SYMBOLS), first(TAG_NAMES));
        let length = names.zip(symbols).and_then(|(names, symbols)| names.checked_sub(symbols));
        let names = part(names, first(TAG_NAMES_BYTES)).unwrap_or_default();
        (part(symbols, length).unwrap_or_default(), names)
    }

    /// Constants: `.rodata`, else the segment that is neither written nor run and is largest.
    #[must_use]
    pub fn constants(&self) -> &'a [u8] {
        let segment = || {
            let is_constant = |segment: &&Segment| segment.flags & (PF_X.0 | PF_W.0) == 0;
            let largest = self.segments.iter().filter(is_constant).max_by_key(|segment| segment.size)?;
            (largest.size <= CONSTANTS_LIMIT)
                .then(|| self.file.read_bytes_at(largest.offset, largest.size).ok())
                .flatten()
        };
        match self.elf.section_by_name(".rodata") {
            Some(_) => self.section_within(".rodata", CONSTANTS_LIMIT),
            None => segment(),
        }
        .unwrap_or_default()
    }

    /// Bytes of its thread-local storage, rounded up to their alignment.
    #[must_use]
    pub fn tls_bytes(&self) -> Option<u64> {
        let mut headers = self.elf.elf_program_headers().iter();
        let header = headers.find(|header| header.p_type(LittleEndian) == PT_TLS)?;
        let align = header.p_align(LittleEndian).max(1);
        header.p_memsz(LittleEndian).checked_next_multiple_of(align).filter(|bytes| *bytes <= TLS_LIMIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_parts() {
        let file = ReadCache::new(File::open("/proc/self/exe").unwrap());
        let parts = Parts::parse(&file).unwrap();
        assert!(parts.is_program() && parts.tls_bytes().is_some());
        assert!(parts.segments.iter().any(Segment::is_code));
        let (symbols, names) = parts.dynamic_symbols();
        assert!(!symbols.is_empty() && names.windows(5).any(|name| name == b"read\0"));
        assert_eq!(parts.constants(), parts.section(".rodata").unwrap());
        assert_eq!(parts.bytes(u64::MAX, 8), None);
        assert_eq!(parts.bytes(parts.segments[0].address, 4), Some(&b"\x7fELF"[..]));
    }

    #[test]
    fn without_section_headers() {
        let mut bytes = std::fs::read("/proc/self/exe").unwrap();
        // e_shoff, e_shnum and e_shstrndx of the ELF header.
        bytes[40..48].fill(0);
        bytes[60..64].fill(0);
        let path = std::env::temp_dir().join(format!("otel-pe-parts-{}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let (file, whole) = (File::open(&path).unwrap(), File::open("/proc/self/exe").unwrap());
        std::fs::remove_file(&path).unwrap();
        let (file, whole) = (ReadCache::new(file), ReadCache::new(whole));
        let (parts, whole) = (Parts::parse(&file).unwrap(), Parts::parse(&whole).unwrap());
        assert_eq!(parts.section(".dynsym"), None);
        let ((symbols, names), (true_symbols, true_names)) =
            (parts.dynamic_symbols(), whole.dynamic_symbols());
        assert!(symbols.starts_with(true_symbols) && names == true_names);
        assert!(memchr::memmem::find(parts.constants(), &whole.constants()[..256]).is_some());
    }
}
