//! What comes out of the ring buffers, checked and owned.

use exporter_common::code::CodeHeader;
use exporter_common::process_event::ProcessEvent;
use exporter_common::sample::{PythonFrameRecord, SampleHeader};

/// One sample as the kernel side took it.
#[derive(Clone, Debug)]
pub struct RawSample {
    /// The fixed part.
    pub header: SampleHeader,
    /// Python frames and entry records, leaf first.
    pub python: Vec<PythonFrameRecord>,
}

/// A code object named at first sight.
#[derive(Clone, Debug)]
pub struct RawCode {
    /// The fixed part.
    pub header: CodeHeader,
    /// Characters of the qualified name, as they lie in the target.
    pub name: Vec<u8>,
    /// Characters of the file name.
    pub file: Vec<u8>,
    /// Line table.
    pub line_table: Vec<u8>,
}

/// Any record.
#[derive(Clone, Debug)]
pub enum Record {
    /// A sample.
    Sample(RawSample),
    /// A code object.
    Code(RawCode),
    /// A process began, changed or ended.
    Process(ProcessEvent),
}
