//! The exporter under test, and programs that it looks at.
//!
//! Every recording is checked for what no case may show: a panic, a log flood, a frame that is no frame.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::folded::{self, Stack};
use crate::interpreter::Interpreter;
use crate::temp::TempDir;
use crate::{program, truth};

/// How long anything may take: far beyond what it does take on a busy machine.
const DEADLINE: Duration = Duration::from_secs(120);
/// Lines on stderr a second beyond which it counts as a flood.
const FLOOD: u64 = 10;
/// Frames that must never be shown.
const NO_FRAMES: [&str; 5] =
    ["", "<shim>", "<interpreter trampoline>", "_PyEval_EvalFrameDefault", "[unknown]"];

/// The binary; built when it is not there.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
        let path = root.join("target/debug/otel-profile-exporter");
        if !path.is_file() {
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let built = Command::new(cargo)
                .args(["build", "-p", "otel-profile-exporter"])
                .env_remove("CARGO_TARGET_DIR")
                .current_dir(&root)
                .status()
                .expect("cargo");
            assert!(built.success() && path.is_file(), "the exporter was not built at {}", path.display());
        }
        path.canonicalize().expect("the exporter's path")
    })
}

/// What a recording gave.
#[derive(Debug)]
pub struct Recording {
    /// The stacks.
    pub stacks: Vec<Stack>,
    /// The folded text.
    pub text: String,
    /// What the exporter and its command said.
    pub stderr: String,
    /// What the command printed.
    pub stdout: String,
    /// Exit code; absent when a signal ended it.
    pub code: Option<i32>,
}

impl Recording {
    /// Stacks of one process.
    pub fn of(&self, pid: u32) -> Vec<&Stack> {
        self.stacks.iter().filter(|stack| stack.pid == pid).collect()
    }

    /// Its end, for a failure's message.
    pub fn tail(&self) -> String {
        let lines: Vec<&str> = self.text.lines().collect();
        let short = |line: &&str| {
            line.chars().rev().take(400).collect::<Vec<_>>().into_iter().rev().collect::<String>()
        };
        let shown: Vec<String> = lines.iter().take(60).map(short).collect();
        format!("stderr:\n{}\n{} stacks, the first ones:\n{}", self.stderr, lines.len(), shown.join("\n"))
    }
}

/// A `record` that runs.
#[derive(Debug)]
pub struct Recorder {
    child: Child,
    dir: TempDir,
    since: Instant,
}

impl Recorder {
    /// Starts `record ARGUMENTS`, folded, with process and thread roots.
    pub fn start(arguments: &[&OsStr]) -> Self {
        Self::start_by(&mut Command::new(binary()), arguments)
    }

    /// The same, with the start of the command line given (`unshare … exporter`).
    pub fn start_by(command: &mut Command, arguments: &[&OsStr]) -> Self {
        let dir = TempDir::new("record");
        let child = command
            .args(["record", "--format", "folded", "--processes", "--threads", "-o"])
            .arg(dir.join("out.folded"))
            .args(arguments)
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(File::create(dir.join("stdout")).expect("a file"))
            .stderr(File::create(dir.join("stderr")).expect("a file"))
            .spawn()
            .expect("the exporter starts");
        Self { child, dir, since: Instant::now() }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it says that it records.
    pub fn recording(&mut self) {
        let path = self.dir.join("stderr");
        until("the exporter says that it records", || {
            let text = fs::read_to_string(&path).unwrap_or_default();
            if text.contains("recording at") {
                return true;
            }
            let ended = self.child.try_wait().expect("wait");
            assert!(ended.is_none(), "the exporter ended before it recorded: {ended:?}\n{text}");
            false
        });
    }

    /// Waits for its end, and reads what it gave.
    pub fn finish(mut self) -> Recording {
        let read = |name: &str| fs::read_to_string(self.dir.join(name)).unwrap_or_default();
        let mut status = None;
        let deadline = Instant::now() + DEADLINE;
        while status.is_none() && Instant::now() < deadline {
            status = self.child.try_wait().expect("wait");
            std::thread::sleep(Duration::from_millis(20));
        }
        let Some(status) = status else {
            self.child.kill().expect("kill");
            panic!("the exporter did not end within {DEADLINE:?}:\n{}", read("stderr"));
        };
        let text = read("out.folded");
        let stderr = read("stderr");
        assert!(!stderr.contains("panicked"), "the exporter panicked:\n{stderr}");
        let lines = stderr.lines().count() as u64;
        let allowed = FLOOD * (self.since.elapsed().as_secs() + 1);
        assert!(lines <= allowed, "{lines} lines on stderr, {allowed} are allowed:\n{stderr}");
        let recording = Recording {
            stacks: folded::parse(&text),
            text,
            stderr,
            stdout: read("stdout"),
            code: status.code(),
        };
        for stack in &recording.stacks {
            for frame in &stack.frames {
                assert!(!NO_FRAMES.contains(&frame.name.as_str()), "{:?} is no frame: {stack:?}", frame.text);
            }
        }
        recording
    }
}

/// Records a command until it ends well.
///
/// # Panics
/// When it does not end with 0.
pub fn record_command(options: &[&str], command: &[&OsStr]) -> Recording {
    let mut arguments: Vec<&OsStr> = options.iter().map(OsStr::new).collect();
    arguments.push(OsStr::new("--"));
    arguments.extend(command);
    let recording = Recorder::start(&arguments).finish();
    assert_eq!(recording.code, Some(0), "record {arguments:?}\n{}", recording.tail());
    recording
}

/// Records a program of `tests/python` that writes its truth; the truth, and the recording.
///
/// # Panics
/// When it does not end with 0, or wrote no truth.
pub fn record_program(
    options: &[&str],
    python: &Interpreter,
    name: &str,
    arguments: &[&str],
) -> (Value, Recording) {
    let dir = match &python.root {
        Some(root) => TempDir::new_in(&root.join("tmp"), "truth"),
        None => TempDir::new("truth"),
    };
    let mut program = program(name);
    if python.root.is_some() {
        // Both files, where the interpreter can read them.
        for file in ["_case.py", name] {
            fs::copy(crate::program(file), dir.join(file)).expect("a copy");
        }
        program = dir.join(name);
    }
    let truth = dir.join("truth.json");
    let mut command = python.command();
    command.push(python.sees(&program).into());
    command.extend(arguments.iter().map(OsString::from));
    command.extend(["--truth".into(), python.sees(&truth).into()]);
    record_truth(options, &command, &truth)
}

/// Records a command that writes its truth to a file; the truth, and the recording.
///
/// # Panics
/// When it does not end with 0, or wrote no truth.
pub fn record_truth(options: &[&str], command: &[OsString], truth: &Path) -> (Value, Recording) {
    let command: Vec<&OsStr> = command.iter().map(OsString::as_os_str).collect();
    let recording = record_command(options, &command);
    (truth::read(truth), recording)
}

/// Polls a condition within the deadline.
///
/// # Panics
/// When it does not come true.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {DEADLINE:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A target program that said `ready PID` and waits for its line; killed when dropped.
#[derive(Debug)]
pub struct Target {
    child: Child,
    stdin: Option<ChildStdin>,
    /// Its process id, as it sees it.
    pub pid: u32,
}

impl Target {
    /// Starts it and waits for `ready PID`.
    pub fn start(command: &mut Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the target starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("the target's first line");
        let pid = line.trim().strip_prefix("ready ").and_then(|pid| pid.parse().ok());
        let pid = pid.unwrap_or_else(|| panic!("{command:?} said {line:?} instead of ready"));
        let stdin = child.stdin.take();
        Self { child, stdin, pid }
    }

    /// Lets it work.
    pub fn go(&mut self) {
        let mut stdin = self.stdin.take().expect("told once");
        stdin.write_all(b"go\n").expect("the target listens");
    }

    /// CPU time of its main thread up to now (`/proc/PID/schedstat`).
    pub fn cpu_time(&self) -> Duration {
        let text = fs::read_to_string(format!("/proc/{}/schedstat", self.pid)).expect("it lives");
        let nanoseconds = text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("nanoseconds");
        Duration::from_nanos(nanoseconds)
    }

    /// Waits until it has done its work and ended well.
    pub fn wait(&mut self) {
        let status = self.child.wait().expect("wait");
        assert!(status.success(), "target {} ended with {status}", self.pid);
    }

    /// Ends it by SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().expect("kill");
        self.child.wait().expect("wait");
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Err(error) = self.child.kill().and_then(|()| self.child.wait().map(|_| ())) {
            eprintln!("target {}: {error}", self.pid);
        }
    }
}
