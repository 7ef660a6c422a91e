//! `record`: one look, for a while or for the life of a command; writes files.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use exporter_common::limits::MAX_PYTHON_RECORDS;
use exporter_common::walk_status;
use prost::Message;

use crate::aggregate::window::ProfileWindow;
use crate::cli::{self, RecordArgs, RecordFormat};
use crate::exit::Exit;
use crate::otlp::profile;
use crate::pipeline::profiler::{Options, Profiler};
use crate::pipeline::stop::Stop;
use crate::process::stat;
use crate::sampler::loader::LoadError;
use crate::say;
use crate::sinks::flamegraph;
use crate::sinks::folded::{Folded, FoldedOptions, Granularity};

/// How long one wait of the loop may take: the answer to Ctrl-C and to the end of the command.
const TURN: Duration = Duration::from_millis(50);

/// The name of a file that is the standard output.
const STDOUT: &str = "-";

/// Runs it; the exit code is the command's own where there is one.
pub fn run(arguments: &RecordArgs) -> ExitCode {
    match record(arguments) {
        Ok(code) => code,
        Err(error) => {
            say!("record: {error:#}");
            let missing = matches!(error.downcast_ref(), Some(LoadError::NotPermitted { .. }));
            if missing { Exit::MissingPrivilege.into() } else { Exit::Failed.into() }
        }
    }
}

fn record(arguments: &RecordArgs) -> Result<ExitCode> {
    let outputs = outputs(arguments);
    for (_, path) in &outputs {
        check_writable(path)?;
    }
    if let Some(pid) = arguments.pids.iter().find(|pid| stat::read(**pid).is_err()) {
        bail!("there is no process {pid}: give the pid of one that runs, as this pid namespace numbers it");
    }
    let stop = Stop::install().context("listening to signals")?;
    let options = Options {
        rate: arguments.rate,
        pids: arguments.pids.clone(),
        only_wanted: !arguments.command.is_empty(),
    };
    let mut profiler = Profiler::start(&options)?;
    let mut child = match arguments.command.split_first() {
        Some((program, rest)) => {
            let child = Command::new(program).args(rest).spawn();
            let child =
                child.with_context(|| format!("starting {}: check its name and PATH", program.display()))?;
            profiler.want(child.id());
            Some(child)
        }
        None => None,
    };
    let end = arguments.effective_duration().map(|duration| Instant::now() + duration);
    say!("recording at {} Hz; Ctrl-C ends it early", arguments.rate);
    let mut status = None;
    while !stop.is_requested() && end.is_none_or(|end| Instant::now() < end) {
        if let Some(child) = &mut child
            && let Some(ended) = child.try_wait().context("waiting for the command")?
        {
            status = Some(ended);
            break;
        }
        profiler.poll(TURN.min(end.map_or(TURN, |end| end.saturating_duration_since(Instant::now()))));
    }
    profiler.stop();
    profiler.poll(Duration::ZERO);
    let window = profiler.take_window();
    report(&profiler, &window);
    write(arguments, &window, &outputs)?;
    let code = match (status, child) {
        (Some(status), _) => Some(status),
        (None, Some(child)) => Some(wait(child)?),
        (None, None) => None,
    };
    Ok(match code {
        Some(status) => ExitCode::from(exit_code(status)),
        None if window.processes.is_empty() => Exit::Failed.into(),
        None => Exit::Success.into(),
    })
}

fn wait(mut child: Child) -> Result<std::process::ExitStatus> {
    say!("waiting for the command to end");
    child.wait().context("waiting for the command")
}

/// As a shell does: 128 + the signal's number for a command that a signal ended.
fn exit_code(status: std::process::ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code & 0xff).unwrap_or(1)
}

fn report(profiler: &Profiler, window: &ProfileWindow) {
    let samples = window.sample_count();
    say!("{samples} samples of {} processes", window.processes.len());
    if samples == 0 {
        say!(
            "no Python process used the CPU: is it running, is it CPython 3.6 to 3.15, and may the \
             exporter see it? `otel-profile-exporter doctor --pid PID` tells"
        );
    }
    let counters = profiler.counts();
    for (name, count) in counters.iter().filter(|(_, count)| *count > 0) {
        tracing::debug!(name, count, "counter");
    }
    let truncated = counters.iter().find(|(name, _)| *name == walk_status::as_str(walk_status::TRUNCATED));
    if let Some((_, count)) = truncated.filter(|(_, count)| *count > 0) {
        say!(
            "{count} samples have stacks too deep to take whole (more than {MAX_PYTHON_RECORDS} frames with entry \
             markers): their root end is the frame [truncated]"
        );
    }
    let dropped: u64 =
        counters.iter().filter(|(name, _)| name.starts_with("samples_dropped")).map(|(_, count)| count).sum();
    if dropped > 0 {
        say!("{dropped} samples were dropped because the ring buffer was full: lower --rate");
    }
}

/// The files to write.
fn outputs(arguments: &RecordArgs) -> Vec<(RecordFormat, PathBuf)> {
    let path = |format| {
        let extension = match format {
            RecordFormat::Flamegraph => "svg",
            RecordFormat::Otlp => "pb",
            RecordFormat::Folded => "folded",
        };
        match &arguments.output {
            Some(path) if arguments.formats.len() == 1 => path.clone(),
            Some(path) => path.with_extension(extension),
            None => PathBuf::from(format!("profile.{extension}")),
        }
    };
    arguments.formats.iter().map(|format| (*format, path(*format))).collect()
}

/// Before the recording, not after it.
fn check_writable(path: &Path) -> Result<()> {
    if path == Path::new(STDOUT) {
        return Ok(());
    }
    let is_new = !path.exists();
    File::options().append(true).create(true).open(path).with_context(|| cannot_write(path))?;
    if is_new {
        fs::remove_file(path).with_context(|| cannot_write(path))?;
    }
    Ok(())
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}; name another place with -o", path.display())
}

fn write(arguments: &RecordArgs, window: &ProfileWindow, outputs: &[(RecordFormat, PathBuf)]) -> Result<()> {
    let mut folded = Folded::new(FoldedOptions {
        granularity: match arguments.granularity {
            cli::Granularity::Function => Granularity::Function,
            cli::Granularity::Line => Granularity::Line,
        },
        threads: arguments.threads,
        processes: arguments.processes,
    });
    folded.add(window);
    for (format, path) in outputs {
        if *format == RecordFormat::Flamegraph && window.processes.is_empty() {
            say!("no flame graph written: there is nothing to draw");
            continue;
        }
        let mut out = open(path)?;
        match format {
            RecordFormat::Flamegraph => {
                flamegraph::write(&folded, "CPU time by stack", &mut out)
                    .context("drawing the flame graph")?;
            }
            RecordFormat::Otlp => out.write_all(&profile::build(window).encode_to_vec())?,
            RecordFormat::Folded => folded.write(&mut out)?,
        }
        out.flush().with_context(|| cannot_write(path))?;
        if path != Path::new(STDOUT) {
            say!("wrote {}", path.display());
        }
    }
    Ok(())
}

fn open(path: &Path) -> Result<Box<dyn Write>> {
    if path == Path::new(STDOUT) {
        return Ok(Box::new(io::stdout().lock()));
    }
    let file = File::create(path).with_context(|| cannot_write(path))?;
    Ok(Box::new(BufWriter::new(file)))
}
