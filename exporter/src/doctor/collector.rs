//! Whether the Collector can be reached: a TCP connection, nothing is sent.

use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use super::{Check, Verdict};

const LIMIT: Duration = Duration::from_secs(2);

/// Connects to `endpoint`, `http://HOST:PORT`.
#[must_use]
pub fn check(endpoint: &str) -> Check {
    let (verdict, found) = match connect(endpoint) {
        Ok(()) => (Verdict::Good, "connected".to_owned()),
        Err(error) => (Verdict::Bad, error.to_string()),
    };
    let cure = "start a Collector (or `otel-profile-exporter receive`) there, or set \
                OTEL_EXPORTER_OTLP_ENDPOINT";
    Check::new(format!("Collector at {endpoint}"), verdict, found, "a TCP connection within 2 s", cure)
}

fn connect(endpoint: &str) -> std::io::Result<()> {
    let mut last = std::io::Error::other("the name has no address");
    for address in authority(endpoint).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, LIMIT) {
            Ok(_) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Host and port; plain HTTP's port where there is none.
fn authority(endpoint: &str) -> String {
    let rest = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest).trim_end_matches('/');
    let after_host = rest.rsplit(']').next().unwrap_or(rest);
    if after_host.contains(':') { rest.to_owned() } else { format!("{rest}:80") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities() {
        assert_eq!(authority("http://c:4317"), "c:4317");
        assert_eq!(authority("http://[::1]"), "[::1]:80");
        assert_eq!(authority("http://c/"), "c:80");
    }
}
