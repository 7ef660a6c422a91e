//! Where the thread state lies in the thread-local storage of an interpreter whose code says nothing of
//! it: the blocks of live threads are looked through for their own thread states.
//!
//! x86-64: the thread pointer is the end of the executable's block, and `fs:8` points at the dynamic
//! thread vector of glibc, 16 bytes a module (`sysdeps/generic/dl-dtv.h` of glibc 2.36).

use crate::remote_memory::RemoteMemory;

/// Modules with thread-local storage that are looked at; a large program has some 20.
const MODULES: u32 = 64;

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At thread pointer + this many bytes.
    Static(i32),
    /// In the block of a module, at an offset.
    Dynamic {
        /// Its number in the dynamic thread vector.
        module: u32,
        /// Bytes from the start of the block.
        offset: u64,
    },
}

/// Looks through the blocks of `threads` (thread state, thread pointer) of an interpreter in the
/// executable, or in a library, whose thread-local storage has `bytes`. The word that is the thread's
/// own state in most threads, and another's in none, is it.
pub fn search(
    memory: &impl RemoteMemory,
    threads: &[(u64, u64)],
    bytes: u64,
    is_library: bool,
) -> Option<Place> {
    if !is_library {
        let blocks: Vec<_> =
            threads.iter().map(|&(state, pointer)| (state, pointer.wrapping_sub(bytes))).collect();
        let at = best(memory, &blocks, threads, bytes)?.1;
        return Some(Place::Static(
            i32::try_from(i64::try_from(at).ok()? - i64::try_from(bytes).ok()?).ok()?,
        ));
    }
    let mut found: Option<(usize, Place)> = None;
    for module in 1..=MODULES {
        let blocks: Vec<_> = threads
            .iter()
            .filter_map(|&(state, pointer)| {
                let vector = memory.read_u64(pointer.wrapping_add(8)).ok()?;
                let block = memory.read_u64(vector.wrapping_add(16 * u64::from(module))).ok()?;
                (block != 0 && block != u64::MAX).then_some((state, block))
            })
            .collect();
        if let Some((matches, offset)) = best(memory, &blocks, threads, bytes)
            && found.is_none_or(|(most, _)| matches > most)
        {
            found = Some((matches, Place::Dynamic { module, offset }));
        }
    }
    found.map(|(_, place)| place)
}

/// How many of the blocks (thread state, address) have their own state at which offset.
fn best(
    memory: &impl RemoteMemory,
    blocks: &[(u64, u64)],
    threads: &[(u64, u64)],
    bytes: u64,
) -> Option<(usize, u64)> {
    let length = usize::try_from(bytes).ok()?;
    let mut contents = Vec::new();
    for (state, block) in blocks {
        let mut content = vec![0; length];
        if memory.read(*block, &mut content).is_ok() {
            contents.push((*state, content));
        }
    }
    let mut found: Option<(usize, u64)> = None;
    for index in 0..length / 8 {
        let word = |content: &[u8]| super::elf::word(content, 8 * index).unwrap_or_default();
        let matches = contents.iter().filter(|(state, content)| word(content) == *state).count();
        let is_foreign = contents.iter().any(|(state, content)| {
            let word = word(content);
            word != *state && threads.iter().any(|(other, _)| *other == word)
        });
        if matches > 0 && !is_foreign && found.is_none_or(|(most, _)| matches > most) {
            found = Some((matches, 8 * index as u64));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote_memory::MemoryImage;

    const STATES: [u64; 2] = [0xaaa0, 0xbbb0];

    fn block(words: [u64; 4]) -> Vec<u8> {
        words.map(u64::to_le_bytes).concat()
    }

    #[test]
    fn in_the_executable() {
        let mut image = MemoryImage::default();
        // One thread is detached: its second word is empty. The last word is the first thread's in both.
        image.put(0x1000 - 32, block([7, STATES[0], STATES[0], STATES[0]]));
        image.put(0x2000 - 32, block([7, STATES[1], 0, STATES[0]]));
        let threads = [(STATES[0], 0x1000), (STATES[1], 0x2000)];
        assert_eq!(search(&image, &threads, 32, false), Some(Place::Static(-24)));
        assert_eq!(search(&image, &[(0xccc0, 0x1000)], 32, false), None);
        assert_eq!(search(&image, &[], 32, false), None);
        assert_eq!(search(&image, &[(STATES[0], 8)], 32, false), None, "unreadable");
    }

    #[test]
    fn in_a_library() {
        let mut image = MemoryImage::default();
        image.put(0x1000, [0x1000, 0x5000_u64].map(u64::to_le_bytes).concat());
        let mut vector = vec![0; 16 * (MODULES as usize + 1)];
        vector[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
        vector[48..56].copy_from_slice(&0x7000_u64.to_le_bytes());
        image.put(0x5000, vector);
        image.put(0x7000, block([0, 0, STATES[0], 0]));
        let found = search(&image, &[(STATES[0], 0x1000)], 32, true);
        assert_eq!(found, Some(Place::Dynamic { module: 3, offset: 16 }));
        assert_eq!(search(&image, &[(STATES[1], 0x1000)], 32, true), None);
    }
}
