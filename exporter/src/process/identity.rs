//! Who a process is: what becomes the OTLP Resource.

use std::sync::Arc;

/// One generation of a pid.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProcessIdentity {
    /// Process id in the exporter's pid namespace.
    pub pid: u32,
    /// Number of this process among all the exporter has seen.
    pub generation: u32,
    /// Start, nanoseconds since the Unix epoch.
    pub start_unix_ns: u64,
    /// Base name of the executable.
    pub executable_name: Arc<str>,
    /// Path of the executable, as `/proc/PID/exe` has it.
    pub executable_path: Arc<str>,
    /// `service.name`.
    pub service_name: Arc<str>,
    /// `container.id`, where known.
    pub container_id: Option<Arc<str>>,
    /// Version of the Python runtime (`3.12.1`), only for Python processes.
    pub python_version: Option<Arc<str>>,
    /// Further resource attributes, key and value, keys distinct.
    pub attributes: Vec<(Arc<str>, Arc<str>)>,
}
