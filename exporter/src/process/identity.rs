//! Who a process is: what becomes the OTLP Resource.

use std::{
    fs::File,
    io::{self, Read as _},
    sync::Arc,
};

use super::{container, service, stat};

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

/// Bytes of environment or command line looked at; the kernel's own limit on both is far above, but
/// the settings named here are short.
const TEXT_LIMIT: u64 = 4 << 20;

impl ProcessIdentity {
    /// Reads who the process is. What cannot be read (a foreign user's environment, say) is left
    /// out; `python_version` is that of the runtime found in it, if any.
    ///
    /// # Errors
    ///
    /// When the process is gone.
    pub fn read(pid: u32, generation: u32, python_version: Option<&str>) -> io::Result<Self> {
        let start_ticks = stat::read(pid)?.start_ticks;
        let path =
            stat::executable_path(pid).map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
        let path = path.strip_suffix(" (deleted)").unwrap_or(&path);
        let name = path.rsplit('/').next().unwrap_or(path);
        let settings = service::from_environ(&read_text(pid, "environ"));
        let is_python = name.starts_with("python");
        let script = || is_python.then(|| service::script_name(&read_text(pid, "cmdline"))).flatten();
        let service_name = settings.name.or_else(script).unwrap_or_else(|| name.to_owned());
        let text = |file| String::from_utf8_lossy(&read_text(pid, file)).into_owned();
        Ok(Self {
            pid,
            generation,
            start_unix_ns: stat::start_unix_ns(start_ticks),
            executable_name: name.into(),
            executable_path: path.into(),
            service_name: service_name.into(),
            container_id: container::container_id(&text("cgroup"), &text("mountinfo")).map(Into::into),
            python_version: python_version.map(Into::into),
            attributes: settings
                .attributes
                .into_iter()
                .map(|(key, value)| (key.into(), value.into()))
                .collect(),
        })
    }
}

/// A file of `/proc/PID`, empty where it cannot be read.
fn read_text(pid: u32, file: &str) -> Vec<u8> {
    let mut text = Vec::new();
    if let Ok(file) = File::open(format!("/proc/{pid}/{file}"))
        && file.take(TEXT_LIMIT).read_to_end(&mut text).is_err()
    {
        text.clear();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_identity() {
        let own = ProcessIdentity::read(std::process::id(), 7, None).unwrap();
        assert_eq!(own.generation, 7);
        assert!(own.executable_path.ends_with(&*own.executable_name));
        assert!(!own.service_name.is_empty());
        assert!(ProcessIdentity::read(u32::MAX, 1, None).is_err());
    }
}
