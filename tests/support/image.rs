//! An image of the memory that a walk reads: captured from a live interpreter, replayed without one, with
//! the interpreter's own account of the stack beside it.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use exporter_common::code::CodeHeader;
use exporter_common::limits::{CODE_SCRATCH_BYTES, MAX_NEW_CODE_PER_SAMPLE, MAX_PYTHON_RECORDS};
use exporter_common::python::PythonProcess;
use exporter_common::sample::PythonFrameRecord;
use exporter_ebpf::code::CodeSink;
use exporter_ebpf::memory::Memory;
use exporter_ebpf::thread_state;
use exporter_ebpf::walk::Walk;
use otel_profile_exporter::sampler::decode::decode;
use otel_profile_exporter::sampler::raw::Record;
use otel_profile_exporter::symbolize::python::PythonSymbols;
use otel_profile_exporter::sys::wire;
use serde_json::{Value, json};

use crate::truth::{array, int, text};

/// Memory is kept in pieces of this many bytes.
const PIECE: usize = 64;
/// No process has this id, so nothing is read from a live one.
const NOBODY: u32 = u32::MAX;

/// What the walk reads of one thread, and its truth.
#[derive(Clone, Debug)]
pub struct Image {
    /// Version of the interpreter.
    pub version: String,
    /// What the exporter found out of the process.
    pub process: PythonProcess,
    /// Thread pointer of the thread.
    pub thread_pointer: u64,
    /// Pieces of its memory, by address.
    pub pieces: BTreeMap<u64, [u8; PIECE]>,
    /// Its frames, root first, by the interpreter: qualified name, file, line, first line.
    pub chain: Vec<(String, String, i64, i64)>,
}

/// How a replay ended.
#[derive(Debug)]
pub struct Walked {
    /// [`exporter_common::walk_status`].
    pub status: u32,
    /// Records made.
    pub records: u32,
    /// Frames, root first: qualified name, file, line, first line.
    pub chain: Vec<(String, String, i64, i64)>,
}

impl Image {
    /// Reads one.
    pub fn read(path: &Path) -> Self {
        let value = crate::truth::read(path);
        let bytes = unhex(&text(&value["process"]));
        let pieces = value["memory"].as_object().expect("memory").iter().map(|(address, piece)| {
            let address = u64::from_str_radix(address, 16).expect("an address");
            (address, unhex(&text(piece)).try_into().expect("a piece"))
        });
        Self {
            version: text(&value["version"]),
            process: wire::read(&bytes).expect("a process of today's layout: capture the images again"),
            thread_pointer: u64::from_str_radix(&text(&value["thread_pointer"]), 16).expect("an address"),
            pieces: pieces.collect(),
            chain: chain(&value["chain"]),
        }
    }

    /// Writes it.
    pub fn write(&self, path: &Path) {
        let memory: serde_json::Map<String, Value> =
            self.pieces.iter().map(|(at, piece)| (format!("{at:x}"), hex(piece).into())).collect();
        let value = json!({
            "version": self.version,
            "process": hex(wire::bytes(&self.process)),
            "thread_pointer": format!("{:x}", self.thread_pointer),
            "chain": self.chain.iter().map(|(n, f, l, s)| json!([n, f, l, s])).collect::<Vec<_>>(),
            "memory": memory,
        });
        let text = serde_json::to_string_pretty(&value).expect("JSON");
        std::fs::write(path, text + "\n").unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    /// Walks it as the kernel side does.
    pub fn walk(&self) -> Walked {
        walk(&self.process, self.thread_pointer, &Pieces(&self.pieces))
    }

    /// Eight bytes at an address of the image become another word; false when it has no such address.
    pub fn patch(&mut self, address: u64, word: u64) -> bool {
        let base = address & !(PIECE as u64 - 1);
        let at = (address - base) as usize;
        match self.pieces.get_mut(&base).and_then(|piece| piece.get_mut(at..at + 8)) {
            Some(bytes) => {
                bytes.copy_from_slice(&word.to_ne_bytes());
                true
            }
            None => false,
        }
    }
}

/// The frames of a truth.
pub fn chain(value: &Value) -> Vec<(String, String, i64, i64)> {
    array(value).iter().map(|f| (text(&f[0]), text(&f[1]), int(&f[2]), int(&f[3]))).collect()
}

/// Walks a thread in any memory, and names its frames from the code records alone.
pub fn walk(process: &PythonProcess, thread_pointer: u64, memory: &impl Memory) -> Walked {
    let mut walk = Box::new(Walk::new(*process));
    walk.pid = NOBODY;
    walk.thread_pointer = thread_pointer;
    walk.budget = MAX_NEW_CODE_PER_SAMPLE;
    walk.thread_state = thread_state::find(process, thread_pointer, memory);
    let mut sink = Sink::default();
    let empty = PythonFrameRecord { code: 0, fingerprint: 0, instruction: 0, owner: 0, flags: 0, pad: 0 };
    let mut records = vec![empty; MAX_PYTHON_RECORDS];
    if walk.thread_state != 0 && walk.begin(memory) {
        for _ in 0..MAX_PYTHON_RECORDS {
            // SAFETY: the vector has MAX_PYTHON_RECORDS records.
            if !unsafe { walk.step(records.as_mut_ptr(), memory, &mut sink) } {
                break;
            }
        }
    }
    let mut symbols = PythonSymbols::new(NOBODY, *process);
    for record in &sink.sent {
        if let Ok(Record::Code(code)) = decode(record) {
            symbols.learn(&code);
        }
    }
    let made = &records[..walk.records as usize];
    let chain = made.iter().rev().filter(|r| r.flags & exporter_common::sample::FRAME_ENTRY == 0);
    let chain = chain.filter_map(|record| symbols.frame(record)).map(|frame| {
        (frame.name.to_string(), frame.file.to_string(), frame.line.into(), frame.start_line.into())
    });
    Walked { status: walk.status, records: walk.records, chain: chain.collect() }
}

/// A memory that notes what is read of another one.
pub struct Recording<R> {
    read: R,
    pieces: RefCell<BTreeMap<u64, [u8; PIECE]>>,
}

impl<R: Fn(u64, &mut [u8]) -> bool> Recording<R> {
    /// Nothing read yet.
    pub fn new(read: R) -> Self {
        Self { read, pieces: RefCell::default() }
    }

    /// What was read.
    pub fn pieces(self) -> BTreeMap<u64, [u8; PIECE]> {
        self.pieces.into_inner()
    }
}

impl<R: Fn(u64, &mut [u8]) -> bool> Memory for Recording<R> {
    fn read(&self, to: &mut [u8], address: u64) -> bool {
        let first = address & !(PIECE as u64 - 1);
        let mut pieces = self.pieces.borrow_mut();
        for at in (first..address.saturating_add(to.len() as u64)).step_by(PIECE) {
            let mut piece = [0; PIECE];
            if !pieces.contains_key(&at) && (self.read)(at, &mut piece) {
                pieces.insert(at, piece);
            }
        }
        Pieces(&pieces).read(to, address)
    }
}

/// The memory of an image.
struct Pieces<'a>(&'a BTreeMap<u64, [u8; PIECE]>);

impl Memory for Pieces<'_> {
    fn read(&self, to: &mut [u8], address: u64) -> bool {
        for (index, byte) in to.iter_mut().enumerate() {
            let at = address.wrapping_add(index as u64);
            let base = at & !(PIECE as u64 - 1);
            match self.0.get(&base) {
                Some(piece) => *byte = piece[(at - base) as usize],
                None => return false,
            }
        }
        true
    }
}

/// Keeps the code records that a walk sends.
struct Sink {
    known: HashSet<u64>,
    // Words, so that the header at its start is aligned.
    scratch: Vec<u64>,
    sent: Vec<Vec<u8>>,
}

impl Default for Sink {
    fn default() -> Self {
        Self { known: HashSet::new(), scratch: vec![0; CODE_SCRATCH_BYTES / 8], sent: Vec::new() }
    }
}

impl CodeSink for Sink {
    fn is_known(&self, tag: u64) -> bool {
        self.known.contains(&tag)
    }

    fn remember(&mut self, tag: u64) {
        self.known.insert(tag);
    }

    fn scratch(&mut self) -> *mut u8 {
        self.scratch.as_mut_ptr().cast()
    }

    fn send(&mut self, length: usize) -> bool {
        assert!(
            (size_of::<CodeHeader>()..=CODE_SCRATCH_BYTES).contains(&length),
            "a record of {length} bytes"
        );
        let words = &self.scratch[..length.div_ceil(8)];
        self.sent.push(words.iter().flat_map(|word| word.to_ne_bytes()).take(length).collect());
        true
    }

    fn over_budget(&mut self) {}
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(str::from_utf8(pair).expect("hex"), 16).expect("hex")).collect()
}
