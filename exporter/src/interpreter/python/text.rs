//! The characters of a compact `str`, which lie in memory as 1, 2 or 4 bytes each.
//!
//! Layout: `PyASCIIObject` and `PyCompactUnicodeObject` of CPython's
//! `Include/cpython/unicodeobject.h` (tags v3.11.7, v3.12.1, v3.13.0).

/// The text of `bytes`, `kind` bytes a character (1 is Latin-1 or ASCII, 2 UCS-2, 4 UCS-4).
///
/// Nothing but lone surrogates and values beyond Unicode is lost: they become U+FFFD, which OTLP
/// strings (UTF-8) need. A trailing piece of a character is dropped; another `kind` gives `None`.
#[must_use]
pub fn decode(bytes: &[u8], kind: u8) -> Option<String> {
    let replace = |value: u32| char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER);
    match kind {
        1 => Some(bytes.iter().map(|&byte| char::from(byte)).collect()),
        2 => Some(
            bytes.as_chunks::<2>().0.iter().map(|&unit| replace(u16::from_le_bytes(unit).into())).collect(),
        ),
        4 => Some(bytes.as_chunks::<4>().0.iter().map(|&unit| replace(u32::from_le_bytes(unit))).collect()),
        _ => None,
    }
}

/// The state word of a `str`, as 3.11 to 3.14 (with the GIL) have it: 2 bits interned, 3 bits kind
/// from bit 2 on, compact at bit 5, ascii at bit 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StrState {
    /// Bytes a character: 1, 2 or 4.
    pub kind: u8,
    /// Whether the data follows the shorter head.
    pub ascii: bool,
}

impl StrState {
    /// Reads the word; `None` unless it is that of a compact string.
    #[must_use]
    pub fn parse(word: u32) -> Option<Self> {
        let kind = (word >> 2 & 7) as u8;
        let ascii = word >> 6 & 1 == 1;
        let compact = word >> 5 & 1 == 1;
        let valid = compact && matches!(kind, 1 | 2 | 4) && (!ascii || kind == 1);
        valid.then_some(Self { kind, ascii })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_all_kinds() {
        assert_eq!(decode(b"abc", 1).unwrap(), "abc");
        assert_eq!(decode(&[0xe9], 1).unwrap(), "é");
        assert_eq!(decode(&[0x16, 0x04, 0x00], 2).unwrap(), "Ж");
        assert_eq!(decode(&0x1f40d_u32.to_le_bytes(), 4).unwrap(), "🐍");
        assert_eq!(decode(&0xd800_u16.to_le_bytes(), 2).unwrap(), "\u{fffd}");
        assert_eq!(decode(&u32::MAX.to_le_bytes(), 4).unwrap(), "\u{fffd}");
        assert_eq!(decode(b"", 3), None);
    }

    #[test]
    fn state_word() {
        assert_eq!(StrState::parse(0b110_0100), Some(StrState { kind: 1, ascii: true }));
        assert_eq!(StrState::parse(0b010_1000), Some(StrState { kind: 2, ascii: false }));
        assert_eq!(StrState::parse(0b110_1000), None, "an ascii string has one byte a character");
        assert_eq!(StrState::parse(0b000_0100), None, "not compact");
        assert_eq!(StrState::parse(0b010_1100), None, "kind 3");
    }
}
