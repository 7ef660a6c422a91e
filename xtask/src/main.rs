//! The project's own chores: `cargo xtask COMMAND`. One line of the match below a command, one file a command.

use std::process::ExitCode;

mod file_size;

/// What `cargo xtask` prints without a known command.
const USAGE: &str = "usage: cargo xtask COMMAND

commands:
  file-size    fail when a source file is longer than a reader holds in mind (500 lines)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.first().map(String::as_str) {
        // Some("build-ebpf") => build_ebpf::run(),   rebuild the checked-in eBPF object
        // Some("check-ebpf") => build_ebpf::check(), rebuild and compare with the checked-in object
        // Some("long") => long::run(),               the tests that take minutes
        Some("file-size") => file_size::run(),
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
