//! Searching a live process for an interpreter's state that nothing names: the writable data of the
//! file is looked through for what only `_PyRuntime` can be. Every find is checked afterwards by
//! [`super::live_check`]; this only makes the list short.

use super::{debug_offsets, offsets::Layout, version::Version};
use crate::{process::mappings::Mapping, remote_memory::RemoteMemory};

/// Most bytes of writable data that are searched; a static CPython has 2 MiB, and the state lies in
/// front of, or among, what the embedding program has itself.
const SEARCH_LIMIT: u64 = 16 << 20;
/// Bytes read at a time.
const PIECE_BYTES: usize = 64 << 10;
/// Most places that are tried.
const PLACES: usize = 64;
/// More interpreters were never made in one process than this number says.
const NEXT_ID_LIMIT: u64 = 1 << 20;

/// The writable mappings of a file, and the zeroed memory (`.bss`) that follows each.
pub fn writable<'a>(maps: &'a [Mapping], file: &'a Mapping) -> impl Iterator<Item = (u64, u64)> + 'a {
    let mut end_before = 0;
    maps.iter().filter_map(move |mapping| {
        let is_of_file = (mapping.dev, mapping.inode) == (file.dev, file.inode);
        let is_zeroed = mapping.inode == 0 && mapping.path.is_empty() && mapping.start == end_before;
        if !is_of_file && !is_zeroed {
            return None;
        }
        end_before = mapping.end;
        (mapping.perms[1] == b'w').then_some((mapping.start, mapping.end))
    })
}

/// Places where `_PyRuntime` may begin, in the order of addresses.
pub fn places(
    memory: &impl RemoteMemory,
    ranges: impl Iterator<Item = (u64, u64)>,
    version: Version,
    layout: &Layout,
) -> Vec<u64> {
    let mut found = Vec::new();
    let mut left = SEARCH_LIMIT;
    let mut piece = vec![0; PIECE_BYTES];
    for (start, end) in ranges {
        let mut at = start;
        while at < end && left > 0 && found.len() < PLACES {
            let bytes = (end - at).min(PIECE_BYTES as u64).min(left);
            left -= bytes;
            let Some(part) = usize::try_from(bytes).ok().and_then(|length| piece.get_mut(..length)) else {
                break;
            };
            if memory.read(at, part).is_ok() {
                found.extend(in_piece(part, at, version, layout));
            }
            // Pieces overlap by two of the three words that are looked at together.
            at = if at + bytes >= end { end } else { at + bytes.max(24) - 16 };
        }
    }
    found.dedup();
    found.truncate(PLACES);
    found
}

/// From 3.13 on it begins with a cookie. Before, `struct pyinterpreters` in it has the first and the
/// main interpreter and the number of the next one behind each other (`Include/internal/pycore_runtime.h`
/// of v3.12.1, `pycore_pystate.h` of v3.8.18, `pystate.h` of v3.7.16).
fn in_piece(piece: &[u8], at: u64, version: Version, layout: &Layout) -> Vec<u64> {
    let words: Vec<u64> = piece.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let address = |index: usize| at.wrapping_add(8 * index as u64);
    if version.minor() >= 13 {
        let cookie = u64::from_le_bytes(*debug_offsets::COOKIE);
        return words
            .iter()
            .enumerate()
            .filter(|(_, word)| **word == cookie)
            .map(|(i, _)| address(i))
            .collect();
    }
    let is_pointer = |word: u64| word.is_multiple_of(8) && (0x1_0000..1 << 47).contains(&word);
    words
        .windows(3)
        .enumerate()
        .filter(|(_, it)| is_pointer(it[0]) && is_pointer(it[1]) && (1..NEXT_ID_LIMIT).contains(&it[2]))
        .map(|(i, _)| address(i).wrapping_sub(layout.interpreters_head))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{interpreter::python::offsets, process::mappings, remote_memory::MemoryImage};

    const OLD: Version = Version(0x0309_00f0);
    const NEW: Version = Version(0x030d_00f0);

    #[test]
    fn data_of_the_file_and_the_memory_behind_it() {
        let maps = mappings::parse(
            b"1000-2000 r-xp 0 fd:01 7 /a\n2000-3000 rw-p 1000 fd:01 7 /a\n3000-5000 rw-p 0 0:0 0 \n\
              5000-6000 rw-p 0 fd:01 8 /b\n6000-7000 rw-p 0 0:0 0 \n9000-a000 rw-p 0 0:0 0 [heap]\n",
        );
        let found: Vec<_> = writable(&maps, &maps[0]).collect();
        assert_eq!(found, [(0x2000, 0x3000), (0x3000, 0x5000)]);
    }

    #[test]
    fn a_runtime_across_two_pieces() {
        let layout = offsets::table(OLD).unwrap();
        let mut bytes = vec![0; 2 * PIECE_BYTES];
        let head = PIECE_BYTES - 16;
        for (index, word) in [0x7f00_0000_1000_u64, 0x7f00_0000_1000, 1].iter().enumerate() {
            bytes[head + 8 * index..][..8].copy_from_slice(&word.to_le_bytes());
        }
        let mut image = MemoryImage::default();
        image.put(0x10_0000, bytes);
        let end = 0x10_0000 + 2 * PIECE_BYTES as u64;
        let base = 0x10_0000 + head as u64 - layout.interpreters_head;
        let found = places(&image, [(0x10_0000, end)].into_iter(), OLD, &layout);
        assert_eq!(found, [base]);
        assert!(places(&image, [(0x10_0000, end)].into_iter(), NEW, &layout).is_empty());
        assert!(places(&image, [(0x9_0000, 0xa_0000)].into_iter(), OLD, &layout).is_empty(), "unreadable");
    }

    #[test]
    fn a_cookie() {
        let mut image = MemoryImage::default();
        image.put(0x1000, [[0; 8], *debug_offsets::COOKIE, [0; 8]].concat());
        let layout = offsets::table(NEW).unwrap();
        assert_eq!(places(&image, [(0x1000, 0x1018)].into_iter(), NEW, &layout), [0x1008]);
    }

    #[test]
    fn absurd_data_is_bounded() {
        let mut image = MemoryImage::default();
        image.put(0x1000, [8 << 20_u64, 8 << 20, 8].map(u64::to_le_bytes).concat().repeat(10_000));
        let layout = offsets::table(OLD).unwrap();
        assert_eq!(places(&image, [(0x1000, 0x1000 + 240_000)].into_iter(), OLD, &layout).len(), PLACES);
    }
}
