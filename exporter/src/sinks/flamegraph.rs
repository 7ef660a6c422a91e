//! A flame graph, one SVG file, drawn by inferno from folded stacks.

use std::io;

use inferno::flamegraph::{self, Options};

use crate::sinks::folded::Folded;

/// Why there is no flame graph.
#[derive(Debug, thiserror::Error)]
pub enum FlamegraphError {
    /// Nothing was sampled.
    #[error("no samples to draw: did the process use any CPU in that time?")]
    Empty,
    /// Writing or drawing failed.
    #[error("cannot write the flame graph")]
    Io(#[from] io::Error),
}

/// Draws `folded` under `title`.
pub fn write(folded: &Folded, title: &str, out: impl io::Write) -> Result<(), FlamegraphError> {
    if folded.counts().is_empty() {
        return Err(FlamegraphError::Empty);
    }
    let mut options = Options::default();
    options.title = title.to_owned();
    options.count_name = "samples".to_owned();
    let lines: Vec<String> = folded.lines().collect();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), out)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otlp::fixture;
    use crate::sinks::folded::FoldedOptions;

    #[test]
    fn the_svg_names_the_frames() {
        let mut folded = Folded::new(FoldedOptions::default());
        folded.add(&fixture::window());
        let mut svg = Vec::new();
        write(&folded, "app", &mut svg).unwrap();
        let svg = String::from_utf8(svg).unwrap();
        assert!(svg.contains("leaf (/srv/app.py:4)"), "{svg}");
        assert!(svg.trim_end().ends_with("</svg>"));
    }

    #[test]
    fn nothing_sampled_is_said() {
        let result = write(&Folded::default(), "app", Vec::new());
        assert!(matches!(result, Err(FlamegraphError::Empty)));
    }
}
