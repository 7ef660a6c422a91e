//! OpenTelemetry's environment variables, for keys that neither flag nor file sets.
//!
//! As the specification says: the signal's own variable before the general one, empty is unset, and a
//! value that can not be used is warned about and ignored. Warnings never hold a header's value.

use std::collections::BTreeMap;
use std::time::Duration;

use super::export::{TIMEOUT, duration_in, parse_endpoint, parse_header};
use super::origin::Origin;
use super::placeholder::Variables;
use super::secret::Secret;
use super::{Config, duration};

const ENDPOINT: [&str; 2] = ["OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
const HEADERS: [&str; 2] = ["OTEL_EXPORTER_OTLP_PROFILES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"];
const TIMEOUT_MS: [&str; 2] = ["OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"];
const COMPRESSION: [&str; 2] = ["OTEL_EXPORTER_OTLP_PROFILES_COMPRESSION", "OTEL_EXPORTER_OTLP_COMPRESSION"];
const PROTOCOL: [&str; 2] = ["OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];

/// Fills in what is still at its default.
pub(super) fn apply(config: &mut Config, variables: Variables<'_>) {
    let Config { export, origins, warnings, .. } = config;
    let mut try_set =
        |key: &str, names: [&'static str; 2], set: &mut dyn FnMut(&str) -> Result<(), String>| {
            if origins.get(key) != Origin::Default {
                return;
            }
            for name in names {
                let Some(text) = variables(name).filter(|text| !text.trim().is_empty()) else {
                    continue;
                };
                match set(text.trim()) {
                    Ok(()) => {
                        origins.set(key, Origin::Environment(name));
                        return;
                    }
                    Err(problem) => warnings.push(format!("{name} is ignored: {problem}")),
                }
            }
        };
    try_set("export.endpoint", ENDPOINT, &mut |text| {
        export.endpoint = parse_endpoint(text)?;
        Ok(())
    });
    try_set("export.headers", HEADERS, &mut |text| {
        export.headers = headers(text)?;
        Ok(())
    });
    try_set("export.timeout", TIMEOUT_MS, &mut |text| {
        let millis = text.parse().map_err(|_| format!("`{text}` is not a whole number of milliseconds"))?;
        let written = duration::format(Duration::from_millis(millis));
        export.timeout = duration_in(&written, &TIMEOUT)?;
        Ok(())
    });
    try_set("export.compression", COMPRESSION, &mut |text| {
        export.compression = text.parse().map_err(|problem| format!("{problem}; allowed: none, gzip"))?;
        Ok(())
    });
    let protocol = PROTOCOL.into_iter().find_map(|name| {
        let value = variables(name)?.trim().to_owned();
        (!value.is_empty()).then_some((name, value))
    });
    if let Some((name, value)) = protocol.filter(|(_, value)| value != "grpc") {
        warnings.push(format!("{name} is ignored: `{value}` is not built yet; profiles go by grpc"));
    }
}

/// `key1=value1,key2=value2`, values percent-encoded.
fn headers(text: &str) -> Result<BTreeMap<String, Secret>, String> {
    let mut headers = BTreeMap::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let form = || "not of the form key1=value1,key2=value2 with percent-encoded values".to_owned();
        let (name, value) = pair.split_once('=').ok_or_else(form)?;
        let value = percent_decode(value.trim()).ok_or_else(form)?;
        let (name, value) = parse_header(name.trim(), &value)?;
        headers.insert(name, value);
    }
    Ok(headers)
}

/// The text that `%XX` stands for; `None` when it is not well formed.
fn percent_decode(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let high = char::from(bytes.next()?).to_digit(16)?;
        let low = char::from(bytes.next()?).to_digit(16)?;
        out.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::export::Compression;
    use crate::config::load::load_text;

    fn with(table: &[(&str, &str)], text: &str) -> Config {
        let variables =
            |name: &str| table.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        load_text("c.yaml", text, &variables).unwrap()
    }

    #[test]
    fn the_signals_own_variable_comes_before_the_general_one() {
        let table = [(ENDPOINT[0], "own:1"), (ENDPOINT[1], "general:2"), (TIMEOUT_MS[1], "2500")];
        let config = with(&table, "");
        assert_eq!(config.export.endpoint, "http://own:1");
        assert_eq!(config.export.timeout, Duration::from_millis(2500));
        assert_eq!(config.origins.get("export.endpoint"), Origin::Environment(ENDPOINT[0]));
    }

    #[test]
    fn empty_is_unset_and_the_file_wins() {
        let table = [(ENDPOINT[0], " "), (ENDPOINT[1], "general:2"), (COMPRESSION[0], "gzip")];
        let config = with(&table, "export: {compression: none}");
        assert_eq!(config.export.endpoint, "http://general:2");
        assert_eq!(config.export.compression, Compression::None);
    }

    #[test]
    fn headers_are_percent_decoded_and_stay_secret() {
        let config = with(&[(HEADERS[1], "Authorization=Basic%20s3cr3t, x-b=2")], "");
        assert_eq!(config.export.headers["authorization"].expose(), "Basic s3cr3t");
        assert_eq!(config.export.headers["x-b"].expose(), "2");
        assert!(!format!("{config:?}{config}").contains("s3cr3t"));
    }

    #[test]
    fn what_can_not_be_used_is_warned_about_and_ignored() {
        let table = [
            (COMPRESSION[0], "lz4"),
            (TIMEOUT_MS[0], "5s"),
            (HEADERS[0], "a=s3cr3t%zz"),
            (PROTOCOL[1], "http/json"),
        ];
        let config = with(&table, "");
        assert_eq!(config.export, Config::default().export);
        assert_eq!(config.warnings.len(), 4, "{:?}", config.warnings);
        assert!(!config.warnings.concat().contains("s3cr3t"));
    }
}
