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
/// Most places that are given back: each costs a check of many reads.
const PLACES: usize = 8;
/// Most places that are looked at, by two reads each; 300 were seen in a static 3.11.
const LOOKS: usize = 16_384;
/// More interpreters were never made in one process than this number says.
const NEXT_ID_LIMIT: u64 = 1 << 20;

/// The writable mappings of a file, and the zeroed memory (`.bss`) that follows each.
fn writable<'a>(maps: &'a [Mapping], file: &'a Mapping) -> impl Iterator<Item = (u64, u64)> + 'a {
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
    maps: &[Mapping],
    file: &Mapping,
    version: Version,
    layout: &Layout,
) -> Vec<u64> {
    let is_writable = |word: u64| {
        let behind = maps.partition_point(|mapping| mapping.start <= word);
        let mapping = behind.checked_sub(1).and_then(|at| maps.get(at));
        mapping.is_some_and(|mapping| word < mapping.end && mapping.perms[1] == b'w')
    };
    let holds = |base: u64| version.minor() >= 13 || holds_interpreter(memory, base, layout);
    let mut found = Vec::new();
    let mut looks = LOOKS;
    let mut left = SEARCH_LIMIT;
    let mut piece = vec![0; PIECE_BYTES];
    for (start, end) in writable(maps, file) {
        let mut at = start;
        while at < end && left > 0 && looks > 0 && found.len() < PLACES {
            let bytes = (end - at).min(PIECE_BYTES as u64).min(left);
            left -= bytes;
            let Some(part) = usize::try_from(bytes).ok().and_then(|length| piece.get_mut(..length)) else {
                break;
            };
            if memory.read(at, part).is_ok() {
                let bases = in_piece(part, at, version, layout, &is_writable);
                for base in bases.into_iter().take(looks) {
                    looks -= 1;
                    found.extend(holds(base).then_some(base));
                }
            }
            // Pieces overlap by three of the four words that are looked at together.
            at = if at + bytes >= end { end } else { at + bytes.max(32) - 24 };
        }
    }
    found.dedup();
    found.truncate(PLACES);
    found
}

/// Whether a runtime here would have an interpreter with a thread that points back to it.
fn holds_interpreter(memory: &impl RemoteMemory, base: u64, layout: &Layout) -> bool {
    let at = |base: u64, offset: u16| memory.read_u64(base.wrapping_add(offset.into()));
    let interpreter = memory.read_u64(base.wrapping_add(layout.interpreters_head)).unwrap_or_default();
    let thread = at(interpreter, layout.process.interp_threads).unwrap_or_default();
    interpreter != 0 && thread != 0 && at(thread, layout.process.ts_interp).is_ok_and(|it| it == interpreter)
}

/// From 3.13 on it begins with a cookie. Before, `struct pyinterpreters` in it has a lock, the first and
/// the main interpreter and the number of the next one behind each other
/// (`Include/internal/pycore_runtime.h` of v3.12.1, `pycore_pystate.h` of v3.8.18, `pystate.h` of v3.7.16).
fn in_piece(
    piece: &[u8],
    at: u64,
    version: Version,
    layout: &Layout,
    is_writable: &impl Fn(u64) -> bool,
) -> Vec<u64> {
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
    let is_object = |word: u64| word.is_multiple_of(8) && is_writable(word);
    words
        .array_windows()
        .enumerate()
        .filter(|(_, [lock, head, main, next])| {
            (1..NEXT_ID_LIMIT).contains(next) && [lock, head, main].iter().all(|word| is_object(**word))
        })
        .map(|(i, _)| address(i).wrapping_add(8).wrapping_sub(layout.interpreters_head))
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

    /// Writable memory of one file at these addresses.
    fn maps(start: u64, end: u64) -> Vec<Mapping> {
        mappings::parse(format!("{start:x}-{end:x} rw-p 0 fd:01 7 /a\n").as_bytes())
    }

    #[test]
    fn a_runtime_across_two_pieces() {
        let (start, end) = (0x10_0000, 0x10_0000 + 2 * PIECE_BYTES as u64);
        let maps = maps(start, end);
        let layout = offsets::table(OLD).unwrap();
        let mut bytes = vec![0; 2 * PIECE_BYTES];
        let mut put = |at: usize, word: u64| bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        let (lock, interpreter, thread) = (PIECE_BYTES - 16, 0x1000, 0x2000);
        let (first, second) = (start + interpreter, start + thread);
        for (index, word) in [start, first, first, 1].into_iter().enumerate() {
            put(lock + 8 * index, word);
            // A thread that does not point back, and other memory, are no interpreter.
            put(0x40 + 8 * index, if index == 3 { 1 } else { start });
            put(0x80 + 8 * index, if index == 3 { 1 } else { end });
        }
        put(interpreter as usize + usize::from(layout.process.interp_threads), second);
        put(thread as usize + usize::from(layout.process.ts_interp), first);
        let mut image = MemoryImage::default();
        image.put(start, bytes);
        let base = start + lock as u64 + 8 - layout.interpreters_head;
        assert_eq!(places(&image, &maps, &maps[0], OLD, &layout), [base]);
        assert!(places(&image, &maps, &maps[0], NEW, &layout).is_empty());
        assert!(places(&MemoryImage::default(), &maps, &maps[0], OLD, &layout).is_empty(), "unreadable");
    }

    #[test]
    fn a_cookie() {
        let maps = maps(0x1000, 0x1018);
        let mut image = MemoryImage::default();
        image.put(0x1000, [[0; 8], *debug_offsets::COOKIE, [0; 8]].concat());
        let layout = offsets::table(NEW).unwrap();
        assert_eq!(places(&image, &maps, &maps[0], NEW, &layout), [0x1008]);
    }

    #[test]
    fn absurd_data_is_bounded() {
        let maps = maps(0x1000, 0x1000 + 240_000);
        let mut image = MemoryImage::default();
        image.put(0x1000, [0x1000_u64, 0x1000, 0x1000].map(u64::to_le_bytes).concat().repeat(10_000));
        let layout = offsets::table(OLD).unwrap();
        assert!(places(&image, &maps, &maps[0], OLD, &layout).len() <= PLACES);
        let layout = offsets::table(NEW).unwrap();
        image.put(0x1000, debug_offsets::COOKIE.repeat(30_000));
        assert_eq!(places(&image, &maps, &maps[0], NEW, &layout).len(), PLACES);
    }
}
