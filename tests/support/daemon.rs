//! `run`, the daemon under test, and what it says of itself when it ends.

use std::fs;
use std::process::{Child, Command, Stdio};

use crate::exporter::{binary, until};
use crate::temp::TempDir;

/// A `run` that goes on until it is told to end.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    dir: TempDir,
}

/// Counts of its last line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Samples that the kernel side took.
    pub taken: u64,
    /// Samples that went into a window.
    pub aggregated: u64,
    /// Samples that the receiver accepted.
    pub accepted: u64,
}

impl Daemon {
    /// Starts `run ARGUMENTS` and waits until it samples.
    pub fn start(arguments: &[String]) -> Self {
        let dir = TempDir::new("run");
        let child = Command::new(binary())
            .arg("run")
            .args(arguments)
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(dir.join("stderr")).expect("a file"))
            .spawn()
            .expect("the exporter starts");
        let mut daemon = Self { child, dir };
        until("the exporter samples", || {
            let ended = daemon.child.try_wait().expect("wait");
            assert!(ended.is_none(), "the exporter ended: {ended:?}\n{}", daemon.said());
            daemon.said().contains(" sampling ")
        });
        daemon
    }

    /// What it has said.
    pub fn said(&self) -> String {
        fs::read_to_string(self.dir.join("stderr")).unwrap_or_default()
    }

    /// Ends it by SIGTERM; its counts, and what it said.
    pub fn finish(mut self) -> (Counts, String) {
        let ended = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(ended.expect("kill").success());
        let status = self.child.wait().expect("wait");
        let said = self.said();
        assert!(status.success(), "run ended with {status}\n{said}");
        assert!(!said.contains("panicked"), "{said}");
        assert!(!said.contains("breaks a rule"), "an own request breaks a rule:\n{said}");
        let last = said.lines().rev().find(|line| line.contains(" stopped ")).expect("its last line");
        let count = |name: &str| {
            let value = last.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
            value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {last}"))
        };
        let counts = Counts {
            taken: count("samples_taken"),
            aggregated: count("samples_aggregated"),
            accepted: count("samples_accepted"),
        };
        (counts, said)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None))
            && let Err(error) = self.child.kill().and_then(|()| self.child.wait().map(|_| ()))
        {
            eprintln!("run {}: {error}", self.child.id());
        }
    }
}
