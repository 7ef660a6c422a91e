//! `check-config FILE`: the effective configuration on stdout, or every fault on stderr.
//!
//! Runs the code that `run` runs, so what passes here starts there.

use std::io::Write;
use std::path::Path;

use crate::config;
use crate::exit::Exit;

/// Checks `path`.
#[must_use]
pub fn run(path: &Path) -> Exit {
    write_report(path, &mut std::io::stdout().lock(), &mut std::io::stderr().lock()).unwrap_or(Exit::Failed)
}

/// Writes what was found; an error means that the outcome could not be told.
fn write_report(path: &Path, out: &mut impl Write, err: &mut impl Write) -> std::io::Result<Exit> {
    match config::load(path) {
        Ok(config) => {
            for warning in &config.warnings {
                writeln!(err, "warning: {warning}")?;
            }
            write!(out, "{config}")?;
            out.flush()?;
            Ok(Exit::Success)
        }
        Err(faults) => {
            for fault in &faults {
                writeln!(err, "{fault}")?;
            }
            let plural = if faults.len() == 1 { "" } else { "s" };
            writeln!(err, "{} fault{plural} in {}", faults.len(), path.display())?;
            Ok(Exit::Failed)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_file_is_printed_and_a_missing_one_fails() {
        let good = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/minimal.yaml");
        let (mut out, mut err) = (Vec::new(), Vec::new());
        assert_eq!(write_report(&good, &mut out, &mut err).unwrap(), Exit::Success);
        assert!(String::from_utf8(out).unwrap().starts_with("sampling:"));

        let (mut out, mut err) = (Vec::new(), Vec::new());
        let exit = write_report(Path::new("/nonexistent.yaml"), &mut out, &mut err).unwrap();
        assert_eq!((exit, out.len()), (Exit::Failed, 0));
        assert!(String::from_utf8(err).unwrap().contains("1 fault in /nonexistent.yaml"));
    }
}
