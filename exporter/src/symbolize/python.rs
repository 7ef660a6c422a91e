//! Names and lines of the Python frames of one process (one generation).
//!
//! Code objects come from the kernel side at first sight. What is missing (over budget, too long
//! for a record, evicted here) is read from the process and believed only if its fingerprint is the
//! one of the sample, before and after reading.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use exporter_common::python::PythonProcess;
use exporter_common::sample::PythonFrameRecord;

use crate::aggregate::frame::{Frame, FrameKind};
use crate::interpreter::python::code_object::CodeObject;
use crate::interpreter::python::fingerprint;
use crate::interpreter::python::line_table::Form;
use crate::remote_memory::ProcessMemory;
use crate::sampler::raw::RawCode;

/// Code objects kept for one process. A large program runs some 10,000; beyond this all are
/// forgotten and read again as they are met, which bounds a process that makes code without end.
const MAX_CODE_OBJECTS: usize = 65_536;

/// Frames kept for one process: a few instructions of each code object.
const MAX_FRAMES: usize = 262_144;

/// The name of a frame that cannot be known any more.
pub const UNKNOWN: &str = "[unknown]";
static UNKNOWN_FRAME: LazyLock<Arc<Frame>> = LazyLock::new(|| Frame::bare(FrameKind::Python, UNKNOWN));

/// Identity of a code object inside a generation: address and fingerprint.
type CodeKey = (u64, u64);

/// The names of one process.
#[derive(Debug)]
pub struct PythonSymbols {
    memory: ProcessMemory,
    layout: PythonProcess,
    code: HashMap<CodeKey, Arc<CodeObject>>,
    frames: HashMap<(CodeKey, i32), Arc<Frame>>,
    /// Frames whose code object could not be had.
    pub unknown_frames: u64,
}

impl PythonSymbols {
    /// Nothing known yet.
    pub fn new(pid: u32, layout: PythonProcess) -> Self {
        Self {
            memory: ProcessMemory { pid },
            layout,
            code: HashMap::new(),
            frames: HashMap::new(),
            unknown_frames: 0,
        }
    }

    /// Takes a code record of the kernel side.
    pub fn learn(&mut self, raw: &RawCode) {
        let key = (raw.header.code, raw.header.fingerprint);
        if self.code.contains_key(&key) {
            return;
        }
        match CodeObject::from_record(
            Form::of(self.layout.instruction_kind),
            &raw.header,
            &raw.name,
            &raw.file,
            &raw.line_table,
        ) {
            Some(code) => self.keep(key, Arc::new(code)),
            None => {
                if let Some(code) = self.read(key) {
                    self.keep(key, code);
                }
            }
        }
    }

    /// The named frame of a frame record; `None` for a frame of the interpreter's own, which is hidden.
    pub fn frame(&mut self, record: &PythonFrameRecord) -> Option<Arc<Frame>> {
        let key = (record.code, record.fingerprint);
        if let Some(frame) = self.frames.get(&(key, record.instruction)) {
            return Some(Arc::clone(frame));
        }
        let code = match self.code.get(&key) {
            Some(code) => Some(Arc::clone(code)),
            None => self.read(key).inspect(|code| self.keep(key, Arc::clone(code))),
        };
        let Some(code) = code else {
            self.unknown_frames += 1;
            return Some(Arc::clone(&UNKNOWN_FRAME));
        };
        if is_internal(&code) {
            return None;
        }
        let line = code.line_of(record.instruction);
        let frame = Arc::new(Frame {
            kind: FrameKind::Python,
            name: Arc::clone(&code.name),
            file: Arc::clone(&code.file),
            line: line.unwrap_or(code.first_line),
            start_line: code.first_line,
        });
        if self.frames.len() >= MAX_FRAMES {
            self.frames.clear();
        }
        self.frames.insert((key, record.instruction), Arc::clone(&frame));
        Some(frame)
    }

    fn keep(&mut self, key: CodeKey, code: Arc<CodeObject>) {
        if self.code.len() >= MAX_CODE_OBJECTS {
            self.code.clear();
        }
        self.code.insert(key, code);
    }

    fn read(&self, (address, wanted): CodeKey) -> Option<Arc<CodeObject>> {
        let is_same = || fingerprint::of(&self.memory, &self.layout, address) == Some(wanted);
        if !is_same() {
            return None;
        }
        let code = CodeObject::read_remote(&self.memory, &self.layout, address).ok()?;
        is_same().then(|| Arc::new(code))
    }
}

/// Code that no program wrote: `_Py_InitCleanup` (Python/specialize.c, 3.12 and later) runs around an
/// `__init__` whose call was specialised, and `sys._getframe` skips it too. It has no first line, and its
/// file name is empty (3.12) or its own name (3.13).
fn is_internal(code: &CodeObject) -> bool {
    const NAME: &str = "__init__";
    code.first_line == 0 && &*code.name == NAME && (code.file.is_empty() || &*code.file == NAME)
}
