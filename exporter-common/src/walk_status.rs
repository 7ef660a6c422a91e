//! How a Python walk ended: one number, one name, one counter each. Numbers stay once given.

/// The outermost frame was reached.
pub const COMPLETE: u8 = 0;
/// The process is not set up for walking (no interpreter found, or not yet).
pub const NO_PROCESS: u8 = 1;
/// The thread has no thread state: it never ran Python.
pub const NO_THREAD_STATE: u8 = 2;
/// The thread state has no frame: it runs no Python code now.
pub const NO_FRAME: u8 = 3;
/// More records than the walk may take; the root end is missing.
pub const TRUNCATED: u8 = 4;
/// A frame could not be read.
pub const FRAME_FAULT: u8 = 5;
/// A code object could not be read, or is none.
pub const CODE_FAULT: u8 = 6;
/// The thread state could not be read.
pub const STATE_FAULT: u8 = 7;

/// How many there are.
pub const COUNT: usize = 8;

/// Name of a status, as counters and attributes show it.
pub const fn as_str(status: u8) -> &'static str {
    match status {
        COMPLETE => "complete",
        NO_PROCESS => "no_process",
        NO_THREAD_STATE => "no_thread_state",
        NO_FRAME => "no_frame",
        TRUNCATED => "truncated",
        FRAME_FAULT => "frame_fault",
        CODE_FAULT => "code_fault",
        STATE_FAULT => "state_fault",
        _ => "unknown_status",
    }
}
