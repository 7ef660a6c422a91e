//! A named frame and a whole stack, as every later stage sees them.

use std::sync::Arc;

/// What kind of code a frame runs; decides `profile.frame.type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// A Python function.
    Python,
    /// Native code of the process.
    Native,
    /// Kernel code.
    Kernel,
    /// A mark of the exporter itself: `[truncated]`, `[unknown]`.
    Marker,
}

/// One frame with its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Kind of code.
    pub kind: FrameKind,
    /// Qualified name (Python), symbol (native, kernel) or marker.
    pub name: Arc<str>,
    /// File as the code object has it, empty if unknown.
    pub file: Arc<str>,
    /// Line being executed, 1-based, 0 if unknown.
    pub line: u32,
    /// First line of the function, 1-based, 0 if unknown.
    pub start_line: u32,
}

impl Frame {
    /// A frame that is only a name.
    pub fn bare(kind: FrameKind, name: &str) -> Arc<Self> {
        Arc::new(Self { kind, name: name.into(), file: "".into(), line: 0, start_line: 0 })
    }
}

/// How whole a stack is: `stack.completeness` and, where not complete, its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Completeness {
    /// Every frame that was asked for is there.
    Complete,
    /// The root end is missing; the root-most frame is the marker `[truncated]`.
    Truncated(&'static str),
    /// Python frames only.
    PythonOnly(&'static str),
    /// Native frames are missing.
    NativeIncomplete(&'static str),
}

impl Completeness {
    /// Value of `stack.completeness`, and the reason if there is one.
    pub fn as_attributes(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Complete => ("complete", None),
            Self::Truncated(reason) => ("truncated", Some(reason)),
            Self::PythonOnly(reason) => ("python_only", Some(reason)),
            Self::NativeIncomplete(reason) => ("native_incomplete", Some(reason)),
        }
    }
}

/// What the thread had to do with the GIL: `python.gil.state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GilState {
    /// It holds the GIL.
    Held,
    /// It has released the GIL.
    Released,
}

impl GilState {
    /// Value of `python.gil.state`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Released => "released",
        }
    }
}
