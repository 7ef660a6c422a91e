//! The command `otel-profile-exporter`: a verb each, see `commands/`.

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use otel_profile_exporter::cli::{self, Command};
use otel_profile_exporter::commands;
use tracing_subscriber::EnvFilter;

/// What is logged unless `OTEL_PROFILE_EXPORTER_LOG` says otherwise. aya warns of each probe that is not
/// permitted; one message of ours says that once, with what to do.
const LOG_FILTER: &str = "info,aya=error";

fn main() -> ExitCode {
    let cli = match cli::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(exit) => return exit.into(),
    };
    let filter =
        EnvFilter::try_from_env("OTEL_PROFILE_EXPORTER_LOG").unwrap_or_else(|_| EnvFilter::new(LOG_FILTER));
    let ansi = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(ansi).with_writer(io::stderr).init();
    match cli.command {
        Command::Record(arguments) => commands::record::run(&arguments),
        Command::CheckConfig(arguments) => commands::check_config::run(&arguments.file).into(),
        Command::Run(arguments) => commands::run::run(&arguments).into(),
        Command::Receive(arguments) => commands::receive::run(&arguments).into(),
        Command::Demo => commands::demo::run().into(),
        Command::Doctor(arguments) => commands::doctor::run(&arguments).into(),
    }
}
