//! Ring buffer bytes → [`Record`]. The bytes are untrusted: every length is checked, a record that
//! is shorter than it says is refused with a typed error, trailing bytes (the ring aligns to 8) are
//! ignored.

use std::mem::size_of;

use exporter_common::code::CodeHeader;
use exporter_common::limits::MAX_PYTHON_RECORDS;
use exporter_common::process_event::ProcessEvent;
use exporter_common::record_kind;
use exporter_common::sample::{PythonFrameRecord, SampleHeader};

use crate::sampler::raw::{RawCode, RawSample, Record};
use crate::sys::wire;

/// Why a record was refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DecodeError {
    /// Fewer bytes than the record says it has.
    #[error("record of {found} bytes, {needed} needed for {what}")]
    Short {
        /// Part of the record.
        what: &'static str,
        /// Bytes there.
        found: usize,
        /// Bytes needed.
        needed: usize,
    },
    /// A kind that nobody writes.
    #[error("unknown record kind {0}")]
    UnknownKind(u32),
    /// More Python records than a walk may take.
    #[error("{0} Python records, more than a walk may take")]
    TooManyFrames(usize),
}

/// Decodes one record.
///
/// # Errors
/// [`DecodeError`]; the record is then counted and left out.
pub fn decode(bytes: &[u8]) -> Result<Record, DecodeError> {
    let kind = part::<u32>(bytes, 0, "the record kind")?;
    match kind {
        record_kind::SAMPLE => sample(bytes).map(Record::Sample),
        record_kind::CODE => code(bytes).map(Record::Code),
        record_kind::PROCESS => part::<ProcessEvent>(bytes, 0, "a process event").map(Record::Process),
        other => Err(DecodeError::UnknownKind(other)),
    }
}

fn sample(bytes: &[u8]) -> Result<RawSample, DecodeError> {
    let header = part::<SampleHeader>(bytes, 0, "a sample header")?;
    let count = header.python_records as usize;
    if count > MAX_PYTHON_RECORDS {
        return Err(DecodeError::TooManyFrames(count));
    }
    let start = size_of::<SampleHeader>();
    let size = size_of::<PythonFrameRecord>();
    let frames = slice(bytes, start, count * size, "Python frames")?;
    let python = frames.chunks_exact(size).filter_map(wire::read::<PythonFrameRecord>).collect();
    Ok(RawSample { header, python })
}

fn code(bytes: &[u8]) -> Result<RawCode, DecodeError> {
    let header = part::<CodeHeader>(bytes, 0, "a code header")?;
    let name_at = size_of::<CodeHeader>();
    let file_at = name_at + header.name_bytes as usize;
    let table_at = file_at + header.file_bytes as usize;
    Ok(RawCode {
        header,
        name: slice(bytes, name_at, header.name_bytes as usize, "a name")?.to_vec(),
        file: slice(bytes, file_at, header.file_bytes as usize, "a file name")?.to_vec(),
        line_table: slice(bytes, table_at, header.line_table_bytes as usize, "a line table")?.to_vec(),
    })
}

fn slice<'a>(
    bytes: &'a [u8],
    start: usize,
    length: usize,
    what: &'static str,
) -> Result<&'a [u8], DecodeError> {
    let needed = start + length;
    bytes.get(start..needed).ok_or(DecodeError::Short { what, found: bytes.len(), needed })
}

fn part<T: exporter_common::Wire>(bytes: &[u8], start: usize, what: &'static str) -> Result<T, DecodeError> {
    let needed = start + size_of::<T>();
    let found = bytes.len();
    let bytes = bytes.get(start..needed).ok_or(DecodeError::Short { what, found, needed })?;
    wire::read(bytes).ok_or(DecodeError::Short { what, found, needed })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_bytes(frames: usize) -> Vec<u8> {
        let header = SampleHeader {
            record_kind: record_kind::SAMPLE,
            pid: 7,
            python_records: frames as u16,
            ..SampleHeader::default()
        };
        let mut bytes = wire::bytes(&header).to_vec();
        for index in 0..frames {
            let frame = PythonFrameRecord { code: index as u64 + 1, ..PythonFrameRecord::default() };
            bytes.extend_from_slice(wire::bytes(&frame));
        }
        bytes
    }

    #[test]
    fn a_sample_comes_back_with_its_frames_in_order() {
        let Ok(Record::Sample(sample)) = decode(&sample_bytes(3)) else { panic!("no sample") };
        assert_eq!(sample.header.pid, 7);
        assert_eq!(sample.python.iter().map(|f| f.code).collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn trailing_bytes_are_ignored_and_short_records_refused() {
        let mut bytes = sample_bytes(2);
        bytes.extend_from_slice(&[0xff; 8]);
        assert!(decode(&bytes).is_ok());
        let bytes = sample_bytes(2);
        for cut in 0..bytes.len() {
            assert!(matches!(decode(&bytes[..cut]), Err(DecodeError::Short { .. })), "cut at {cut}");
        }
    }

    #[test]
    fn garbage_is_refused() {
        assert_eq!(decode(&[9, 0, 0, 0]).err(), Some(DecodeError::UnknownKind(9)));
        let mut state = 1u64;
        for length in 0..600usize {
            let mut bytes = Vec::new();
            for _ in 0..length {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                bytes.push((state >> 33) as u8);
            }
            if let Some(kind) = bytes.first_mut() {
                *kind = (length % 4) as u8;
            }
            // Whatever it is, it is an answer and no panic.
            drop(decode(&bytes));
        }
    }

    #[test]
    fn a_count_beyond_the_bound_is_refused() {
        let header = SampleHeader {
            record_kind: record_kind::SAMPLE,
            python_records: u16::MAX,
            ..SampleHeader::default()
        };
        assert_eq!(decode(wire::bytes(&header)).err(), Some(DecodeError::TooManyFrames(u16::MAX as usize)));
    }
}
