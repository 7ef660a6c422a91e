//! From a byte offset in the code to a line.
//!
//! The table is untrusted bytes of another process: every table gives an answer in one pass over it.
//! Three forms:
//! - `co_linetable` of 3.11 and later (CPython's `Objects/locations.md`, tag v3.11.7; the same up to
//!   v3.15.0): a run begins with a byte of bit 7 set, kind in bits 3 to 6, length − 1 in code units
//!   (2 bytes) in bits 0 to 2;
//! - `co_linetable` of 3.10 (`Objects/lnotab_notes.txt`, tag v3.10.13): pairs of a range's bytes and
//!   the step of the line before it, −128 for a range without a line;
//! - `co_lnotab` up to 3.9 (the same file, tag v3.9.18): pairs of steps, of the offset and then of
//!   the line.

use exporter_common::python::{INSTRUCTION_BYTES, INSTRUCTION_UNITS};

/// Form of a line table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// 3.11 and later.
    Locations,
    /// 3.10.
    Ranges,
    /// Up to 3.9.
    Steps,
}

impl Form {
    /// That of the layout whose `instruction_kind` this is.
    #[must_use]
    pub fn of(instruction_kind: u16) -> Self {
        match instruction_kind {
            INSTRUCTION_BYTES => Self::Steps,
            INSTRUCTION_UNITS => Self::Ranges,
            _ => Self::Locations,
        }
    }
}

/// Bytes of a code unit.
const CODE_UNIT: u64 = 2;

/// What is known of the place of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// The table names this line.
    Exact(i64),
    /// The instruction is the compiler's own; the nearest line before it, or the first line.
    None(i64),
    /// The table does not reach so far, or is damaged.
    Outside,
}

/// The line of the instruction at `byte_offset`.
///
/// An instruction without a place of its own has the line of the run before it (the function's first
/// line if none is before it), and so has a frame that has not begun (a negative offset).
/// `None` when the offset lies outside the table or the line is no positive number.
#[must_use]
pub fn line_of(form: Form, table: &[u8], first_line: u32, byte_offset: i32) -> Option<u32> {
    let Ok(offset) = u64::try_from(byte_offset) else {
        return (first_line > 0).then_some(first_line);
    };
    match lookup(form, table, first_line, offset) {
        Line::Exact(line) | Line::None(line) => u32::try_from(line).ok().filter(|&line| line > 0),
        Line::Outside => None,
    }
}

/// As [`line_of`], and tells instructions without a line of their own apart.
#[must_use]
pub fn lookup(form: Form, table: &[u8], first_line: u32, byte_offset: u64) -> Line {
    match form {
        Form::Locations => find(&mut table.iter().copied(), first_line, byte_offset).unwrap_or(Line::Outside),
        Form::Ranges => in_ranges(table, first_line, byte_offset),
        Form::Steps => by_steps(table, first_line, byte_offset),
    }
}

fn in_ranges(table: &[u8], first_line: u32, byte_offset: u64) -> Line {
    const NO_LINE: i8 = -128;
    let mut line = i64::from(first_line);
    let mut end = 0_u64;
    for &[length, delta] in table.as_chunks::<2>().0 {
        end += u64::from(length);
        let delta = delta.cast_signed();
        let found = if delta == NO_LINE {
            Line::None(line)
        } else {
            line += i64::from(delta);
            Line::Exact(line)
        };
        if byte_offset < end {
            return found;
        }
    }
    Line::Outside
}

/// The table does not say where the code ends: every offset has a line.
fn by_steps(table: &[u8], first_line: u32, byte_offset: u64) -> Line {
    let mut line = i64::from(first_line);
    let mut start = 0_u64;
    for &[step, delta] in table.as_chunks::<2>().0 {
        start += u64::from(step);
        if start > byte_offset {
            break;
        }
        line += i64::from(delta.cast_signed());
    }
    Line::Exact(line)
}

/// `None` where the table ends before the answer.
fn find(bytes: &mut impl Iterator<Item = u8>, first_line: u32, byte_offset: u64) -> Option<Line> {
    let mut line = i64::from(first_line);
    let mut fallback = line;
    let mut end = 0_u64;
    loop {
        let head = bytes.next()?;
        end += (u64::from(head & 7) + 1) * CODE_UNIT;
        let kind = head >> 3 & 15;
        // A run without a location names no line; every other kind does, after its delta.
        let (delta, operand_bytes) = match kind {
            15 => {
                if byte_offset < end {
                    return Some(Line::None(fallback));
                }
                continue;
            }
            14 => {
                let delta = signed(bytes)?;
                for _ in 0..3 {
                    unsigned(bytes)?;
                }
                (delta, 0)
            }
            13 => (signed(bytes)?, 0),
            10..=12 => (i64::from(kind) - 10, 2),
            _ => (0, 1),
        };
        for _ in 0..operand_bytes {
            bytes.next()?;
        }
        line = line.checked_add(delta)?;
        fallback = line;
        if byte_offset < end {
            return Some(Line::Exact(line));
        }
    }
}

/// A number in groups of 6 bits, lowest first; bit 6 says that more follow.
fn unsigned(bytes: &mut impl Iterator<Item = u8>) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..60).step_by(6) {
        let byte = bytes.next()?;
        value |= u64::from(byte & 63) << shift;
        if byte & 64 == 0 {
            return Some(value);
        }
    }
    None
}

/// A number whose sign is in its lowest bit.
fn signed(bytes: &mut impl Iterator<Item = u8>) -> Option<i64> {
    let value = unsigned(bytes)?;
    let size = i64::try_from(value >> 1).ok()?;
    Some(if value & 1 == 1 { -size } else { size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_run() {
        // 2 bytes at +0, 4 at +1 (kind 11), 2 with none, 2 at −2 (kind 13), 2 at +70 (kind 14).
        let table = [
            0x80,
            0x11,
            0x80 | 11 << 3 | 1,
            1,
            2,
            0x80 | 15 << 3,
            0x80 | 13 << 3,
            5,
            0x80 | 14 << 3,
            64 | 12,
            2,
            1,
            1,
            1,
        ];
        let lines: Vec<_> =
            [0, 2, 5, 6, 8, 10, 11, 12].map(|at| line_of(Form::Locations, &table, 10, at)).into();
        assert_eq!(lines, [Some(10), Some(11), Some(11), Some(11), Some(9), Some(79), Some(79), None]);
        assert_eq!(lookup(Form::Locations, &table, 10, 6), Line::None(11));
        assert_eq!(line_of(Form::Locations, &table, 10, -2), Some(10));
    }

    #[test]
    fn ranges_of_3_10() {
        // 4 bytes at +1, 2 with none, 2 more of the line before at +0, 6 at −3.
        let table = [4, 1, 2, 128, 2, 0, 6, 253];
        let at = |offset| lookup(Form::Ranges, &table, 10, offset);
        assert_eq!([at(0), at(3)], [Line::Exact(11); 2]);
        assert_eq!((at(4), at(6)), (Line::None(11), Line::Exact(11)));
        assert_eq!((at(8), at(13), at(14)), (Line::Exact(8), Line::Exact(8), Line::Outside));
    }

    #[test]
    fn steps_up_to_3_9() {
        // The line steps by 1 at offset 6, by 200 (127 + 73) at 8, by −4 at 300 (255 + 37 more).
        let table = [6, 1, 2, 127, 0, 73, 255, 0, 37, 252];
        let at = |offset| line_of(Form::Steps, &table, 10, offset);
        assert_eq!([at(-1), at(0), at(5), at(6)], [Some(10), Some(10), Some(10), Some(11)]);
        assert_eq!([at(8), at(299), at(300)], [Some(211), Some(211), Some(207)]);
    }

    #[test]
    fn damaged_tables_have_no_line() {
        assert_eq!(line_of(Form::Locations, &[], 1, 0), None);
        assert_eq!(line_of(Form::Locations, &[0x80 | 13 << 3], 1, 0), None);
        assert_eq!(
            line_of(
                Form::Locations,
                &[0x80 | 13 << 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0],
                1,
                0
            ),
            None
        );
        assert_eq!(
            line_of(Form::Locations, &[0x80 | 13 << 3, 0b10_1001], 1, 0),
            None,
            "a line below 1 is no line"
        );
    }

    #[test]
    fn garbage_never_panics() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for length in 0..4_000_usize {
            let table: Vec<u8> = (0..length % 97)
                .map(|_| {
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (state >> 56) as u8
                })
                .collect();
            for offset in [i32::MIN, -1, 0, 2, 40, i32::MAX] {
                for form in [Form::Locations, Form::Ranges, Form::Steps] {
                    let line = line_of(form, &table, state as u32, offset);
                    assert!(line != Some(0));
                }
            }
        }
    }
}
