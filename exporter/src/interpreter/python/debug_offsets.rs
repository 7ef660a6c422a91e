//! `_Py_DebugOffsets`: the layout that an interpreter of 3.13 and later tells of itself, at the start
//! of `_PyRuntime`. Where it and the table differ, it wins; what it does not tell is then left out.
//!
//! Layout: `Include/internal/pycore_runtime.h` of CPython v3.13.0, `pycore_debug_offsets.h` of v3.14.0
//! and v3.15.0: an 8-byte cookie, then 64-bit words.

use super::{offsets::Layout, version::Version};

/// Most bytes of the structure (3.15).
pub const SIZE: usize = 888;
/// What it begins with.
pub const COOKIE: &[u8; 8] = b"xdebugpy";

/// Why the debug offsets were not used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DebugOffsetsError {
    /// The cookie is missing.
    #[error("the debug offsets do not begin with their cookie")]
    NoCookie,
    /// They are of another version.
    #[error("the debug offsets are of version {0}")]
    OtherVersion(Version),
    /// A free-threaded build, whose objects have another head.
    #[error("the build is free-threaded")]
    FreeThreaded,
    /// A value that cannot be an offset of this structure.
    #[error("the debug offset at byte {position} is {value}, too large")]
    TooLarge {
        /// Where in the structure.
        position: usize,
        /// Its value.
        value: u64,
    },
    /// The offsets are more than the walk reads.
    #[error("the debug offsets reach beyond what the walk reads of an object")]
    TooFar,
}

/// Where the structure of a series tells what; bytes from its start.
struct Positions {
    ts_next: usize,
    ts_interp: usize,
    ts_frame: usize,
    ts_thread_id: usize,
    gil: usize,
    gil_locked: usize,
    gil_holder: usize,
    frame_previous: usize,
    frame_code: usize,
    frame_instruction: usize,
    frame_owner: usize,
    code_filename: usize,
    code_qualname: usize,
    code_line_table: usize,
    code_first_line: usize,
    code_instructions: usize,
    bytes_size: usize,
    bytes_data: usize,
    str_state: usize,
    str_length: usize,
    str_ascii: usize,
}

/// The same in every series.
const INTERPRETERS_HEAD: usize = 40;
const INTERP_NEXT: usize = 64;
const INTERP_THREADS: usize = 72;

const OF_3_13: Positions = Positions {
    ts_next: 168,
    ts_interp: 176,
    ts_frame: 184,
    ts_thread_id: 192,
    gil: 112,
    gil_locked: 136,
    gil_holder: 144,
    frame_previous: 232,
    frame_code: 240,
    frame_instruction: 248,
    frame_owner: 264,
    code_filename: 280,
    code_qualname: 296,
    code_line_table: 304,
    code_first_line: 312,
    code_instructions: 344,
    bytes_size: 520,
    bytes_data: 528,
    str_state: 544,
    str_length: 552,
    str_ascii: 560,
};

const OF_3_14: Positions = Positions {
    ts_next: 192,
    ts_interp: 200,
    ts_frame: 208,
    ts_thread_id: 216,
    gil: 120,
    gil_locked: 144,
    gil_holder: 152,
    frame_previous: 256,
    frame_code: 264,
    frame_instruction: 272,
    frame_owner: 288,
    code_filename: 320,
    code_qualname: 336,
    code_line_table: 344,
    code_first_line: 352,
    code_instructions: 384,
    bytes_size: 600,
    bytes_data: 608,
    str_state: 624,
    str_length: 632,
    str_ascii: 640,
};

const OF_3_15: Positions = Positions {
    ts_thread_id: 240,
    frame_previous: 320,
    frame_code: 328,
    frame_instruction: 336,
    frame_owner: 352,
    code_filename: 384,
    code_qualname: 400,
    code_line_table: 408,
    code_first_line: 416,
    code_instructions: 448,
    bytes_size: 696,
    bytes_data: 704,
    str_state: 720,
    str_length: 728,
    str_ascii: 736,
    ..OF_3_14
};

/// The layout of `table` with all that the debug offsets in `bytes` tell, and how many offsets
/// differed.
///
/// # Errors
///
/// When `bytes` are not the debug offsets of this version, or not believable.
pub fn apply(
    bytes: &[u8; SIZE],
    version: Version,
    table: &Layout,
) -> Result<(Layout, usize), DebugOffsetsError> {
    let word = |position: usize| {
        let bytes = bytes.get(position..).and_then(<[u8]>::first_chunk);
        bytes.map_or(u64::MAX, |bytes| u64::from_le_bytes(*bytes))
    };
    if !bytes.starts_with(COOKIE) {
        return Err(DebugOffsetsError::NoCookie);
    }
    if word(8) != u64::from(version.0) {
        return Err(DebugOffsetsError::OtherVersion(Version(word(8) as u32)));
    }
    if word(16) != 0 {
        return Err(DebugOffsetsError::FreeThreaded);
    }
    let offset = |position: usize| {
        let value = word(position);
        u16::try_from(value).map_err(|_| DebugOffsetsError::TooLarge { position, value })
    };
    let mut layout = *table;
    let process = &mut layout.process;
    let mut differing = 0;
    let at = match version.minor() {
        13 => &OF_3_13,
        14 => &OF_3_14,
        _ => &OF_3_15,
    };
    let fields = [
        (INTERP_NEXT, &mut process.interp_next),
        (INTERP_THREADS, &mut process.interp_threads),
        (at.gil_locked, &mut process.gil_locked),
        (at.gil_holder, &mut process.gil_last_holder),
        (at.ts_next, &mut process.ts_next),
        (at.ts_interp, &mut process.ts_interp),
        (at.ts_frame, &mut process.ts_frame),
        (at.ts_thread_id, &mut process.ts_thread_id),
        (at.frame_previous, &mut process.frame_previous),
        (at.frame_code, &mut process.frame_code),
        (at.frame_instruction, &mut process.frame_instruction),
        (at.frame_owner, &mut process.frame_owner),
        (at.bytes_size, &mut process.bytes_size),
        (at.bytes_data, &mut process.bytes_data),
    ];
    for (position, field) in fields {
        differing += usize::from(replace(field, offset(position)?));
    }
    let head = u64::from(offset(INTERPRETERS_HEAD)?);
    if std::mem::replace(&mut layout.interpreters_head, head) != head {
        differing += 1;
        layout.tsd_key = None;
    }
    let holder = u64::from(offset(at.gil)?);
    differing += usize::from(std::mem::replace(&mut layout.holder, holder) != holder);

    let code_fields = [
        (at.code_filename, &mut process.code_filename),
        (at.code_qualname, &mut process.code_qualname),
        (at.code_line_table, &mut process.code_line_table),
        (at.code_first_line, &mut process.code_first_line),
    ];
    let mut code_differing = 0;
    for (position, field) in code_fields {
        code_differing += usize::from(replace(field, offset(position)?));
    }
    if code_differing > 0 {
        // `co_version` is not told, and may have moved as well.
        process.code_version = 0;
    }
    differing +=
        code_differing + usize::from(replace(&mut process.code_instructions, offset(at.code_instructions)?));

    differing += usize::from(replace(&mut process.str_length, offset(at.str_length)?));
    differing += usize::from(replace(&mut process.str_state, offset(at.str_state)?));
    // The hash lies between length and state; the longer head adds `utf8_length` and `utf8`.
    process.str_hash = process.str_length.saturating_add(8);
    differing += usize::from(replace(&mut process.str_ascii_data, offset(at.str_ascii)?));
    process.str_compact_data = process.str_ascii_data.saturating_add(16);
    Ok((layout.sized().ok_or(DebugOffsetsError::TooFar)?, differing))
}

fn replace(field: &mut u16, value: u16) -> bool {
    std::mem::replace(field, value) != value
}

#[cfg(test)]
mod tests {
    use super::{super::offsets, *};

    const VERSION: Version = Version(0x030d_00f0);

    fn image() -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        bytes[..8].copy_from_slice(COOKIE);
        let words: [(usize, u64); 26] = [
            (8, VERSION.0.into()),
            (40, 632),
            (64, 7264),
            (72, 7344),
            (112, 16),
            (136, 16),
            (144, 8),
            (168, 8),
            (176, 16),
            (184, 72),
            (192, 152),
            (232, 8),
            (240, 0),
            (248, 56),
            (264, 70),
            (280, 112),
            (296, 128),
            (304, 136),
            (312, 68),
            (344, 200),
            (520, 16),
            (528, 32),
            (544, 32),
            (552, 16),
            (560, 40),
            (16, 0),
        ];
        for (position, value) in words {
            bytes[position..position + 8].copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn agrees_with_the_table() {
        let table = offsets::table(VERSION).unwrap();
        assert_eq!(apply(&image(), VERSION, &table), Ok((table, 0)));
    }

    #[test]
    fn what_moved_is_taken_and_what_is_not_told_is_dropped() {
        let table = offsets::table(VERSION).unwrap();
        let mut bytes = image();
        bytes[280] = 120;
        bytes[40] = 0x80;
        let (layout, differing) = apply(&bytes, VERSION, &table).unwrap();
        assert_eq!(
            (layout.process.code_filename, layout.process.code_version, layout.tsd_key, differing),
            (120, 0, None, 2)
        );
    }

    #[test]
    fn refusals() {
        let table = offsets::table(VERSION).unwrap();
        assert_eq!(apply(&[0; SIZE], VERSION, &table), Err(DebugOffsetsError::NoCookie));
        assert_eq!(apply(&image(), Version(1), &table), Err(DebugOffsetsError::OtherVersion(VERSION)));
        let mut bytes = image();
        bytes[16] = 1;
        assert_eq!(apply(&bytes, VERSION, &table), Err(DebugOffsetsError::FreeThreaded));
        let mut bytes = image();
        bytes[66] = 1;
        assert!(matches!(
            apply(&bytes, VERSION, &table),
            Err(DebugOffsetsError::TooLarge { position: 64, .. })
        ));
    }
}
