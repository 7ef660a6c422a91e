//! The effective configuration as YAML, each value with its origin, headers' values masked.

use std::fmt;

use super::Config;
use super::duration::format as span;
use super::secret::MASK;

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Destructured, so that a new section or key must be shown too.
        let Self { sampling, processes, export, origins, warnings: _ } = self;
        let of = |key: &str| origins.get(key);
        writeln!(f, "sampling:")?;
        writeln!(f, "  rate: {}  # {}", sampling.rate, of("sampling.rate"))?;
        writeln!(f, "  native: {}  # {}", sampling.native.as_str(), of("sampling.native"))?;

        writeln!(f, "processes:")?;
        let pids: Vec<String> = processes.pids.iter().map(u32::to_string).collect();
        writeln!(f, "  pids: [{}]  # {}", pids.join(", "), of("processes.pids"))?;

        writeln!(f, "export:")?;
        writeln!(f, "  endpoint: {}  # {}", export.endpoint, of("export.endpoint"))?;
        if export.headers.is_empty() {
            writeln!(f, "  headers: {{}}  # {}", of("export.headers"))?;
        } else {
            writeln!(f, "  headers:  # {}", of("export.headers"))?;
            for name in export.headers.keys() {
                writeln!(f, "    {name}: \"{MASK}\"")?;
            }
        }
        writeln!(f, "  compression: {}  # {}", export.compression.as_str(), of("export.compression"))?;
        writeln!(f, "  timeout: {}  # {}", span(export.timeout), of("export.timeout"))?;
        writeln!(f, "  interval: {}  # {}", span(export.interval), of("export.interval"))?;

        let retry = &export.retry_on_failure;
        let of = |key: &str| origins.get(&format!("export.retry_on_failure.{key}"));
        writeln!(f, "  retry_on_failure:")?;
        writeln!(f, "    enabled: {}  # {}", retry.enabled, of("enabled"))?;
        writeln!(f, "    initial_interval: {}  # {}", span(retry.initial_interval), of("initial_interval"))?;
        writeln!(f, "    max_interval: {}  # {}", span(retry.max_interval), of("max_interval"))?;
        writeln!(f, "    max_elapsed_time: {}  # {}", span(retry.max_elapsed_time), of("max_elapsed_time"))?;

        let origin = origins.get("export.sending_queue.queue_size");
        writeln!(f, "  sending_queue:")?;
        writeln!(f, "    queue_size: {}  # {origin}", export.sending_queue.queue_size)
    }
}
