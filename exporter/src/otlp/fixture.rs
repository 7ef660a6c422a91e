//! Small windows for the tests of this stage and those after it.

use std::sync::Arc;

use crate::aggregate::frame::{Completeness, Frame, FrameKind, GilState};
use crate::aggregate::window::{AggregatedSample, ProcessProfile, ProfileWindow, SampleKey};
use crate::process::identity::ProcessIdentity;

/// Start of [`window`].
pub(crate) const START: u64 = 1_796_081_421_000_000_000;

/// A Python frame of `app.py`.
pub(crate) fn frame(name: &str, line: u32) -> Arc<Frame> {
    Arc::new(Frame {
        kind: FrameKind::Python,
        name: name.into(),
        file: "/srv/app.py".into(),
        line,
        start_line: 1,
    })
}

/// A process.
pub(crate) fn process(pid: u32, python: Option<&str>) -> ProcessIdentity {
    ProcessIdentity {
        pid,
        generation: 1,
        start_unix_ns: START - 1_000_000_000,
        executable_name: "python3".into(),
        executable_path: "/usr/bin/python3".into(),
        service_name: "app".into(),
        container_id: None,
        python_version: python.map(Arc::from),
        attributes: Vec::new(),
    }
}

/// A sample taken `times` after the start.
pub(crate) fn sample(stack: Vec<Arc<Frame>>, tid: u32, times: &[u64]) -> AggregatedSample {
    let key = SampleKey {
        stack: stack.into(),
        tid,
        thread_name: format!("worker-{tid}").into(),
        gil: Some(GilState::Held),
        completeness: Completeness::Complete,
    };
    AggregatedSample { key, timestamps: times.iter().map(|t| START + t).collect() }
}

/// Two processes, one of Python with two samples, one without Python and with a truncated stack.
pub(crate) fn window() -> ProfileWindow {
    let python = vec![
        sample(vec![Frame::bare(FrameKind::Kernel, "read"), frame("leaf", 4), frame("main", 9)], 7, &[1, 2]),
        sample(vec![frame("leaf", 5), frame("main", 9)], 8, &[3]),
    ];
    let mut native = sample(
        vec![Frame::bare(FrameKind::Native, "memcpy"), Frame::bare(FrameKind::Marker, "[truncated]")],
        9,
        &[4],
    );
    native.key.gil = None;
    native.key.completeness = Completeness::Truncated("max_frames");
    ProfileWindow {
        start_unix_ns: START,
        end_unix_ns: START + 5_000_000_000,
        period_ns: 52_631_578,
        processes: vec![
            ProcessProfile { process: Arc::new(process(7, Some("3.12.1"))), samples: python },
            ProcessProfile { process: Arc::new(process(9, None)), samples: vec![native] },
        ],
    }
}
