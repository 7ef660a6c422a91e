//! Code objects: names, file and line table, from a record of the walk or from the target's memory.
//!
//! What is read is untrusted: each length is bounded before anything is allocated.

use std::sync::Arc;

use exporter_common::{code::CodeHeader, python::PythonProcess};

use super::{
    line_table::{self, Form},
    offsets::OBJECT_TYPE,
    text::{self, StrState},
};
use crate::remote_memory::{ReadError, RemoteMemory};

/// Most characters of a name or path: paths end at 4,096 bytes, qualified names of generated code
/// can be longer.
pub const TEXT_LIMIT: u64 = 16 << 10;
/// Most bytes of a line table: the largest in the standard library is below 64 KiB.
pub const LINE_TABLE_LIMIT: u64 = 4 << 20;
/// Most bytes of a code object's head.
const HEAD_LIMIT: usize = 256;

/// What a sample needs of a code object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeObject {
    /// `co_qualname`, up to 3.10 `co_name`.
    pub name: Arc<str>,
    /// `co_filename`, as compiled.
    pub file: Arc<str>,
    /// `co_firstlineno`.
    pub first_line: u32,
    /// `co_linetable`, up to 3.9 `co_lnotab`.
    pub line_table: Box<[u8]>,
    /// Its form.
    pub form: Form,
}

/// Why a code object could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CodeError {
    /// Its memory could not be read: it may be gone.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Something else is at the address.
    #[error("no code object is at {0:#x}: it was freed, and the frame is shown without a name")]
    NotCode(u64),
    /// A name or path is no compact string.
    #[error(
        "a name at {0:#x} is no string: its code object was freed, and the frame is shown without a name"
    )]
    NotText(u64),
    /// A length is beyond any that is believed.
    #[error(
        "a part of a code object has {length} bytes or characters, the limit is {limit}: the frame is shown without a name"
    )]
    TooLong {
        /// What it claims.
        length: u64,
        /// What is allowed.
        limit: u64,
    },
}

impl CodeObject {
    /// Takes a code record. `None` when a part of it was cut: read it from the target instead.
    #[must_use]
    pub fn from_record(
        form: Form,
        header: &CodeHeader,
        name: &[u8],
        file: &[u8],
        line_table: &[u8],
    ) -> Option<Self> {
        let whole =
            |bytes: &[u8], length: u32, kind: u8| bytes.len() as u64 == u64::from(length) * u64::from(kind);
        let complete = whole(name, header.name_length, header.name_kind)
            && whole(file, header.file_length, header.file_kind)
            && whole(line_table, header.line_table_length, 1);
        if !complete {
            return None;
        }
        Some(Self {
            name: text::decode(name, header.name_kind)?.into(),
            file: text::decode(file, header.file_kind)?.into(),
            first_line: header.first_line,
            line_table: line_table.into(),
            form,
        })
    }

    /// Reads the code object at `address` of the target.
    ///
    /// # Errors
    ///
    /// When there is none (any more), or it is not believable.
    pub fn read_remote(
        memory: &impl RemoteMemory,
        layout: &PythonProcess,
        address: u64,
    ) -> Result<Self, CodeError> {
        let mut head = [0; HEAD_LIMIT];
        let not_code = || CodeError::NotCode(address);
        let head = head.get_mut(..usize::from(layout.code_bytes)).ok_or_else(not_code)?;
        memory.read(address, head)?;
        let head = &*head;
        let word = |offset: usize| {
            let bytes = head.get(offset..).and_then(<[u8]>::first_chunk);
            bytes.map(|bytes| u64::from_le_bytes(*bytes)).ok_or_else(not_code)
        };
        if word(OBJECT_TYPE as usize)? != layout.code_type {
            return Err(not_code());
        }
        let first_line = head.get(layout.code_first_line.into()..).and_then(<[u8]>::first_chunk);
        let first_line = first_line.map(|bytes| i32::from_le_bytes(*bytes)).ok_or_else(not_code)?;
        Ok(Self {
            name: read_text(memory, layout, word(layout.code_qualname.into())?)?.into(),
            file: read_text(memory, layout, word(layout.code_filename.into())?)?.into(),
            first_line: u32::try_from(first_line).unwrap_or_default(),
            line_table: read_bytes(memory, layout, word(layout.code_line_table.into())?)?,
            form: Form::of(layout.instruction_kind),
        })
    }

    /// The line of the instruction at `byte_offset`, see [`line_table::line_of`].
    #[must_use]
    pub fn line_of(&self, byte_offset: i32) -> Option<u32> {
        line_table::line_of(self.form, &self.line_table, self.first_line, byte_offset)
    }
}

/// Reads a `str`.
fn read_text(memory: &impl RemoteMemory, layout: &PythonProcess, address: u64) -> Result<String, CodeError> {
    let at = |offset: u16| address.wrapping_add(offset.into());
    let not_text = || CodeError::NotText(address);
    let length = bounded(memory.read_u64(at(layout.str_length))?, TEXT_LIMIT)?;
    let state = StrState::parse(memory.read_u32(at(layout.str_state))?).ok_or_else(not_text)?;
    let data = if state.ascii { layout.str_ascii_data } else { layout.str_compact_data };
    let mut bytes = vec![0; length * usize::from(state.kind)];
    memory.read(at(data), &mut bytes)?;
    text::decode(&bytes, state.kind).ok_or_else(not_text)
}

/// Reads a `bytes`.
fn read_bytes(
    memory: &impl RemoteMemory,
    layout: &PythonProcess,
    address: u64,
) -> Result<Box<[u8]>, CodeError> {
    let at = |offset: u16| address.wrapping_add(offset.into());
    let length = bounded(memory.read_u64(at(layout.bytes_size))?, LINE_TABLE_LIMIT)?;
    let mut bytes = vec![0; length];
    memory.read(at(layout.bytes_data), &mut bytes)?;
    Ok(bytes.into())
}

fn bounded(length: u64, limit: u64) -> Result<usize, CodeError> {
    let too_long = CodeError::TooLong { length, limit };
    if length > limit { Err(too_long) } else { usize::try_from(length).map_err(|_| too_long) }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{offsets, version::Version},
        *,
    };
    use crate::remote_memory::MemoryImage;

    #[test]
    fn records_whole_and_cut() {
        let header = CodeHeader {
            first_line: 3,
            name_length: 2,
            name_kind: 1,
            file_length: 1,
            file_kind: 2,
            line_table_length: 2,
            ..CodeHeader::default()
        };
        let code = CodeObject::from_record(Form::Locations, &header, b"ab", &[0x16, 4], &[0x80, 0]).unwrap();
        assert_eq!((&*code.name, &*code.file, code.line_of(0)), ("ab", "Ж", Some(3)));
        assert_eq!(CodeObject::from_record(Form::Locations, &header, b"a", &[0x16, 4], &[0x80, 0]), None);
        assert_eq!(CodeObject::from_record(Form::Locations, &header, b"ab", &[0x16], &[0x80, 0]), None);
        assert_eq!(CodeObject::from_record(Form::Locations, &header, b"ab", &[0x16, 4], &[0x80]), None);
    }

    /// A code object of 3.12 at 0x1000, its name at 0x2000, file at 0x3000 and table at 0x4000.
    fn image(name_length: u64, name_state: u32) -> (MemoryImage, PythonProcess) {
        let mut layout = offsets::table(Version(0x030c_0100)).unwrap().process;
        layout.code_type = 0x9000;
        let mut code = [0; 192];
        for (offset, value) in [(8, 0x9000_u64), (112, 0x3000), (128, 0x2000), (136, 0x4000)] {
            code[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
        }
        code[68] = 7;
        let mut image = MemoryImage::default();
        image.put(0x1000, code);
        for (address, length, state, data) in
            [(0x2000, name_length, name_state, b"name"), (0x3000, 4, 0b110_0100, b"file")]
        {
            image.put(address + 16, length.to_le_bytes());
            image.put(address + 32, state.to_le_bytes());
            image.put(address + 40, *data);
        }
        image.put(0x4010, 2_u64.to_le_bytes());
        image.put(0x4020, [0x80, 0]);
        (image, layout)
    }

    #[test]
    fn reads_an_image() {
        let (image, layout) = image(4, 0b110_0100);
        let code = CodeObject::read_remote(&image, &layout, 0x1000).unwrap();
        assert_eq!(
            (&*code.name, &*code.file, code.first_line, code.line_of(0)),
            ("name", "file", 7, Some(7))
        );
    }

    #[test]
    fn refuses_what_is_no_code_object() {
        let read = |(image, layout): (MemoryImage, PythonProcess), address| {
            CodeObject::read_remote(&image, &layout, address)
        };
        assert!(matches!(read(image(u64::MAX, 0b110_0100), 0x1000), Err(CodeError::TooLong { .. })));
        assert!(matches!(read(image(4, 0), 0x1000), Err(CodeError::NotText(0x2000))));
        assert!(matches!(read(image(4, 0b110_0100), 0x8000), Err(CodeError::Read(_))));
        let (image, mut layout) = image(4, 0b110_0100);
        layout.code_type = 1;
        assert!(matches!(CodeObject::read_remote(&image, &layout, 0x1000), Err(CodeError::NotCode(0x1000))));
    }
}
