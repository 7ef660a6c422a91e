//! C programs of `tests/c`, compiled for one test.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles `tests/c/NAME.c` to `to`; false, and says why, where there is no compiler.
///
/// # Panics
/// When the compiler refuses it.
pub fn c_program(name: &str, to: &Path, arguments: &[OsString]) -> bool {
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("c").join(name).with_extension("c");
    let mut command = Command::new("cc");
    command.args(["-O1", "-o"]).arg(to).arg(&source).args(arguments);
    match command.output() {
        Ok(out) => {
            let said = String::from_utf8_lossy(&out.stderr);
            assert!(out.status.success(), "{command:?}: {said}");
            true
        }
        Err(error) => {
            eprintln!("skipped: {name}.c is not compiled: cc: {error}");
            false
        }
    }
}

/// Runs a tool that must succeed; false, and says why, where it is not there.
///
/// # Panics
/// When it fails.
pub fn tool(command: &mut Command) -> bool {
    match command.output() {
        Ok(out) => {
            assert!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
            true
        }
        Err(error) => {
            eprintln!("skipped: {command:?}: {error}");
            false
        }
    }
}
