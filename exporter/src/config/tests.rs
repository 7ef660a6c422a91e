//! Whole files in, configurations or faults out.

use std::path::Path;
use std::time::Duration;

use super::load::{load, load_text};
use super::{Config, Fault, Native, Origin};

fn nothing(_name: &str) -> Option<String> {
    None
}

fn faults(text: &str) -> Vec<Fault> {
    load_text("c.yaml", text, &nothing).expect_err("the text has faults")
}

#[test]
fn an_empty_file_gives_the_defaults() {
    assert_eq!(load_text("c.yaml", "", &nothing), Ok(Config::default()));
    assert_eq!(load_text("c.yaml", "sampling:\nexport:\n", &nothing), Ok(Config::default()));
}

#[test]
fn every_key_is_read() {
    let text = "sampling: {rate: 49, native: none}\nprocesses: {pids: [3, 4]}\nexport:\n  endpoint: c:1\n  \
        headers: {Authorization: Bearer t}\n  compression: gzip\n  timeout: 2s\n  interval: 500ms\n  retry_on_failure: \
        {enabled: false, initial_interval: 1s, max_interval: 2s, max_elapsed_time: 1m}\n  sending_queue: {queue_size: 9}\n";
    let config = load_text("c.yaml", text, &nothing).unwrap();
    assert_eq!((config.sampling.rate, config.sampling.native), (49, Native::None));
    assert_eq!(config.processes.pids, [3, 4]);
    let export = &config.export;
    assert_eq!((export.endpoint.as_str(), export.compression.as_str()), ("http://c:1", "gzip"));
    assert_eq!((export.timeout, export.interval), (Duration::from_secs(2), Duration::from_millis(500)));
    assert_eq!(export.headers["authorization"].expose(), "Bearer t");
    assert!(!export.retry_on_failure.enabled);
    assert_eq!(export.retry_on_failure.max_elapsed_time, Duration::from_secs(60));
    assert_eq!(export.sending_queue.queue_size, 9);
    assert_eq!(config.origins.get("export.interval"), Origin::File { line: 8 });
}

#[test]
fn all_faults_are_found_together_each_with_its_line() {
    let text = "sampling:\n  rate: 0\n  native: all\n  speed: 3\nprocesses:\n  pids: [1, x]\nexport:\n  \
        timeout: 5\n  endpoint: https://c\n  retry_on_failure:\n    initial_interval: 40s\n  rate: 1\nextra: 1\n";
    let found: Vec<(usize, String)> =
        faults(text).into_iter().map(|fault| (fault.line.unwrap_or(0), fault.key)).collect();
    let expected = [
        (2, "sampling.rate"),
        (3, "sampling.native"),
        (4, "sampling.speed"),
        (6, "processes.pids"),
        (8, "export.timeout"),
        (9, "export.endpoint"),
        (11, "export.retry_on_failure.initial_interval"),
        (12, "export.rate"),
        (13, "extra"),
    ];
    assert_eq!(found, expected.map(|(line, key)| (line, key.to_owned())));
}

#[test]
fn a_fault_reads_as_file_line_key_problem_and_what_is_allowed() {
    assert_eq!(
        faults("sampling:\n  rate: 2000\n")[0].to_string(),
        "c.yaml:2: sampling.rate: `2000` is out of range; allowed: a whole number from 1 to 1000 (samples a second)"
    );
    assert_eq!(
        faults("sampling: {speed: 1}")[0].to_string(),
        "c.yaml:1: sampling.speed: unknown key; allowed: rate, native"
    );
    assert!(faults("sampling: {native: leaf}")[0].to_string().contains("not built yet"));
}

#[test]
fn wrong_shapes_and_repeated_keys_are_faults() {
    for text in [
        "- 1",
        "sampling: 3",
        "sampling: {rate: [1]}",
        "sampling: {rate: }",
        "sampling: {rate: 1, rate: 2}",
        "processes: {pids: 5}",
        "export: {headers: [a]}",
        "export: {headers: {A: x, a: y}}",
        "export: [",
    ] {
        assert_eq!(faults(text).len(), 1, "{text}");
    }
}

#[test]
fn an_undefined_variable_is_named_with_its_line() {
    let fault = &faults("export:\n  endpoint: ${env:COLLECTOR}\n")[0];
    assert_eq!((fault.line, fault.key.as_str()), (Some(2), "export.endpoint"));
    assert!(fault.problem.contains("COLLECTOR is not defined"));
    let config = load_text("c.yaml", "sampling: {rate: \"${env:RATE:-7}\"}", &nothing).unwrap();
    assert_eq!(config.sampling.rate, 7);
}

#[test]
fn the_effective_configuration_loads_again_and_hides_secrets() {
    let text = "sampling:\n  rate: 97\nexport:\n  headers: {x-key: s3cr3t}\n";
    let config = load_text("c.yaml", text, &nothing).unwrap();
    let shown = config.to_string();
    assert!(shown.contains("rate: 97  # line 2") && shown.contains("timeout: 10s  # default"), "{shown}");
    assert!(!shown.contains("s3cr3t") && !format!("{config:?}").contains("s3cr3t"));
    let again = load_text("again.yaml", &shown, &nothing).unwrap();
    assert_eq!((again.sampling, again.processes), (config.sampling, config.processes));
    assert_eq!(again.export.retry_on_failure, config.export.retry_on_failure);
}

#[test]
fn no_fault_repeats_a_headers_value() {
    for value in
        ["${s3cr3t}", "${env:s3-cr3t}", "*s3cr3t", "!s3cr3t x", "[s3cr3t]", "\"s3cr3t\\u00e9\"", "&s3cr3t *x"]
    {
        for fault in faults(&format!("export:\n  headers:\n    key: {value}\n")) {
            let shown = format!("{fault} {fault:?}");
            assert!(!shown.contains("s3cr3t") && !shown.contains("s3-cr3t"), "{shown}");
        }
    }
}

#[test]
fn a_missing_file_is_one_fault_that_names_it() {
    let faults = load(Path::new("/nonexistent/c.yaml")).unwrap_err();
    assert!(faults.len() == 1 && faults[0].to_string().starts_with("/nonexistent/c.yaml: cannot open"));
}

fn shipped(name: &str) -> (String, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config").join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    (path.display().to_string(), text)
}

#[test]
fn every_shipped_file_loads() {
    for name in ["exporter.yaml", "minimal.yaml", "compose.yaml"] {
        let (file, text) = shipped(name);
        if let Err(faults) = load_text(&file, &text, &nothing) {
            panic!("{faults:?}");
        }
    }
}

#[test]
fn exporter_yaml_has_every_key_at_its_default() {
    let (file, text) = shipped("exporter.yaml");
    let config = load_text(&file, &text, &nothing).unwrap();
    assert_eq!(Config { origins: super::Origins::default(), ..config.clone() }, Config::default());
    assert!(!config.to_string().contains("# default"), "{config}");
}

#[test]
fn the_schema_knows_the_same_keys() {
    let (_, text) = shipped("exporter.schema.json");
    let schema: serde_json::Value = serde_json::from_str(&text).unwrap();
    let keys = |pointer: &str| -> Vec<String> {
        let properties = schema.pointer(pointer).and_then(|node| node.as_object()).unwrap();
        properties.keys().cloned().collect()
    };
    let mut known = super::export::KEYS.map(str::to_owned);
    known.sort();
    assert_eq!(keys("/properties/export/properties"), known);
    assert_eq!(keys("/properties"), ["export", "processes", "sampling"]);
}
