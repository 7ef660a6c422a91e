//! A process as OTLP Resource: inline keys and strings, which every receiver reads.

use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;

use crate::process::identity::ProcessIdentity;

/// The Resource of a process. Empty values are left out; a further attribute of the identity replaces
/// one of the contract that has the same key, since configuration knows better.
pub fn resource(process: &ProcessIdentity) -> Resource {
    let mut attributes = vec![
        int("process.pid", i64::from(process.pid)),
        text("process.creation.time", &iso8601(process.start_unix_ns)),
    ];
    let mut optional = |key, value: Option<&str>| {
        attributes.extend(value.filter(|v| !v.is_empty()).map(|v| text(key, v)));
    };
    optional("process.executable.name", Some(&process.executable_name));
    optional("process.executable.path", Some(&process.executable_path));
    if let Some(version) = &process.python_version {
        optional("process.runtime.name", Some("cpython"));
        optional("process.runtime.version", Some(version));
    }
    optional("service.name", Some(&process.service_name));
    optional("container.id", process.container_id.as_deref());
    for (key, value) in &process.attributes {
        attributes.retain(|present| present.key.as_str() != &**key);
        attributes.push(text(key, value));
    }
    Resource { attributes, ..Default::default() }
}

fn text(key: &str, value: &str) -> KeyValue {
    key_value(key, any_value::Value::StringValue(value.to_owned()))
}

fn int(key: &str, value: i64) -> KeyValue {
    key_value(key, any_value::Value::IntValue(value))
}

fn key_value(key: &str, value: any_value::Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..Default::default() }
}

/// `2026-11-29T23:10:21.042Z`, to the millisecond.
pub fn iso8601(unix_ns: u64) -> String {
    let millis = unix_ns / 1_000_000 % 1_000;
    let seconds = unix_ns / 1_000_000_000;
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // Days → year, month, day in the proleptic Gregorian calendar, counting years from March
    // (Howard Hinnant, "chrono-compatible low-level date algorithms", civil_from_days).
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otlp::fixture;

    fn keys(resource: &Resource) -> Vec<&str> {
        resource.attributes.iter().map(|kv| kv.key.as_str()).collect()
    }

    #[test]
    fn times_are_iso_8601() {
        assert_eq!(iso8601(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso8601(951_782_400_000_000_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(iso8601(1_709_251_199_999_000_000), "2024-02-29T23:59:59.999Z");
        assert_eq!(iso8601(1_796_081_421_042_000_000), "2026-11-30T23:30:21.042Z");
    }

    #[test]
    fn a_python_process_has_its_runtime() {
        let resource = resource(&fixture::process(7, Some("3.12.1")));
        assert!(keys(&resource).contains(&"process.runtime.version"), "{:?}", keys(&resource));
    }

    #[test]
    fn another_process_has_no_runtime_and_no_empty_value() {
        let mut process = fixture::process(7, None);
        process.executable_path = "".into();
        assert_eq!(
            keys(&resource(&process)),
            ["process.pid", "process.creation.time", "process.executable.name", "service.name"]
        );
    }

    #[test]
    fn a_configured_attribute_replaces_ours() {
        let mut process = fixture::process(7, None);
        process.attributes = vec![("service.name".into(), "shop".into())];
        let resource = resource(&process);
        let found: Vec<_> = resource.attributes.iter().filter(|kv| kv.key == "service.name").collect();
        assert_eq!(found, [&text("service.name", "shop")]);
    }
}
