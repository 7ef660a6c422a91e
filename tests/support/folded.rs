//! Folded output as data: `process NAME (pid);thread NAME (tid);frame;… COUNT`.

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// As it was written.
    pub text: String,
    /// Qualified name, symbol or marker.
    pub name: String,
    /// File or library; empty for a marker.
    pub file: String,
    /// Line; absent where none was written.
    pub line: Option<i64>,
}

/// One stack with its count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Process id of the root `process NAME (pid)`; 0 without one.
    pub pid: u32,
    /// Thread id of `thread NAME (tid)`; 0 without one.
    pub tid: u32,
    /// Frames, root first.
    pub frames: Vec<Frame>,
    /// Samples.
    pub count: u64,
}

impl Stack {
    /// The frame that was running.
    pub fn leaf(&self) -> &Frame {
        self.frames.last().expect("a stack is never empty")
    }

    /// Whether a frame has this name.
    pub fn has(&self, name: &str) -> bool {
        self.frames.iter().any(|frame| frame.name == name)
    }
}

/// Reads the lines.
///
/// # Panics
/// On a line that is not folded form.
pub fn parse(text: &str) -> Vec<Stack> {
    text.lines().map(stack).collect()
}

/// Samples in all.
pub fn total<'a>(stacks: impl IntoIterator<Item = &'a Stack>) -> u64 {
    stacks.into_iter().map(|stack| stack.count).sum()
}

fn stack(line: &str) -> Stack {
    let (frames, count) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no count: {line}"));
    let count = count.parse().unwrap_or_else(|_| panic!("no count: {line}"));
    let mut out = Stack { pid: 0, tid: 0, frames: Vec::new(), count };
    for (at, text) in frames.split(';').enumerate() {
        match (at, text) {
            (0, text) if text.starts_with("process ") => out.pid = number(text),
            (0 | 1, text) if text.starts_with("thread ") => out.tid = number(text),
            (_, text) => out.frames.push(frame(text)),
        }
    }
    assert!(!out.frames.is_empty(), "a stack without frames: {line}");
    out
}

fn number(text: &str) -> u32 {
    let inner = text.rsplit_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("no id: {text}"))
}

fn frame(text: &str) -> Frame {
    let split = text.strip_suffix(')').and_then(|rest| rest.rsplit_once(" ("));
    let (name, place) = split.unwrap_or((text, ""));
    let (file, line) = match place.rsplit_once(':') {
        Some((file, digits)) if digits.parse::<i64>().is_ok() => (file, digits.parse().ok()),
        _ => (place, None),
    };
    Frame { text: text.to_owned(), name: name.to_owned(), file: file.to_owned(), line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_frames_and_counts() {
        let stacks = parse(
            "process python3 (7);thread main (8);<module> (/a b/x.py:3);f (/a b/x.py:-1);[native] 12\n",
        );
        let [stack] = stacks.as_slice() else { panic!("{stacks:?}") };
        assert_eq!((stack.pid, stack.tid, stack.count), (7, 8, 12));
        assert_eq!((stack.frames[0].name.as_str(), stack.frames[0].line), ("<module>", Some(3)));
        assert_eq!((stack.frames[1].file.as_str(), stack.frames[1].line), ("/a b/x.py", Some(-1)));
        assert_eq!((stack.leaf().name.as_str(), stack.leaf().file.as_str()), ("[native]", ""));
    }
}
