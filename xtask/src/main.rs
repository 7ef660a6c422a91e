//! The project's own chores: `cargo xtask COMMAND`. One line of the match below a command, one file a command.

use std::path::Path;
use std::process::ExitCode;

mod build_ebpf;
mod file_size;
mod long;

/// What `cargo xtask` prints without a known command.
const USAGE: &str = "usage: cargo xtask COMMAND

commands:
  build-ebpf   build the eBPF object and put it where the exporter embeds it
  check-ebpf   fail unless the checked-in object is what the sources give
  file-size    fail when a source file is longer than a reader holds in mind (500 lines)
  long NAME    run what takes too long for the test command: kernels, collector, accuracy, overhead";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let result = match arguments.first().map(String::as_str) {
        Some("build-ebpf") => build_ebpf::build(root),
        Some("check-ebpf") => build_ebpf::check(root),
        Some("file-size") => file_size::run(),
        Some("long") => long::run(root, arguments.get(1).map(String::as_str)),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(64);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
