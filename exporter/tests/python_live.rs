//! Detection, code objects and line tables against the real interpreters of this machine.
//!
//! Each interpreter tells the truth about itself over a pipe; a missing one is skipped aloud.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::{
    collections::HashSet,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use exporter_common::python::{
    HOLDER_GLOBAL, HOLDER_INTERPRETER, INSTRUCTION_BYTES, INSTRUCTION_POINTER, INSTRUCTION_UNITS,
    TLS_DYNAMIC, TLS_NONE, TLS_STATIC, TSD_GLIBC,
};
use otel_profile_exporter::{
    interpreter::python::{
        BuildKind, Cache, LayoutSource, NotPython,
        code_object::CodeObject,
        detect,
        line_table::{self, Form, Line},
        live_check::{self, Trust},
        offsets, scan,
        version::Version,
    },
    process::{identity::ProcessIdentity, mappings, stat},
    remote_memory::{ProcessMemory, RemoteMemory as _},
};

/// Prints the line tables of all code objects of some modules of the standard library:
/// `FIRST TABLE LINES`, a line (or `-`) for every code unit, as the interpreter itself says: by
/// `co_positions`, before 3.11 by `PyCode_Addr2Line`.
const TABLES: &str = r#"
import argparse, ast, asyncio.base_events, collections, ctypes, decimal, difflib, doctest, email.message, ftplib
import inspect, http.client, json.decoder, logging, optparse, pdb, pickle, pickletools, re, shutil, subprocess
import tarfile, typing, unittest.mock, zipfile, sys, types
def walk(code):
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from walk(const)
addr2line = ctypes.pythonapi.PyCode_Addr2Line
addr2line.argtypes, addr2line.restype = [ctypes.py_object, ctypes.c_int], ctypes.c_int
def lines(code):
    if hasattr(code, 'co_positions'):
        return ['-' if line is None else str(line) for line, *_ in code.co_positions()]
    found = [addr2line(code, at) for at in range(0, len(code.co_code), 2)]
    return ['-' if line < 0 else str(line) for line in found]
for module in (argparse, ast, asyncio.base_events, collections, difflib, doctest, email.message, ftplib, inspect,
               http.client, json.decoder, logging, optparse, pdb, pickle, pickletools, shutil, subprocess, tarfile,
               typing, unittest.mock, zipfile):
    with open(module.__file__, encoding='utf-8') as source:
        top = compile(source.read(), module.__file__, 'exec')
    for code in walk(top):
        table = code.co_linetable if hasattr(code, 'co_linetable') else code.co_lnotab
        print(code.co_firstlineno, table.hex() or '-', ','.join(lines(code)))
"#;

/// Says where its functions are, then waits for a line and for the end of its input.
const TARGET: &str = r#"
import sys, threading
class Bäcker:
    def 店(self):
        def 𠀀inner(): return 1
        return 𠀀inner
def plain():
    return 1
long = 'x' * 400
exec(f'def {long}(): pass')
release = threading.Event()
threading.Thread(target=release.wait, daemon=True).start()
print('.'.join(map(str, sys.version_info[:3])), flush=True)
for f in (plain, Bäcker.店, Bäcker().店(), globals()[long]):
    c = f.__code__
    name = getattr(c, 'co_qualname', c.co_name)
    table = c.co_linetable if hasattr(c, 'co_linetable') else c.co_lnotab
    print(id(c), c.co_firstlineno, name, c.co_filename, table.hex() or '-', sep='\t', flush=True)
print('ready', flush=True)
sys.stdin.read()
"#;

fn interpreters() -> Vec<PathBuf> {
    let home = PathBuf::from(std::env::var("HOME").unwrap_or_default());
    let pyenv = ["3.6.15", "3.7.16", "3.8.18", "3.9.18", "3.10.13", "3.11.7", "3.12.1", "3.13.0"]
        .map(|version| home.join(format!(".pyenv/versions/{version}/bin/python3")));
    let system = PathBuf::from("/usr/bin/python3.11");
    let (found, missing): (Vec<_>, Vec<_>) =
        pyenv.into_iter().chain([system]).partition(|path| path.exists());
    for path in missing {
        eprintln!("skipped: {} is not installed", path.display());
    }
    found
}

/// A child that is ended with its handle.
struct Target {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Target {
    fn start(interpreter: &PathBuf, script: &str) -> Self {
        let mut child = Command::new(interpreter)
            .args(["-X", "utf8", "-c", script])
            .envs([("LC_ALL", "C.UTF-8"), ("PYTHONIOENCODING", "utf8")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        let bytes = self.output.read_line(&mut line).unwrap();
        assert_ne!(bytes, 0, "the interpreter ended early: {:?}", self.child.try_wait());
        line.trim_end().to_owned()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let ended = self.child.kill().and_then(|()| self.child.wait());
        assert!(ended.is_ok() || std::thread::panicking(), "{ended:?}");
    }
}

#[test]
fn line_tables_agree_with_the_interpreter() {
    for interpreter in interpreters() {
        let mut target = Target::start(&interpreter, TABLES);
        let mut text = String::new();
        target.output.read_to_string(&mut text).unwrap();
        let form = Form::of(instruction_kind(&interpreter));
        let (mut codes, mut units, mut without) = (0, 0, 0);
        for row in text.lines() {
            codes += 1;
            let [first, table, lines] = row.split(' ').collect::<Vec<_>>().try_into().unwrap();
            let first = first.parse().unwrap();
            let table = from_hex(table);
            for (unit, expected) in lines.split(',').enumerate() {
                let found = match line_table::lookup(form, &table, first, 2 * unit as u64) {
                    Line::Exact(line) => line.to_string(),
                    Line::None(_) => "-".to_owned(),
                    Line::Outside => "outside".to_owned(),
                };
                assert_eq!(found, expected, "{}: unit {unit} of {row}", interpreter.display());
                let line = line_table::line_of(form, &table, first, 2 * unit as i32);
                // Modules begin with an instruction of line 0, which is no line.
                assert!(line.is_some() || expected == "0" || first == 0, "{row}");
                units += 1;
                without += u32::from(expected == "-");
            }
        }
        eprintln!(
            "{}: {codes} code objects, {units} code units agree, {without} of them without a line",
            interpreter.display()
        );
        assert!(codes > 2_000 && units > 50_000, "{codes} {units}");
    }
}

#[test]
fn interpreters_are_detected_and_their_code_is_read() {
    let mut cache = Cache::new();
    for interpreter in interpreters() {
        let mut target = Target::start(&interpreter, TARGET);
        let version = target.line();
        let mut rows = Vec::new();
        loop {
            let line = target.line();
            if line == "ready" {
                break;
            }
            rows.push(line);
        }
        assert_eq!(rows.len(), 4);
        let pid = target.child.id();
        let start_ticks = stat::read(pid).unwrap().start_ticks;
        let found = detect(pid, 5, start_ticks, &mut cache).unwrap();
        eprintln!("{}: {found:?}", interpreter.display());
        assert_eq!(found.version, version);
        let process = found.process;
        assert_eq!((process.generation, process.start_ticks), (5, start_ticks));
        assert_eq!(process.tsd_kind, TSD_GLIBC);
        let minor: u32 = version.split('.').nth(1).unwrap().parse().unwrap();
        let debug_offsets = found.layout_source == LayoutSource::DebugOffsets;
        assert_eq!(debug_offsets, minor >= 13);
        assert_eq!(process.holder_kind, if minor <= 11 { HOLDER_GLOBAL } else { HOLDER_INTERPRETER });
        let tls = match found.build.kind {
            _ if minor <= 11 => TLS_NONE,
            BuildKind::Static => TLS_STATIC,
            BuildKind::Shared => TLS_DYNAMIC,
        };
        assert_eq!(process.tls_kind, tls);

        let memory = ProcessMemory { pid };
        assert_thread_states_by_key(&memory, &found.process);
        for row in &rows {
            let [address, first, name, file, table] = row.split('\t').collect::<Vec<_>>().try_into().unwrap();
            let code = CodeObject::read_remote(&memory, &process, address.parse().unwrap()).unwrap();
            let expected = CodeObject {
                name: name.into(),
                file: file.into(),
                first_line: first.parse().unwrap(),
                line_table: from_hex(table).into(),
                form: Form::of(process.instruction_kind),
            };
            assert_eq!(code, expected);
        }
        assert!(CodeObject::read_remote(&memory, &process, process.code_type).is_err());
        if minor > 6 {
            assert_found_without_symbols(pid, &version, &process);
        }

        // A second look reads no file, and takes little time.
        let reads = cache.reads();
        let start = Instant::now();
        assert_eq!(detect(pid, 5, start_ticks, &mut cache).unwrap(), found);
        let took = start.elapsed();
        assert_eq!(cache.reads(), reads);
        assert!(took < Duration::from_millis(50), "{took:?}");
        eprintln!("{}: detected again in {took:?}", interpreter.display());

        let identity = ProcessIdentity::read(pid, 5, Some(&version)).unwrap();
        assert!(identity.executable_name.starts_with("python3"), "{identity:?}");
        assert!(matches!(detect(pid, 5, start_ticks + 1, &mut cache), Err(NotPython::Unreadable(_))));
    }
}

/// What symbols tell of the interpreter is found by search too, and nothing else passes the check.
fn assert_found_without_symbols(pid: u32, version: &str, process: &exporter_common::python::PythonProcess) {
    let memory = ProcessMemory { pid };
    let maps = mappings::read(pid).unwrap();
    let owner = maps.iter().find(|it| it.start <= process.code_type && process.code_type < it.end).unwrap();
    let version = Version::parse(format!("{version}\0").as_bytes()).unwrap();
    let layout = offsets::table(version).unwrap();
    let places = scan::places(&memory, &maps, owner, version, &layout);
    eprintln!("{version}: the runtime may be at {places:x?}");
    let mut passed = Vec::new();
    for base in places {
        let head = base + layout.interpreters_head;
        let guess =
            exporter_common::python::PythonProcess { interpreters_head: head, code_type: 0, ..*process };
        if let Ok(found) = live_check::check(&memory, &guess, Trust::Guessed) {
            passed.push((head, found.code_type));
            assert_eq!(found.threads.len(), 2);
        }
    }
    assert_eq!(passed, [(process.interpreters_head, process.code_type)]);
}

/// What the walk does by the pthread key: every thread of the list must be found by its own key.
fn assert_thread_states_by_key(memory: &ProcessMemory, process: &exporter_common::python::PythonProcess) {
    let at = |base: u64, offset: u16| memory.read_u64(base + u64::from(offset)).unwrap();
    let interpreter = memory.read_u64(process.interpreters_head).unwrap();
    let mut thread = at(interpreter, process.interp_threads);
    let mut seen = HashSet::new();
    while thread != 0 {
        let pthread = at(thread, process.ts_thread_id);
        let cell = pthread + u64::from(process.tsd_first_block) + 16 * u64::from(process.tsd_key) + 8;
        assert_eq!(memory.read_u64(cell).unwrap(), thread);
        assert!(seen.insert(thread));
        thread = at(thread, process.ts_next);
    }
    assert_eq!(seen.len(), 2);
}

#[test]
fn a_starting_interpreter_is_soon_found() {
    let mut cache = Cache::new();
    for interpreter in interpreters() {
        for _ in 0..5 {
            let mut target =
                Target::start(&interpreter, "import sys; print('up', flush=True); sys.stdin.read()");
            let pid = target.child.id();
            let deadline = Instant::now() + Duration::from_secs(20);
            let mut not_yet = 0;
            let found = loop {
                match detect(pid, 1, 0, &mut cache) {
                    Ok(found) => break found,
                    // Before exec the child is this test: it has no runtime.
                    Err(NotPython::NotYet | NotPython::NoRuntime) => not_yet += 1,
                    Err(other) => eprintln!("{}: {other}", interpreter.display()),
                }
                assert!(Instant::now() < deadline);
            };
            assert_eq!(target.line(), "up");
            target.child.stdin.take().unwrap().flush().unwrap();
            eprintln!("{}: {} after {not_yet} early looks", interpreter.display(), found.version);
        }
    }
}

/// Of the interpreter's layout: by the minor version that its path names.
fn instruction_kind(interpreter: &Path) -> u16 {
    let path = interpreter.display().to_string();
    let minor = path
        .split('/')
        .find_map(|part| part.strip_prefix("python3.").or_else(|| part.strip_prefix("3.")))
        .and_then(|rest| rest.split('.').next())
        .unwrap();
    match minor.parse::<u32>().unwrap() {
        ..10 => INSTRUCTION_BYTES,
        10 => INSTRUCTION_UNITS,
        _ => INSTRUCTION_POINTER,
    }
}

fn from_hex(text: &str) -> Vec<u8> {
    let text = text.trim_matches('-');
    let digits: Vec<_> = text.chars().map(|digit| digit.to_digit(16).unwrap() as u8).collect();
    digits.as_chunks::<2>().0.iter().map(|pair| pair[0] << 4 | pair[1]).collect()
}
