//! Chores of the project: `cargo xtask COMMAND`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

mod build_ebpf;

const USAGE: &str = "usage: cargo xtask COMMAND
  build-ebpf   build the eBPF object and put it where the exporter embeds it
  check-ebpf   fail unless the checked-in object is what the sources give";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the workspace has no folder")?;
    match std::env::args().nth(1).as_deref() {
        Some("build-ebpf") => build_ebpf::build(root),
        Some("check-ebpf") => build_ebpf::check(root),
        _ => bail!("{USAGE}"),
    }
}
