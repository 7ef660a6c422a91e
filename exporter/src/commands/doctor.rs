//! `doctor`: whether profiling can work here, and what to change where it can not.

use crate::answer;
use crate::cli::DoctorArgs;
use crate::config;
use crate::doctor::{bpf, capability, collector, exit_of, kernel, python, quality};
use crate::exit::Exit;

/// Asks every question and prints the answers.
pub fn run(arguments: &DoctorArgs) -> Exit {
    let mut checks = kernel::checks();
    checks.extend(capability::checks());
    checks.extend(bpf::checks());
    checks.extend(python::checks(arguments.pid));
    checks.push(quality::check(arguments.pid));
    checks.push(collector::check(&config::from_environment().export.endpoint));
    for check in &checks {
        answer!("{check}");
    }
    exit_of(&checks)
}
