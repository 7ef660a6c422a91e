//! `export`: where profiles go and how; keys named as in the OpenTelemetry Collector's exporters.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use tonic::transport::Uri;

use super::duration;
use super::secret::Secret;
use super::validate::{Reader, Section, number};

/// Time between two exports: shorter makes more requests than profiles, longer loses more in a crash.
pub const INTERVAL: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(3600);
/// Time for one request.
pub const TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(600);
/// Pauses between retries.
pub const BACKOFF: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(3600);
/// Time after which a request is given up; 0 for never.
pub const MAX_ELAPSED: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(7 * 24 * 3600);
/// Requests that wait in memory, each of up to 4 MiB.
pub const QUEUE_SIZE: RangeInclusive<usize> = 1..=65_536;

/// The section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Where OTLP/gRPC is served: a URL with scheme, host and port.
    pub endpoint: String,
    /// Metadata of every request, by lower-case name.
    pub headers: BTreeMap<String, Secret>,
    /// How requests are compressed.
    pub compression: Compression,
    /// Time for one request.
    pub timeout: Duration,
    /// Time between two exports.
    pub interval: Duration,
    /// What to do when a request fails in a way that may pass.
    pub retry_on_failure: RetryOnFailure,
    /// Requests that wait for the one that is being sent.
    pub sending_queue: SendingQueue,
}

/// `retry_on_failure`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryOnFailure {
    /// Whether to try again at all.
    pub enabled: bool,
    /// First pause.
    pub initial_interval: Duration,
    /// Longest pause.
    pub max_interval: Duration,
    /// Give up after this; zero for never.
    pub max_elapsed_time: Duration,
}

/// `sending_queue`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendingQueue {
    /// Requests that it holds.
    pub queue_size: usize,
}

/// How requests are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// By gzip.
    Gzip,
}

impl Compression {
    /// The word for it in files and variables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
        }
    }
}

impl FromStr for Compression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "gzip" => Ok(Self::Gzip),
            _ => Err(format!("`{text}` is not known")),
        }
    }
}

/// What an endpoint may be, for messages.
pub const ENDPOINT_ALLOWED: &str = "http://HOST:PORT or HOST:PORT (OTLP/gRPC, plain text)";

/// Checks an endpoint and gives it a scheme: without one it means plain gRPC.
///
/// # Errors
/// Says what is wrong, without repeating the text, which may hold a password.
pub fn parse_endpoint(text: &str) -> Result<String, String> {
    let text = text.trim();
    let url = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let uri: Uri = url.parse().map_err(|error| format!("is not a URL ({error})"))?;
    match uri.scheme_str() {
        Some("http") => {}
        Some("https") => return Err("TLS (https) is not built yet".to_owned()),
        _ => return Err("has an unknown scheme".to_owned()),
    }
    let Some(authority) = uri.authority() else {
        return Err("has no host".to_owned());
    };
    if authority.as_str().contains('@') {
        return Err("holds a user name or password; put credentials into headers".to_owned());
    }
    if authority.host().is_empty() {
        return Err("has no host".to_owned());
    }
    if authority.as_str().len() > authority.host().len() && authority.port_u16().unwrap_or(0) == 0 {
        return Err("has a wrong port".to_owned());
    }
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err("has a path or query, which gRPC has not".to_owned());
    }
    Ok(format!("http://{authority}"))
}

/// Checks a header; the name comes back in lower case, as gRPC wants it.
///
/// # Errors
/// Says what is wrong, without the value.
pub(super) fn parse_header(name: &str, value: &str) -> Result<(String, Secret), String> {
    let name = name.to_ascii_lowercase();
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || !name.chars().all(allowed) {
        return Err(
            "the header's name has other characters than letters, digits, `-`, `_` and `.`".to_owned()
        );
    }
    if name.starts_with("grpc-") || name.ends_with("-bin") {
        return Err("names that begin with `grpc-` or end with `-bin` are gRPC's own".to_owned());
    }
    if !value.bytes().all(|byte| (0x20..=0x7e).contains(&byte)) {
        return Err("the header's value has characters other than printable ASCII".to_owned());
    }
    Ok((name, Secret::new(value)))
}

/// Reads a duration within `range`.
pub(crate) fn duration_in(text: &str, range: &RangeInclusive<Duration>) -> Result<Duration, String> {
    let value = duration::parse(text)?;
    if range.contains(&value) {
        return Ok(value);
    }
    let (low, high) = (duration::format(*range.start()), duration::format(*range.end()));
    Err(format!("`{text}` is out of range; allowed: {low} to {high}"))
}

/// Keys of the section.
pub(super) const KEYS: [&str; 7] =
    ["endpoint", "headers", "compression", "timeout", "interval", "retry_on_failure", "sending_queue"];

/// Reads the section over `into`.
pub(super) fn read(reader: &mut Reader<'_>, section: &Section<'_>, into: &mut Export) {
    reader.value(section, "endpoint", &mut into.endpoint, ENDPOINT_ALLOWED, parse_endpoint);
    reader.headers(section, "headers", &mut into.headers, parse_header);
    reader.value(section, "compression", &mut into.compression, "none, gzip", str::parse);
    reader.value(section, "timeout", &mut into.timeout, "", |text| duration_in(text, &TIMEOUT));
    reader.value(section, "interval", &mut into.interval, "", |text| duration_in(text, &INTERVAL));

    let retry = &mut into.retry_on_failure;
    let keys = ["enabled", "initial_interval", "max_interval", "max_elapsed_time"];
    if let Some(inner) = reader.section(section, "retry_on_failure", &keys) {
        reader.value(&inner, "enabled", &mut retry.enabled, "true, false", |text| {
            text.parse().map_err(|_| format!("`{text}` is neither true nor false"))
        });
        let backoff = |text: &str| duration_in(text, &BACKOFF);
        reader.value(&inner, "initial_interval", &mut retry.initial_interval, "", backoff);
        reader.value(&inner, "max_interval", &mut retry.max_interval, "", backoff);
        reader.value(&inner, "max_elapsed_time", &mut retry.max_elapsed_time, "", |text| {
            duration_in(text, &MAX_ELAPSED)
        });
        if retry.initial_interval > retry.max_interval {
            let problem = format!(
                "initial_interval ({}) is longer than max_interval ({})",
                duration::format(retry.initial_interval),
                duration::format(retry.max_interval)
            );
            reader.fault_at(&inner, "initial_interval", problem);
        }
    }
    if let Some(inner) = reader.section(section, "sending_queue", &["queue_size"]) {
        let queue = &mut into.sending_queue;
        let allowed = "a whole number from 1 to 65536 (requests)";
        reader.value(&inner, "queue_size", &mut queue.queue_size, allowed, |text| number(text, &QUEUE_SIZE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_without_scheme_means_plain_grpc() {
        let cases = [
            ("collector:4317", "http://collector:4317"),
            ("http://[::1]:4317/", "http://[::1]:4317"),
            ("localhost", "http://localhost"),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_endpoint(text).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn wrong_endpoints_are_refused_without_being_repeated() {
        for text in [
            "",
            "https://c:4317",
            "unix:///sock",
            "http://me:pass@c",
            "http://c:4317/v1",
            "http://c:99999",
            "c:0",
            "c:",
            "a b",
        ] {
            let message = parse_endpoint(text).unwrap_err();
            assert!(!message.contains("pass@"), "{message}");
        }
    }

    #[test]
    fn headers_names_are_checked_and_their_values_not_told() {
        assert_eq!(parse_header("X-Key", "v").map(|(name, _)| name).as_deref(), Ok("x-key"));
        for (name, value) in [("", "v"), ("a b", "v"), ("x-bin", "v"), ("grpc-x", "v"), ("x", "tell\n")] {
            assert!(!parse_header(name, value).unwrap_err().contains("tell"), "{name}");
        }
    }
}
