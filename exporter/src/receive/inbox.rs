//! What both servers do with a request: validate, print, store, count.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::SyncSender;

use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;

use crate::otlp::profile::SCOPE_NAME;
use crate::otlp::read::{profiles, sample_count};
use crate::otlp::validate::{Finding, validate, validate_own};

/// Findings that are printed for one request; the rest is counted.
const PRINTED_FINDINGS: usize = 20;

/// What was received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveStats {
    /// Requests.
    pub requests: u64,
    /// Samples, repeated ones counted.
    pub samples: u64,
    /// Requests with findings.
    pub invalid_requests: u64,
    /// Findings.
    pub findings: u64,
    /// Requests that could not be written to the output folder.
    pub store_failures: u64,
}

/// The counters and the output folder.
#[derive(Debug)]
pub(super) struct Inbox {
    output: Option<PathBuf>,
    /// Who gets the requests, instead of a line on standard output for each.
    reader: OnceLock<SyncSender<ExportProfilesServiceRequest>>,
    requests: AtomicU64,
    samples: AtomicU64,
    invalid_requests: AtomicU64,
    findings: AtomicU64,
    store_failures: AtomicU64,
}

impl Inbox {
    pub(super) fn new(output: Option<PathBuf>) -> Self {
        Self {
            output,
            reader: OnceLock::new(),
            requests: AtomicU64::new(0),
            samples: AtomicU64::new(0),
            invalid_requests: AtomicU64::new(0),
            findings: AtomicU64::new(0),
            store_failures: AtomicU64::new(0),
        }
    }

    /// Hands requests to `reader` from now on; the first one who asks gets them.
    pub(super) fn hand_to(&self, reader: SyncSender<ExportProfilesServiceRequest>) {
        if self.reader.set(reader).is_err() {
            tracing::debug!("requests are handed to another reader already");
        }
    }

    pub(super) fn stats(&self) -> ReceiveStats {
        ReceiveStats {
            requests: self.requests.load(Relaxed),
            samples: self.samples.load(Relaxed),
            invalid_requests: self.invalid_requests.load(Relaxed),
            findings: self.findings.load(Relaxed),
            store_failures: self.store_failures.load(Relaxed),
        }
    }

    /// Takes one request; `bytes` as they came, after decompression.
    pub(super) fn take(&self, by: &str, request: &ExportProfilesServiceRequest, bytes: &[u8]) {
        let number = self.requests.fetch_add(1, Relaxed) + 1;
        self.samples.fetch_add(sample_count(request), Relaxed);
        let findings = if is_own(request) { validate_own(request) } else { validate(request) };
        self.findings.fetch_add(findings.len() as u64, Relaxed);
        self.invalid_requests.fetch_add(u64::from(!findings.is_empty()), Relaxed);
        if let Some(folder) = &self.output {
            let path = folder.join(format!("{number:06}.pb"));
            if let Err(error) = std::fs::write(&path, bytes) {
                self.store_failures.fetch_add(1, Relaxed);
                tracing::error!(path = %path.display(), %error, "request not stored");
            }
        }
        if let Some(reader) = self.reader.get() {
            for finding in &findings {
                tracing::warn!(%finding, "received");
            }
            // Bounded: a reader that is too slow loses requests, the receiver does not wait.
            if let Err(error) = reader.try_send(request.clone()) {
                tracing::warn!(%error, "a request was received but not read");
            }
            return;
        }
        let text = summary(number, by, request, bytes.len(), &findings);
        // A closed standard output (`receive | head`) is no reason to refuse requests.
        if let Err(error) = std::io::stdout().lock().write_all(text.as_bytes()) {
            tracing::debug!(%error, "cannot print");
        }
    }
}

/// Every scope is this exporter's: its contract is checked too.
fn is_own(request: &ExportProfilesServiceRequest) -> bool {
    let mut scopes = request.resource_profiles.iter().flat_map(|resource| &resource.scope_profiles);
    scopes.all(|scope| scope.scope.as_ref().is_some_and(|scope| scope.name == SCOPE_NAME))
}

fn summary(
    number: u64,
    by: &str,
    request: &ExportProfilesServiceRequest,
    bytes: usize,
    findings: &[Finding],
) -> String {
    let profiles = profiles(request);
    let mut services: Vec<&str> = profiles
        .iter()
        .filter_map(|profile| profile.resource.get("service.name"))
        .map(String::as_str)
        .collect();
    services.sort_unstable();
    services.dedup();
    let verdict = match findings.len() {
        0 => "valid".to_owned(),
        count => format!("{count} findings"),
    };
    let mut text = format!(
        "{number:06} {by}: {} resources, {} profiles, {} samples, {bytes} bytes, services [{}]: {verdict}\n",
        request.resource_profiles.len(),
        profiles.len(),
        sample_count(request),
        services.join(", "),
    );
    for finding in findings.iter().take(PRINTED_FINDINGS) {
        text.push_str(&format!("       {finding}\n"));
    }
    if findings.len() > PRINTED_FINDINGS {
        text.push_str(&format!("       and {} more\n", findings.len() - PRINTED_FINDINGS));
    }
    text
}
