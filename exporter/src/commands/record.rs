//! `record`: one look, for a while or for the life of a command; writes files.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use exporter_common::limits::MAX_PYTHON_RECORDS;
use exporter_common::walk_status;
use prost::Message;

use crate::aggregate::window::ProfileWindow;
use crate::cli::{self, RecordArgs, RecordFormat};
use crate::exit::Exit;
use crate::otlp::profile;
use crate::pipeline::profiler::{Options, Profiler};
use crate::pipeline::stop::Stop;
use crate::sampler::loader::LoadError;
use crate::sinks::flamegraph;
use crate::sinks::folded::{Folded, FoldedOptions, Granularity};

/// How long one wait of the loop may take: the answer to Ctrl-C and to the end of the command.
const TURN: Duration = Duration::from_millis(50);

/// Runs it; the exit code is the command's own where there is one.
pub fn run(arguments: &RecordArgs) -> ExitCode {
    match record(arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("record: {error:#}");
            let missing = matches!(error.downcast_ref(), Some(LoadError::NotPermitted { .. }));
            if missing { Exit::MissingPrivilege.into() } else { Exit::Failed.into() }
        }
    }
}

fn record(arguments: &RecordArgs) -> Result<ExitCode> {
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
            let child = child.with_context(|| format!("starting {}", program.display()))?;
            profiler.want(child.id());
            Some(child)
        }
        None => None,
    };
    let end = arguments.effective_duration().map(|duration| Instant::now() + duration);
    eprintln!("recording at {} Hz; Ctrl-C ends it early", arguments.rate);
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
    write(arguments, &window)?;
    let code = match (status, child) {
        (Some(status), _) => Some(status),
        (None, Some(child)) => Some(wait(child)?),
        (None, None) => None,
    };
    Ok(match code {
        Some(status) => ExitCode::from(exit_code(status)),
        None => Exit::Success.into(),
    })
}

fn wait(mut child: Child) -> Result<std::process::ExitStatus> {
    eprintln!("waiting for the command to end");
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
    eprintln!("{samples} samples of {} processes", window.processes.len());
    if samples == 0 {
        eprintln!(
            "no Python process used the CPU: is it running, is it CPython 3.11 to 3.13, and may the \
             exporter see it? `otel-profile-exporter doctor --pid PID` tells"
        );
    }
    let counters = profiler.counts();
    for (name, count) in counters.iter().filter(|(_, count)| *count > 0) {
        tracing::debug!(name, count, "counter");
    }
    let truncated = counters.iter().find(|(name, _)| *name == walk_status::as_str(walk_status::TRUNCATED));
    if let Some((_, count)) = truncated.filter(|(_, count)| *count > 0) {
        eprintln!(
            "{count} samples have stacks too deep to take whole (more than {MAX_PYTHON_RECORDS} frames with entry \
             markers): their root end is the frame [truncated]"
        );
    }
    let dropped: u64 =
        counters.iter().filter(|(name, _)| name.starts_with("samples_dropped")).map(|(_, count)| count).sum();
    if dropped > 0 {
        eprintln!("{dropped} samples were dropped because the ring buffer was full: lower --rate");
    }
}

fn write(arguments: &RecordArgs, window: &ProfileWindow) -> Result<()> {
    let mut folded = Folded::new(FoldedOptions {
        granularity: match arguments.granularity {
            cli::Granularity::Function => Granularity::Function,
            cli::Granularity::Line => Granularity::Line,
        },
        threads: arguments.threads,
        processes: arguments.processes,
    });
    folded.add(window);
    for format in &arguments.formats {
        let extension = match format {
            RecordFormat::Flamegraph => "svg",
            RecordFormat::Otlp => "pb",
            RecordFormat::Folded => "folded",
        };
        let path = match &arguments.output {
            Some(path) if arguments.formats.len() == 1 => path.clone(),
            Some(path) => path.with_extension(extension),
            None => PathBuf::from(format!("profile.{extension}")),
        };
        let mut out = open(&path)?;
        match format {
            RecordFormat::Flamegraph => {
                flamegraph::write(&folded, "CPU time by stack", &mut out)
                    .context("drawing the flame graph")?;
            }
            RecordFormat::Otlp => out.write_all(&profile::build(window).encode_to_vec())?,
            RecordFormat::Folded => folded.write(&mut out)?,
        }
        out.flush().with_context(|| format!("writing {}", path.display()))?;
        if path.as_os_str() != "-" {
            eprintln!("wrote {}", path.display());
        }
    }
    Ok(())
}

/// `-` is the standard output.
fn open(path: &Path) -> Result<Box<dyn Write>> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdout().lock()));
    }
    let file = File::create(path)
        .with_context(|| format!("creating {}; name a place to write with -o", path.display()))?;
    Ok(Box::new(BufWriter::new(file)))
}
