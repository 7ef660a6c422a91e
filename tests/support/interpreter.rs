//! The interpreters that the suites run on: those of the list that this machine has.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A Python executable.
#[derive(Clone, Debug)]
pub struct Interpreter {
    /// Where it is.
    pub path: PathBuf,
    /// Its minor version: 11 of 3.11.
    pub minor: u32,
    /// Its full version.
    pub version: String,
}

impl std::fmt::Display for Interpreter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.version, self.path.display())
    }
}

/// The versions that pyenv may have.
const PYENV: [&str; 3] = ["3.11.7", "3.12.1", "3.13.0"];
/// Debian's, which is linked statically.
const SYSTEM: &str = "/usr/bin/python3.11";

/// The interpreters there are; names those left out.
///
/// # Panics
/// When there is not one: a suite that ran nothing has shown nothing.
pub fn all() -> Vec<Interpreter> {
    let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_else(|| "/root".into()));
    let mut paths: Vec<PathBuf> =
        PYENV.iter().map(|v| home.join(".pyenv/versions").join(v).join("bin/python3")).collect();
    paths.push(SYSTEM.into());
    let found: Vec<Interpreter> = paths.iter().filter_map(|path| probe(path)).collect();
    assert!(!found.is_empty(), "none of these interpreters is here: {paths:?}");
    found
}

/// Those of [`all`] that are a pyenv tree: `PREFIX/bin/python3`, movable as a whole.
pub fn trees() -> Vec<Interpreter> {
    all().into_iter().filter(|i| i.path != Path::new(SYSTEM)).collect()
}

fn probe(path: &Path) -> Option<Interpreter> {
    let text = match Command::new(path)
        .args(["-c", "import platform; print(platform.python_version())"])
        .output()
    {
        Ok(out) if out.status.success() => String::from_utf8_lossy(&out.stdout).trim().to_owned(),
        Ok(out) => {
            eprintln!("skipped: {} does not run: {}", path.display(), String::from_utf8_lossy(&out.stderr));
            return None;
        }
        Err(error) => {
            eprintln!("skipped: {}: {error}", path.display());
            return None;
        }
    };
    let minor = text.split('.').nth(1).and_then(|part| part.parse().ok()).expect("a version");
    Some(Interpreter { path: path.to_owned(), minor, version: text })
}
