//! Folded stacks: `frame;frame;… COUNT`, root first, one line for each distinct stack.
//!
//! Enters: windows, any number. Leaves: lines in the order of their text, so that equal profiles give
//! equal files.

use std::collections::BTreeMap;
use std::io;

use crate::aggregate::frame::{Frame, FrameKind};
use crate::aggregate::window::{ProfileWindow, SampleKey};
use crate::process::identity::ProcessIdentity;

/// What tells two frames of one function apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Granularity {
    /// Nothing: a frame shows the first line of its function.
    Function,
    /// The line being executed.
    #[default]
    Line,
}

/// How to fold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoldedOptions {
    /// Functions or lines.
    pub granularity: Granularity,
    /// `thread NAME (tid)` at the root.
    pub threads: bool,
    /// `process NAME (pid)` at the root, above the thread.
    pub processes: bool,
}

/// Folded stacks with their counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folded {
    options: FoldedOptions,
    counts: BTreeMap<String, u64>,
}

impl Folded {
    /// Nothing yet.
    pub fn new(options: FoldedOptions) -> Self {
        Self { options, counts: BTreeMap::new() }
    }

    /// Adds every sample of a window.
    pub fn add(&mut self, window: &ProfileWindow) {
        for process in &window.processes {
            for sample in &process.samples {
                let line = self.line(&process.process, &sample.key);
                *self.counts.entry(line).or_default() += sample.timestamps.len() as u64;
            }
        }
    }

    /// Adds `count` samples of a stack, leaf first, that is of no window.
    pub fn add_stack(&mut self, stack: &[Frame], count: u64) {
        let granularity = self.options.granularity;
        let frames: Vec<_> = stack.iter().rev().map(|frame| clean(&frame_text(frame, granularity))).collect();
        *self.counts.entry(frames.join(";")).or_default() += count;
    }

    /// Stacks and counts, in the order of their text.
    pub fn counts(&self) -> &BTreeMap<String, u64> {
        &self.counts
    }

    /// The lines, without line ends.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.counts.iter().map(|(stack, count)| format!("{stack} {count}"))
    }

    /// Writes the lines.
    pub fn write(&self, mut out: impl io::Write) -> io::Result<()> {
        self.lines().try_for_each(|line| writeln!(out, "{line}"))
    }

    fn line(&self, process: &ProcessIdentity, key: &SampleKey) -> String {
        let mut frames = Vec::with_capacity(key.stack.len() + 2);
        if self.options.processes {
            frames.push(clean(&format!("process {} ({})", process.executable_name, process.pid)));
        }
        if self.options.threads {
            frames.push(clean(&format!("thread {} ({})", key.thread_name, key.tid)));
        }
        let granularity = self.options.granularity;
        frames.extend(key.stack.iter().rev().map(|frame| clean(&frame_text(frame, granularity))));
        frames.join(";")
    }
}

/// A frame as people read it: `qualname (file:line)`, `symbol (library)`, `symbol (kernel)`, `[truncated]`.
pub fn frame_text(frame: &Frame, granularity: Granularity) -> String {
    let Frame { kind, name, file, line, start_line } = frame;
    let name = if name.is_empty() { "[unknown]" } else { name };
    let line = match granularity {
        Granularity::Function => *start_line,
        Granularity::Line => *line,
    };
    match kind {
        FrameKind::Python if !file.is_empty() && line != 0 => format!("{name} ({file}:{line})"),
        FrameKind::Python | FrameKind::Native if !file.is_empty() => format!("{name} ({file})"),
        FrameKind::Kernel => format!("{name} (kernel)"),
        FrameKind::Python | FrameKind::Native | FrameKind::Marker => name.to_owned(),
    }
}

/// `;` parts frames and a line end parts stacks, so neither may be in a name.
fn clean(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            ';' => ':',
            '\n' | '\r' => ' ',
            other => other,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otlp::fixture;

    fn fold(options: FoldedOptions) -> Vec<String> {
        let mut folded = Folded::new(options);
        folded.add(&fixture::window());
        folded.lines().collect()
    }

    #[test]
    fn lines_are_root_first_and_counted() {
        assert_eq!(
            fold(FoldedOptions::default()),
            [
                "[truncated];memcpy 1",
                "main (/srv/app.py:9);leaf (/srv/app.py:4);read (kernel) 2",
                "main (/srv/app.py:9);leaf (/srv/app.py:5) 1",
            ]
        );
    }

    #[test]
    fn functions_show_their_first_line() {
        let lines = fold(FoldedOptions { granularity: Granularity::Function, ..Default::default() });
        assert!(lines.contains(&"main (/srv/app.py:1);leaf (/srv/app.py:1) 1".to_owned()), "{lines:?}");
    }

    #[test]
    fn frames_of_one_function_merge() {
        let mut window = fixture::window();
        window.processes[0].samples[0] =
            fixture::sample(vec![fixture::frame("leaf", 6), fixture::frame("main", 10)], 8, &[1, 2]);
        let mut folded =
            Folded::new(FoldedOptions { granularity: Granularity::Function, ..Default::default() });
        folded.add(&window);
        assert_eq!(folded.counts()["main (/srv/app.py:1);leaf (/srv/app.py:1)"], 3);
    }

    #[test]
    fn process_and_thread_are_roots() {
        let lines = fold(FoldedOptions { threads: true, processes: true, ..Default::default() });
        assert_eq!(
            lines[0],
            "process python3 (7);thread worker-7 (7);main (/srv/app.py:9);leaf (/srv/app.py:4);read (kernel) 2"
        );
    }

    #[test]
    fn separators_in_names_are_replaced() {
        let mut window = fixture::window();
        window.processes[0].samples = vec![fixture::sample(vec![fixture::frame("a;b\nc", 2)], 1, &[1])];
        let mut folded = Folded::new(FoldedOptions::default());
        folded.add(&window);
        assert!(folded.counts().contains_key("a:b c (/srv/app.py:2)"), "{folded:?}");
    }
}
