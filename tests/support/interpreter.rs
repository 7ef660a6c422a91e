//! The interpreters that the suites run on: those of the list that this machine has.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A Python executable.
#[derive(Clone, Debug)]
pub struct Interpreter {
    /// Where it is.
    pub path: PathBuf,
    /// Its minor version: 11 of 3.11.
    pub minor: u32,
    /// Its full version.
    pub version: String,
    /// The root folder that it lives in, with its own libc, where that is not this system's.
    pub root: Option<PathBuf>,
}

impl Interpreter {
    /// The start of its command line.
    pub fn command(&self) -> Vec<OsString> {
        match &self.root {
            Some(root) => vec!["chroot".into(), root.into(), self.path.clone().into()],
            None => vec![self.path.clone().into()],
        }
    }

    /// A path of this system as the interpreter sees it.
    ///
    /// # Panics
    /// When it lies outside the interpreter's root.
    pub fn sees(&self, path: &Path) -> PathBuf {
        match &self.root {
            Some(root) => Path::new("/").join(path.strip_prefix(root).expect("a path in its root")),
            None => path.to_owned(),
        }
    }
}

impl std::fmt::Display for Interpreter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.version, self.path.display())
    }
}

/// The versions that pyenv may have, on which every suite runs.
const PYENV: [&str; 3] = ["3.11.7", "3.12.1", "3.13.0"];
/// Further versions that pyenv may have.
const OLDER: [&str; 5] = ["3.6.15", "3.7.16", "3.8.18", "3.9.18", "3.10.13"];
/// Debian's, which is linked statically.
const SYSTEM: &str = "/usr/bin/python3.11";

/// The interpreters there are; names those left out.
///
/// # Panics
/// When there is not one: a suite that ran nothing has shown nothing.
pub fn all() -> Vec<Interpreter> {
    let mut paths: Vec<PathBuf> = PYENV.iter().map(|version| pyenv(version)).collect();
    paths.push(SYSTEM.into());
    let found: Vec<Interpreter> = paths.iter().filter_map(|path| probe(path, None)).collect();
    assert!(!found.is_empty(), "none of these interpreters is here: {paths:?}");
    found
}

/// Every interpreter there is: those of [`all`], older ones, and those of other Debian suites that
/// `tests/pythons/fetch.sh` brings.
pub fn every() -> Vec<Interpreter> {
    let mut found = all();
    found.extend(OLDER.iter().filter_map(|version| probe(&pyenv(version), None)));
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("pythons/fetch.sh");
    let out = Command::new(script).stderr(Stdio::inherit()).output().expect("bash");
    for line in String::from_utf8_lossy(&out.stdout).lines() {
        let [_, root, path] = line.split(' ').collect::<Vec<_>>().try_into().expect("NAME ROOT PATH");
        found.extend(probe(Path::new(path), Some(Path::new(root))));
    }
    found
}

fn pyenv(version: &str) -> PathBuf {
    let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_else(|| "/root".into()));
    home.join(".pyenv/versions").join(version).join("bin/python3")
}

/// Those of [`all`] that are a pyenv tree: `PREFIX/bin/python3`, movable as a whole.
pub fn trees() -> Vec<Interpreter> {
    all().into_iter().filter(|i| i.path != Path::new(SYSTEM)).collect()
}

fn probe(path: &Path, root: Option<&Path>) -> Option<Interpreter> {
    let mut found = Interpreter {
        path: path.to_owned(),
        minor: 0,
        version: String::new(),
        root: root.map(Path::to_owned),
    };
    let command = found.command();
    let (program, arguments) = command.split_first().expect("a program");
    let script = "import platform; print(platform.python_version())";
    match Command::new(program).args(arguments).args(["-c", script]).output() {
        Ok(out) if out.status.success() => {
            found.version = String::from_utf8_lossy(&out.stdout).trim().to_owned();
        }
        Ok(out) => {
            eprintln!("skipped: {} does not run: {}", path.display(), String::from_utf8_lossy(&out.stderr));
            return None;
        }
        Err(error) => {
            eprintln!("skipped: {}: {error}", path.display());
            return None;
        }
    }
    found.minor = found.version.split('.').nth(1).and_then(|part| part.parse().ok()).expect("a version");
    Some(found)
}
