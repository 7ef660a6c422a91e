//! Every build, and every file that is not where it was: the chains of calls are those that the interpreter
//! shows, whatever its file is called, whether it still exists, and whether a symbol names anything in it.
#![allow(
    clippy::panic,
    clippy::expect_used,
    reason = "a test stops at the first surprise and says what it saw"
)]

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use exporter_tests::calls::every_call_took_place;
use exporter_tests::compile::{c_program, tool};
use exporter_tests::exporter::{Recorder, Target, binary, record_truth};
use exporter_tests::interpreter::{self, Interpreter};
use exporter_tests::temp::TempDir;
use exporter_tests::{is_root, program, truth};

/// CPU seconds of each place of calls.
const SECONDS: &str = "0.1";
const RATE: f64 = 499.0;
/// Debian's static library for embedding, its headers, and what it needs.
const STATIC_LIBRARY: &str = "/usr/lib/python3.11/config-3.11-x86_64-linux-gnu/libpython3.11.a";
const PIC_LIBRARY: &str = "/usr/lib/python3.11/config-3.11-x86_64-linux-gnu/libpython3.11-pic.a";
const STATIC_HEADERS: &str = "-I/usr/include/python3.11";
const STATIC_NEEDS: [&str; 5] = ["-lexpat", "-lz", "-lm", "-ldl", "-lpthread"];

/// The same where the interpreter is searched for: an exporter that is not optimised takes 0.1 s for it.
const SEARCHED_SECONDS: &str = "0.3";

/// Runs `calls.py` by a command and compares its chains.
fn compare(python: &Interpreter, command: Vec<OsString>, dir: &TempDir) {
    compare_for(SECONDS, python, command, dir);
}

fn compare_for(seconds: &str, python: &Interpreter, mut command: Vec<OsString>, dir: &TempDir) {
    let truth = dir.join("truth.json");
    command.extend([program("calls.py").into(), seconds.into(), "--truth".into(), truth.clone().into()]);
    let (truth, recording) = record_truth(&["--rate", "499"], &command, &truth);
    every_call_took_place(python, &truth, &recording, RATE);
}

fn named(python: &Interpreter, what: &str) -> Interpreter {
    Interpreter { version: format!("{}, {what}", python.version), ..python.clone() }
}

fn words(parts: &[&dyn AsRef<OsStr>]) -> Vec<OsString> {
    parts.iter().map(|part| part.as_ref().to_owned()).collect()
}

fn joined(key: &str, value: &Path) -> OsString {
    let mut text = OsString::from(key);
    text.push(value);
    text
}

/// Copies of a shared interpreter and its library in which no file, and no name of a needed library, has
/// `python` in it.
fn renamed(python: &Interpreter, dir: &TempDir) -> Option<Vec<OsString>> {
    let prefix = python.path.parent()?.parent()?;
    let libraries = fs::read_dir(prefix.join("lib")).ok()?.flatten();
    let library = libraries
        .map(|entry| entry.file_name().into_string().expect("a name"))
        .find(|name| name.starts_with("libpython3.") && name.ends_with(".so.1.0"))?;
    let other = library.replace("python", "engine");
    let patch = |from: &Path, to: &Path| {
        let mut bytes = fs::read(from).expect("a file");
        let (old, new) = (format!("{library}\0").into_bytes(), format!("{other}\0").into_bytes());
        let at = bytes.windows(old.len()).position(|part| part == old).expect("the library's name");
        bytes[at..at + new.len()].copy_from_slice(&new);
        fs::write(to, bytes).expect("a copy");
    };
    patch(&python.path.canonicalize().ok()?, &dir.join("worker"));
    patch(&prefix.join("lib").join(&library), &dir.join(&other));
    tool(Command::new("chmod").arg("755").arg(dir.join("worker"))).then_some(())?;
    let environment = [joined("LD_LIBRARY_PATH=", dir.path()), joined("PYTHONHOME=", prefix)];
    let mut command = words(&[&"env"]);
    command.extend(environment);
    command.push(dir.join("worker").into());
    Some(command)
}

#[test]
fn no_name_has_python_in_it() {
    if !is_root("no_name_has_python_in_it") {
        return;
    }
    for python in interpreter::every().iter().filter(|python| python.root.is_none()) {
        let dir = TempDir::new("engine");
        match renamed(python, &dir) {
            Some(command) => compare(&named(python, "renamed"), command, &dir),
            // Static: the executable alone.
            None => {
                fs::copy(&python.path, dir.join("worker")).expect("a copy");
                compare(&named(python, "renamed"), words(&[&dir.join("worker")]), &dir);
            }
        }
    }
}

/// Takes the section headers out of an ELF file: `e_shoff`, `e_shnum` and `e_shstrndx` of its header.
fn without_section_headers(path: &Path) {
    let mut bytes = fs::read(path).expect("a file");
    bytes[40..48].fill(0);
    bytes[60..64].fill(0);
    fs::write(path, bytes).expect("written");
}

/// No `.symtab` in executable and library; then no section headers either.
#[test]
fn stripped() {
    if !is_root("stripped") {
        return;
    }
    for python in interpreter::every().iter().filter(|python| python.root.is_none()) {
        let dir = TempDir::new("engine");
        let command = renamed(python, &dir).unwrap_or_else(|| {
            fs::copy(&python.path, dir.join("worker")).expect("a copy");
            words(&[&dir.join("worker")])
        });
        let files: Vec<PathBuf> =
            fs::read_dir(dir.path()).expect("its files").flatten().map(|entry| entry.path()).collect();
        let run = |what: &str| {
            // Its truth lies beside, so that the folder holds what runs and nothing else.
            let truth = TempDir::new("truth");
            compare(&named(python, what), command.clone(), &truth);
        };
        if !tool(Command::new("strip").args(&files)) {
            return;
        }
        run("stripped");
        files.iter().for_each(|file| without_section_headers(file));
        run("without section headers");
    }
}

#[test]
fn files_deleted_or_replaced_while_it_runs() {
    if !is_root("files_deleted_or_replaced_while_it_runs") {
        return;
    }
    for python in interpreter::all() {
        for is_replaced in [false, true] {
            for is_seen_before in [false, true] {
                let what = format!(
                    "files {} {}",
                    if is_replaced { "replaced" } else { "deleted" },
                    if is_seen_before { "after a look" } else { "before any look" }
                );
                gone(&named(&python, &what), is_replaced, is_seen_before);
            }
        }
    }
}

/// The target waits at its gate while its files go; `is_seen_before` lets the exporter begin before that.
fn gone(python: &Interpreter, is_replaced: bool, is_seen_before: bool) {
    let dir = TempDir::new("gone");
    let mut command = renamed(python, &dir).unwrap_or_else(|| {
        fs::copy(&python.path, dir.join("worker")).expect("a copy");
        words(&[&dir.join("worker")])
    });
    let truth_file = dir.join("truth.json");
    command.extend([program("calls.py").into(), SECONDS.into(), "--gate".into(), "--truth".into()]);
    command.push(truth_file.clone().into());
    let mut target = Target::start(Command::new(&command[0]).args(&command[1..]));
    let pid = target.pid.to_string();
    let start = || {
        let arguments = ["--pid", &pid, "--rate", "499", "--duration", "100s"];
        let mut recorder = Recorder::start(&arguments.map(OsStr::new));
        recorder.recording();
        recorder
    };
    let mut recorder = is_seen_before.then(&start);
    for entry in fs::read_dir(dir.path()).expect("the files").flatten() {
        fs::remove_file(entry.path()).expect("deleted");
        if is_replaced {
            // Another program of the same name: what it says of itself would be wrong.
            fs::copy("/bin/true", entry.path()).expect("replaced");
        }
    }
    let recorder = recorder.take().unwrap_or_else(start);
    target.go();
    target.wait();
    let interrupt = Command::new("kill").args(["-INT", &recorder.pid().to_string()]).status();
    assert!(interrupt.expect("kill").success(), "{python}: the exporter has ended");
    let recording = recorder.finish();
    let truth = truth::read(&truth_file);
    every_call_took_place(python, &truth, &recording, RATE);
}

#[test]
fn files_on_a_mount_of_its_own() {
    if !is_root("files_on_a_mount_of_its_own") {
        return;
    }
    for python in interpreter::every().iter().filter(|python| python.root.is_none()) {
        let dir = TempDir::new("mount");
        let place = dir.join("private");
        fs::create_dir(&place).expect("a folder");
        let source = TempDir::new("engine");
        let mut command = words(&[&"unshare", &"-m", &"sh", &"-c"]);
        let script =
            "mount -t tmpfs tmpfs \"$1\" && cp \"$2\"/* \"$1\" && place=$1 && shift 2 && exec \"$@\"";
        command.push(script.into());
        command.extend(words(&[&"sh", &place, &source.path()]));
        match renamed(python, &source) {
            Some(run) => {
                let moved = |part: &OsString| {
                    let text = part.to_str().expect("a path").to_owned();
                    OsString::from(text.replace(&*source.path().to_string_lossy(), &place.to_string_lossy()))
                };
                command.extend(run.iter().map(moved));
            }
            None => {
                fs::copy(&python.path, source.join("worker")).expect("a copy");
                command.push(place.join("worker").into());
            }
        }
        compare(&named(python, "on a private tmpfs"), command, &dir);
    }
}

/// `embed.c` with a static 3.11: the plain one, without symbols, and without the section that holds the
/// runtime; each at a fixed and at any address.
#[test]
fn embedded_in_a_program_that_exports_nothing() {
    if !is_root("embedded_in_a_program_that_exports_nothing") {
        return;
    }
    let python = interpreter::all().into_iter().find(|it| it.version.starts_with("3.11.2"));
    let Some(python) = python.filter(|_| Path::new(STATIC_LIBRARY).exists()) else {
        eprintln!("skipped: there is no static library of Python 3.11 (libpython3.11-dev)");
        return;
    };
    for (library, flags) in [(STATIC_LIBRARY, ["-no-pie", "-fno-pie"]), (PIC_LIBRARY, ["-pie", "-fPIE"])] {
        let dir = TempDir::new("embed");
        let mut arguments = words(&[&flags[0], &flags[1], &STATIC_HEADERS, &library]);
        arguments.extend(STATIC_NEEDS.map(OsString::from));
        if !c_program("embed", &dir.join("program"), &arguments) {
            return;
        }
        let run = |file: &str, what: &str, says: &str| {
            let what = format!("{what} ({})", flags[0]);
            compare_for(SEARCHED_SECONDS, &named(&python, &what), words(&[&dir.join(file)]), &dir);
            doctor_says(&dir, words(&[&dir.join(file)]), says);
        };
        run(
            "program",
            "embedded",
            "CPython 3.11.2 (static, embedded, nothing exported), layout by the table of",
        );
        let stripped = dir.join("stripped");
        if !tool(Command::new("strip").arg("-o").arg(&stripped).arg(dir.join("program"))) {
            return;
        }
        let found = "CPython 3.11.2 (static, embedded, stripped, nothing exported), layout by the table that";
        run("stripped", "embedded and stripped", found);
        let rename = ["--rename-section", ".PyRuntime=.other"];
        if tool(Command::new("objcopy").args(rename).arg(&stripped).arg(dir.join("blind"))) {
            run("blind", "embedded, stripped, without the section of the runtime", found);
            without_section_headers(&dir.join("blind"));
            run("blind", "embedded, without section headers", found);
        }
    }
}

#[test]
fn embedded_by_a_shared_library() {
    if !is_root("embedded_by_a_shared_library") {
        return;
    }
    let trees =
        interpreter::every().into_iter().filter(|it| it.path.to_string_lossy().contains("/versions/"));
    for python in trees {
        let dir = TempDir::new("embed");
        let prefix = python.path.parent().and_then(Path::parent).expect("a prefix");
        // The libraries of 3.6 and 3.7 end with m.
        let flag = if python.minor < 8 { "m" } else { "" };
        let name = format!("python3.{}{flag}", python.minor);
        let lib = prefix.join("lib");
        let arguments = [
            joined("-I", &prefix.join("include").join(&name)),
            joined("-L", &lib),
            joined("-Wl,-rpath,", &lib),
            format!("-l{name}").into(),
        ];
        if !c_program("embed", &dir.join("program"), &arguments) {
            return;
        }
        let command = words(&[&"env", &joined("PYTHONHOME=", prefix), &dir.join("program")]);
        compare(&named(&python, "embedded"), command.clone(), &dir);
        doctor_says(&dir, command, &format!("CPython {} (shared, embedded", python.version));
    }
}

/// What `doctor` says of a process that runs.
fn doctor_says(dir: &TempDir, mut command: Vec<OsString>, expected: &str) {
    command.extend([program("deep.py").into(), "20".into(), "600".into(), "--gate".into()]);
    let target = Target::start(Command::new(&command[0]).args(&command[1..]));
    let pid = target.pid.to_string();
    let out = Command::new(binary()).args(["doctor", "--pid", &pid]).current_dir(dir.path()).output();
    let said = String::from_utf8_lossy(&out.expect("doctor").stdout).into_owned();
    assert!(said.contains(expected), "not {expected:?} in:\n{said}");
}

/// Started by another loader than the one that its file names.
#[test]
fn started_by_the_loader() {
    if !is_root("started_by_the_loader") {
        return;
    }
    let loader = PathBuf::from("/lib64/ld-linux-x86-64.so.2");
    for python in interpreter::all() {
        let dir = TempDir::new("loader");
        compare(&named(&python, "by the loader"), words(&[&loader, &python.path]), &dir);
    }
}
