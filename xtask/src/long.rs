//! What takes too long for the test command: `cargo xtask long NAME`. Each writes a result file under
//! `docs/results/`, which is committed.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Name and script of each.
const NAMES: [(&str, &str); 4] = [
    ("kernels", "tests/kernels/run.sh"),
    ("collector", "tests/collector/twenty.sh"),
    ("accuracy", "bench/long_accuracy.sh"),
    ("overhead", "bench/long_overhead.sh"),
];

/// Runs one of them.
pub(crate) fn run(root: &Path, name: Option<&str>) -> Result<()> {
    let Some((_, script)) = NAMES.iter().find(|(known, _)| Some(*known) == name) else {
        bail!("name one of: {}", NAMES.map(|(known, _)| known).join(", "));
    };
    let status = Command::new("bash").arg(script).current_dir(root).status();
    if !status.with_context(|| format!("starting {script}"))?.success() {
        bail!("{script} failed; its output says where");
    }
    Ok(())
}
