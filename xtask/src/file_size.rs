//! `cargo xtask file-size`: no source file grows past what one reader holds in mind.
//!
//! Looks at every `*.rs` and `*.py` that git tracks, except [`EXCLUDED`]; fails with the list of those too long.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// Longest allowed source file, in lines, unit tests included: about ten screens.
const MAX_LINES: usize = 500;

/// Paths (prefixes, from the root of the repository) that the limit does not cover, and why.
const EXCLUDED: &[(&str, &str)] = &[
    ("bench/", "workloads and plots: run by hand, read one at a time, not part of the product"),
    ("exporter/src/interpreter/python/generated/", "written by a tool, never edited by hand"),
];

/// A file that is too long.
#[derive(Debug, PartialEq, Eq)]
struct LongFile {
    path: String,
    lines: usize,
}

/// Checks all tracked sources.
pub(crate) fn run() -> anyhow::Result<()> {
    let root = repository_root()?;
    let mut long = Vec::new();
    for path in tracked_sources(&root)? {
        if is_excluded(&path) {
            continue;
        }
        let file = root.join(&path);
        // A file that is tracked but deleted in the working tree has no length.
        if !file.is_file() {
            continue;
        }
        let text = std::fs::read(&file).with_context(|| format!("cannot read {path}"))?;
        long.extend(too_long(&path, &text));
    }
    if long.is_empty() {
        return Ok(());
    }
    long.sort_by(|a, b| b.lines.cmp(&a.lines).then_with(|| a.path.cmp(&b.path)));
    let list: Vec<String> = long.iter().map(|file| format!("  {:5} {}", file.lines, file.path)).collect();
    bail!(
        "{} file(s) longer than {MAX_LINES} lines; split them by idea (unit tests may move to `x/tests.rs`):\n{}",
        long.len(),
        list.join("\n")
    )
}

/// The directory that holds the workspace's Cargo.toml.
fn repository_root() -> anyhow::Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    Ok(root.context("the xtask crate has no parent directory")?.to_path_buf())
}

/// Paths of the tracked Rust and Python files, from the root.
fn tracked_sources(root: &Path) -> anyhow::Result<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--", "*.rs", "*.py"])
        .current_dir(root)
        .output()
        .context("cannot run git; install it and run this inside the repository")?;
    if !output.status.success() {
        bail!("git ls-files failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let names = output.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

/// Whether the limit does not cover `path`.
fn is_excluded(path: &str) -> bool {
    EXCLUDED.iter().any(|(prefix, _reason)| path.starts_with(prefix))
}

/// The file, if it has more lines than allowed.
fn too_long(path: &str, text: &[u8]) -> Option<LongFile> {
    let newlines = text.iter().filter(|byte| **byte == b'\n').count();
    let lines = newlines + usize::from(text.last().is_some_and(|byte| *byte != b'\n'));
    (lines > MAX_LINES).then(|| LongFile { path: path.to_owned(), lines })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_itself_passes_and_one_more_line_does_not() {
        let at_limit = "x\n".repeat(MAX_LINES);
        assert_eq!(too_long("a.rs", at_limit.as_bytes()), None);
        let above = format!("{at_limit}y");
        assert_eq!(
            too_long("a.rs", above.as_bytes()),
            Some(LongFile { path: "a.rs".to_owned(), lines: MAX_LINES + 1 })
        );
    }

    #[test]
    fn benchmarks_are_excluded_and_sources_are_not() {
        assert!(is_excluded("bench/plot.py"));
        assert!(!is_excluded("exporter/src/lib.rs"));
    }
}
