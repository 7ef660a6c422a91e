//! Joins the parts of a stack. Today there are Python frames only: entry records are left out, and
//! a missing root end is marked.

use std::sync::{Arc, LazyLock};

use exporter_common::sample::{FRAME_ENTRY, PythonFrameRecord};
use exporter_common::walk_status;

use crate::aggregate::frame::{Completeness, Frame, FrameKind};

/// Root-most frame of a stack whose root end is missing.
pub const TRUNCATED: &str = "[truncated]";
/// The one frame of a sample whose thread runs no Python code, while native stacks are not taken.
pub const NATIVE: &str = "[native]";
/// The marker frames, made once.
static TRUNCATED_FRAME: LazyLock<Arc<Frame>> = LazyLock::new(|| Frame::bare(FrameKind::Marker, TRUNCATED));
static NATIVE_FRAME: LazyLock<Arc<Frame>> = LazyLock::new(|| Frame::bare(FrameKind::Native, NATIVE));
/// Why stacks hold Python frames only.
const NATIVE_OFF: &str = "native stacks are off";

/// Joins a walk's records, naming each frame by `name`, which hides a frame by `None`. The stack is leaf first and never empty.
pub fn merge(
    status: u8,
    records: &[PythonFrameRecord],
    mut name: impl FnMut(&PythonFrameRecord) -> Option<Arc<Frame>>,
) -> (Vec<Arc<Frame>>, Completeness) {
    let mut stack: Vec<Arc<Frame>> = frames(records).filter_map(&mut name).collect();
    let completeness = match status {
        walk_status::COMPLETE
        | walk_status::NO_FRAME
        | walk_status::NO_THREAD_STATE
        | walk_status::NO_PROCESS => Completeness::PythonOnly(NATIVE_OFF),
        walk_status::TRUNCATED => Completeness::Truncated("deeper than a walk may go"),
        broken => Completeness::Truncated(walk_status::as_str(broken)),
    };
    if let Completeness::Truncated(_) = completeness {
        stack.push(Arc::clone(&TRUNCATED_FRAME));
    } else if stack.is_empty() {
        stack.push(Arc::clone(&NATIVE_FRAME));
    }
    (stack, completeness)
}

/// The frame records among the records: entry records belong to the merge with native frames.
pub fn frames(records: &[PythonFrameRecord]) -> impl Iterator<Item = &PythonFrameRecord> {
    records.iter().filter(|record| record.flags & FRAME_ENTRY == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(record: &PythonFrameRecord) -> Option<Arc<Frame>> {
        Some(Frame::bare(FrameKind::Python, &record.code.to_string()))
    }

    fn names(status: u8, records: &[PythonFrameRecord]) -> Vec<String> {
        merge(status, records, named).0.iter().map(|frame| frame.name.to_string()).collect()
    }

    #[test]
    fn entry_records_are_no_frames() {
        let frame = |code| PythonFrameRecord { code, ..PythonFrameRecord::default() };
        let entry = PythonFrameRecord { code: 9, flags: FRAME_ENTRY, ..PythonFrameRecord::default() };
        assert_eq!(names(walk_status::COMPLETE, &[frame(1), entry, frame(2), entry]), ["1", "2"]);
    }

    #[test]
    fn a_missing_root_end_is_marked_and_an_empty_walk_too() {
        let frame = PythonFrameRecord { code: 1, ..PythonFrameRecord::default() };
        assert_eq!(names(walk_status::TRUNCATED, &[frame]), ["1", TRUNCATED]);
        assert_eq!(names(walk_status::FRAME_FAULT, &[frame]), ["1", TRUNCATED]);
        assert_eq!(names(walk_status::NO_FRAME, &[]), [NATIVE]);
        assert!(matches!(
            merge(walk_status::CODE_FAULT, &[], named).1,
            Completeness::Truncated("code_fault")
        ));
    }
}
