//! The few symbols of a file that tell of an interpreter in it.
//!
//! A table is untrusted: names and sizes are bounded by the bytes that were read.

use super::elf::{string, word};

/// Bytes of an ELF64 symbol.
const SYMBOL_BYTES: usize = 24;

/// Addresses of the symbols, as the file has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Symbols {
    /// `_PyRuntime`.
    pub runtime: Option<u64>,
    /// `_PyThreadState_Current`.
    pub current: Option<u64>,
    /// `PyInterpreterState_Head`.
    pub head: Option<u64>,
    /// `PyGILState_GetThisThreadState`.
    pub gilstate: Option<u64>,
    /// `_PyThreadState_GetCurrent`.
    pub get_current: Option<u64>,
    /// `PyCode_Type`.
    pub code_type: Option<u64>,
    /// `Py_Version`.
    pub version: Option<u64>,
    /// `Py_GetVersion`.
    pub get_version: Option<u64>,
    /// Whether it calls or holds the `main` of an interpreter (`Py_BytesMain`, before 3.8
    /// `_Py_UnixMain`, before 3.7 `Py_Main`): `Programs/python.c` of CPython v3.13.0, v3.7.16, v3.6.15.
    pub is_launcher: bool,
}

impl Symbols {
    /// Looks through a symbol table (`.dynsym` or `.symtab`) with its names.
    #[must_use]
    pub fn find(table: &[u8], names: &[u8]) -> Self {
        let mut found = Self::default();
        for symbol in table.as_chunks::<SYMBOL_BYTES>().0 {
            // st_name @ 0, st_shndx @ 6, st_value @ 8
            let name_at = u64::from(u32::from_le_bytes([symbol[0], symbol[1], symbol[2], symbol[3]]));
            if !names
                .get(name_at as usize..)
                .is_some_and(|name| name.starts_with(b"_Py") || name.starts_with(b"Py"))
            {
                continue;
            }
            let field = match string(names, name_at) {
                Some(b"Py_BytesMain" | b"_Py_UnixMain" | b"Py_Main") => {
                    found.is_launcher = true;
                    continue;
                }
                // What is only asked for lies in another file.
                _ if (symbol[6], symbol[7]) == (0, 0) => continue,
                Some(b"_PyRuntime") => &mut found.runtime,
                Some(b"_PyThreadState_Current") => &mut found.current,
                Some(b"PyInterpreterState_Head") => &mut found.head,
                Some(b"PyGILState_GetThisThreadState") => &mut found.gilstate,
                Some(b"_PyThreadState_GetCurrent") => &mut found.get_current,
                Some(b"PyCode_Type") => &mut found.code_type,
                Some(b"Py_Version") => &mut found.version,
                Some(b"Py_GetVersion") => &mut found.get_version,
                Some(_) | None => continue,
            };
            *field = word(symbol, 8);
        }
        found
    }

    /// Whether they name an interpreter's state.
    #[must_use]
    pub fn has_state(&self) -> bool {
        self.runtime.is_some() || self.current.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(name: u32, section: u16, value: u64) -> Vec<u8> {
        let mut bytes = vec![0; SYMBOL_BYTES];
        bytes[..4].copy_from_slice(&name.to_le_bytes());
        bytes[6..8].copy_from_slice(&section.to_le_bytes());
        bytes[8..16].copy_from_slice(&value.to_le_bytes());
        bytes
    }

    #[test]
    fn defined_ones_are_found_and_imports_are_not() {
        let names = b"\0_PyRuntime\0PyCode_Type\0Py_BytesMain\0other\0";
        let table = [symbol(1, 7, 0x1234), symbol(12, 0, 0x99), symbol(24, 0, 0), symbol(37, 1, 5)].concat();
        let found = Symbols::find(&table, names);
        let expected = Symbols { runtime: Some(0x1234), is_launcher: true, ..Symbols::default() };
        assert_eq!(found, expected);
        assert!(found.has_state());
    }

    #[test]
    fn names_outside_the_table_are_left_out() {
        let table = [symbol(u32::MAX, 1, 1), symbol(3, 1, 1), vec![1; 5]].concat();
        assert_eq!(Symbols::find(&table, b"Py"), Symbols::default());
        assert!(!Symbols::find(b"", b"").has_state());
    }
}
