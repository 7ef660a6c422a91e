//! The command line: a stable contract, since scripts and service files call it.
//!
//! In: arguments. Out: [`Cli`], with values already checked (a rate is in range, a duration has a unit);
//! [`parse`] turns a usage error into exit code 64. Flags that are absent stay `None`, so that the
//! configuration file and the environment can speak next.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::config::{self, Config, Fault, Native, Origin};
use crate::exit::Exit;

/// OpenTelemetry profiles of Python programs, taken by eBPF.
#[derive(Debug, Parser)]
#[command(name = "otel-profile-exporter", version, about, propagate_version = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Profile this host and send OTLP profiles until stopped.
    Run(RunArgs),
    /// Take one look: profile for a while or for the life of a command, then write files.
    Record(RecordArgs),
    /// Receive OTLP profiles from any exporter: check, print and store them.
    Receive(ReceiveArgs),
    /// Profile a sample program, receive its profiles and draw a flame graph, with nothing else installed.
    Demo,
    /// Load a configuration file and print what is in effect, or everything that is wrong with it.
    CheckConfig(CheckConfigArgs),
    /// Say whether profiling can work here, and what to change where it can not.
    Doctor(DoctorArgs),
}

/// Flags of `run`; each wins over the file and the environment.
#[derive(Debug, Default, Args)]
pub struct RunArgs {
    /// Configuration file; without one the defaults work.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Samples a second on each CPU.
    #[arg(long, value_name = "HZ", value_parser = parse_rate)]
    pub rate: Option<u32>,
    /// Where to send profiles by OTLP/gRPC, such as http://localhost:4317.
    #[arg(long, value_name = "URL", value_parser = config::export::parse_endpoint)]
    pub endpoint: Option<String>,
    /// Time between two exports.
    #[arg(long, value_name = "DURATION", value_parser = parse_interval)]
    pub interval: Option<Duration>,
    /// Profile only this process (may be repeated).
    #[arg(long = "pid", value_name = "PID", value_parser = parse_pid)]
    pub pids: Vec<u32>,
    /// How much of native stacks to take.
    #[arg(long, value_name = "MODE", value_parser = parse_native)]
    pub native: Option<Native>,
}

impl RunArgs {
    /// The configuration that these flags ask for: flags over file over environment over defaults.
    ///
    /// # Errors
    /// Every fault of the file.
    pub fn configuration(&self) -> Result<Config, Vec<Fault>> {
        let mut config = match &self.config {
            Some(path) => config::load(path)?,
            None => config::from_environment(),
        };
        self.apply(&mut config);
        Ok(config)
    }

    /// Sets what these flags say.
    fn apply(&self, config: &mut Config) {
        let Self { config: _, rate, endpoint, interval, pids, native } = self;
        let origins = &mut config.origins;
        if let Some(rate) = rate {
            config.sampling.rate = *rate;
            origins.set("sampling.rate", Origin::Flag("--rate"));
        }
        if let Some(endpoint) = endpoint {
            config.export.endpoint.clone_from(endpoint);
            origins.set("export.endpoint", Origin::Flag("--endpoint"));
        }
        if let Some(interval) = interval {
            config.export.interval = *interval;
            origins.set("export.interval", Origin::Flag("--interval"));
        }
        if !pids.is_empty() {
            config.processes.pids.clone_from(pids);
            origins.set("processes.pids", Origin::Flag("--pid"));
        }
        if let Some(native) = native {
            config.sampling.native = *native;
            origins.set("sampling.native", Origin::Flag("--native"));
        }
    }
}

/// Flags of `record`.
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// Profile only this process (may be repeated); without it and without CMD, every process.
    #[arg(long = "pid", value_name = "PID", value_parser = parse_pid, conflicts_with = "command")]
    pub pids: Vec<u32>,
    /// How long to look; with CMD, until it ends unless given [without CMD: 10s].
    #[arg(long, value_name = "DURATION", value_parser = parse_positive_duration)]
    pub duration: Option<Duration>,
    /// Samples a second on each CPU.
    #[arg(long, value_name = "HZ", default_value_t = RECORD_RATE_HZ, value_parser = parse_rate)]
    pub rate: u32,
    /// How much of native stacks to take.
    #[arg(long, value_name = "MODE", default_value = "none", value_parser = parse_native)]
    pub native: Native,
    /// What to write (may be repeated).
    #[arg(long = "format", value_name = "FORMAT", value_enum, default_value = "flamegraph")]
    pub formats: Vec<RecordFormat>,
    /// What tells two Python frames apart.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Granularity::Line)]
    pub granularity: Granularity,
    /// Put the thread at the root of each stack.
    #[arg(long)]
    pub threads: bool,
    /// Put the process at the root of each stack.
    #[arg(long)]
    pub processes: bool,
    /// File to write; with several formats, its stem.
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Command to start and profile, children included; its exit code becomes ours.
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// Rate of `record`: higher than the daemon's, since a look is short; odd, so as not to keep step with timers.
pub const RECORD_RATE_HZ: u32 = 99;
/// How long `record` looks when neither `--duration` nor a command says so.
pub const RECORD_DURATION: Duration = Duration::from_secs(10);

impl RecordArgs {
    /// When to stop at the latest; `None` is the end of the command.
    #[must_use]
    pub fn effective_duration(&self) -> Option<Duration> {
        self.duration.or_else(|| self.command.is_empty().then_some(RECORD_DURATION))
    }
}

/// What `record` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RecordFormat {
    /// A flame graph as SVG.
    Flamegraph,
    /// An OTLP profiles request, as protobuf.
    Otlp,
    /// One line a stack: `frame;frame;… COUNT`, root first.
    Folded,
}

/// What tells two Python frames apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Granularity {
    /// The function.
    Function,
    /// The line that was executing.
    Line,
}

/// Flags of `receive`.
#[derive(Debug, Args)]
pub struct ReceiveArgs {
    /// Address to serve OTLP/gRPC at.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4317")]
    pub grpc: SocketAddr,
    /// Address to serve OTLP/HTTP at.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4318")]
    pub http: SocketAddr,
    /// Directory to store each request in.
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

/// Arguments of `check-config`.
#[derive(Debug, Args)]
pub struct CheckConfigArgs {
    /// The file to check.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Flags of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Also say whether this process can be profiled.
    #[arg(long, value_name = "PID", value_parser = parse_pid)]
    pub pid: Option<u32>,
}

/// Reads the command line; on a usage error, `--help` or `--version`, prints and says how to end.
///
/// # Errors
/// [`Exit::Usage`] for a wrong command line, [`Exit::Success`] after help or version.
pub fn parse<I, T>(arguments: I) -> Result<Cli, Exit>
where
    I: IntoIterator<Item = T>,
    T: Into<OsString> + Clone,
{
    Cli::try_parse_from(arguments).map_err(|error| {
        // Nothing can be said about a closed terminal to that terminal.
        error.print().ok();
        exit_of(&error)
    })
}

/// How to end after `error`, which in clap may also be a wish for help.
fn exit_of(error: &clap::Error) -> Exit {
    if error.use_stderr() { Exit::Usage } else { Exit::Success }
}

fn parse_rate(text: &str) -> Result<u32, String> {
    let rate = text.parse::<u32>().ok().filter(|rate| config::RATE_HZ.contains(rate));
    let (low, high) = (config::RATE_HZ.start(), config::RATE_HZ.end());
    rate.ok_or_else(|| format!("expected a whole number from {low} to {high} (samples a second)"))
}

fn parse_pid(text: &str) -> Result<u32, String> {
    let pid = text.parse::<u32>().ok().filter(|pid| *pid > 0 && i32::try_from(*pid).is_ok());
    pid.ok_or_else(|| "expected a process id: a whole number above 0".to_owned())
}

fn parse_positive_duration(text: &str) -> Result<Duration, String> {
    let duration = config::duration::parse(text)?;
    if duration.is_zero() { Err("expected more than 0s".to_owned()) } else { Ok(duration) }
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    config::export::duration_in(text, &config::export::INTERVAL)
}

fn parse_native(text: &str) -> Result<Native, String> {
    text.parse()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &str) -> Result<Cli, Exit> {
        let arguments = std::iter::once("otel-profile-exporter").chain(line.split_whitespace());
        Cli::try_parse_from(arguments).map_err(|error| exit_of(&error))
    }

    #[test]
    fn clap_finds_no_contradiction() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn run_takes_every_flag_and_leaves_absent_ones_open() {
        let line = "run --config c.yaml --rate 49 --endpoint http://c:4317 --interval 1s --pid 7 --pid 8 --native none";
        let Command::Run(run) = parse_line(line).unwrap().command else { panic!("not run") };
        assert_eq!(run.config, Some(PathBuf::from("c.yaml")));
        assert_eq!((run.rate, run.interval), (Some(49), Some(Duration::from_secs(1))));
        assert_eq!(run.endpoint.as_deref(), Some("http://c:4317"));
        assert_eq!((run.pids, run.native), (vec![7, 8], Some(Native::None)));

        let Command::Run(bare) = parse_line("run").unwrap().command else { panic!("not run") };
        assert_eq!((bare.rate, bare.endpoint, bare.pids), (None, None, vec![]));
    }

    #[test]
    fn flags_win_over_the_file_and_say_so() {
        let Command::Run(run) = parse_line("run --rate 49 --pid 7").unwrap().command else {
            panic!("not run")
        };
        let mut config = Config::default();
        config.origins.set("sampling.rate", Origin::File { line: 2 });
        run.apply(&mut config);
        assert_eq!((config.sampling.rate, config.processes.pids.as_slice()), (49, [7].as_slice()));
        assert_eq!(config.origins.get("sampling.rate"), Origin::Flag("--rate"));
        assert_eq!(config.export, Config::default().export);
    }

    #[test]
    fn record_keeps_the_commands_own_flags_for_the_command() {
        let line = "record --format folded --format otlp --threads -o out -- python3 -X dev --rate x.py";
        let Command::Record(record) = parse_line(line).unwrap().command else { panic!("not record") };
        assert_eq!(record.command, ["python3", "-X", "dev", "--rate", "x.py"]);
        assert_eq!(record.formats, [RecordFormat::Folded, RecordFormat::Otlp]);
        assert_eq!((record.rate, record.threads, record.processes), (99, true, false));
        assert_eq!(record.effective_duration(), None);
    }

    #[test]
    fn record_without_a_command_ends_after_ten_seconds() {
        let Command::Record(record) = parse_line("record --pid 1").unwrap().command else { panic!() };
        assert_eq!(record.effective_duration(), Some(Duration::from_secs(10)));
        assert_eq!(record.formats, [RecordFormat::Flamegraph]);
        assert_eq!(record.granularity, Granularity::Line);
    }

    #[test]
    fn the_other_verbs_are_read() {
        for line in
            ["receive --grpc 0.0.0.0:1 --http [::1]:2 --output d", "demo", "check-config f", "doctor --pid 3"]
        {
            assert!(parse_line(line).is_ok(), "{line}");
        }
    }

    #[test]
    fn usage_errors_end_with_64() {
        let wrong = [
            "",
            "fly",
            "run --rate 0",
            "run --rate 1001",
            "run --interval 5",
            "run --interval 0s",
            "run --pid 0",
            "run --native leaf",
            "record --format pprof",
            "record --pid 1 -- true",
            "check-config",
            "receive --grpc here",
        ];
        for line in wrong {
            assert_eq!(parse_line(line).err(), Some(Exit::Usage), "{line}");
        }
        assert_eq!(parse_line("--help").err(), Some(Exit::Success));
    }
}
