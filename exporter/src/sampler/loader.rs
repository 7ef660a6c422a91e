//! Loads the eBPF object into the kernel and attaches its programs. Dropping [`Sampler`] detaches
//! and unloads everything: programs and maps are held by descriptors only, nothing is pinned.

use std::os::unix::fs::MetadataExt;

use aya::maps::{HashMap, MapData, PerCpuArray, RingBuf};
use aya::programs::perf_event::{
    PerfEventConfig, PerfEventLinkId, PerfEventScope, SamplePolicy, SoftwareEvent,
};
use aya::programs::{PerfEvent, ProgramError, RawTracePoint};
use aya::{Ebpf, EbpfError, EbpfLoader};
use exporter_common::python::PythonProcess;

use crate::sampler::kernel_offsets::{KernelOffsets, OffsetError};
use crate::sys::wire::MapValue;

/// The programs, built by `cargo xtask build-ebpf`.
static OBJECT: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("CARGO_MANIFEST_DIR"), "/bpf/exporter-ebpf.o"));

/// Lines of the verifier's last words that a message shows.
const VERIFIER_LINES: usize = 4;

/// Tracepoint programs: (program, tracepoint).
const TRACEPOINTS: [(&str, &str); 3] = [
    ("process_exec", "sched_process_exec"),
    ("process_fork", "sched_process_fork"),
    ("process_exit", "sched_process_exit"),
];

/// Why sampling cannot start.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The kernel says no for lack of privilege.
    #[error(
        "not permitted to {action}: it needs CAP_BPF and CAP_PERFMON (CAP_SYS_ADMIN before 5.8) and \
         CAP_SYS_PTRACE; run it as root, or grant them: docker `--cap-add`, compose `cap_add`, \
         Kubernetes `securityContext.capabilities.add`"
    )]
    NotPermitted {
        /// What was tried.
        action: &'static str,
    },
    /// Kernel type information.
    #[error(transparent)]
    Offsets(#[from] OffsetError),
    /// A program was refused.
    #[error(
        "the kernel refuses program {program}: {reason}; please report it with the kernel version (uname -r)"
    )]
    Refused {
        /// Program name.
        program: &'static str,
        /// The verifier's last lines, or the system's error.
        reason: String,
    },
    /// Anything else on the way.
    #[error("cannot {action}: {reason}")]
    Other {
        /// What was tried.
        action: &'static str,
        /// What came of it.
        reason: String,
    },
}

/// The programs in the kernel; dropping them detaches and unloads them.
pub struct Programs {
    ebpf: Ebpf,
    /// Perf events that are open, one for each CPU; none while sampling is paused.
    events: Vec<PerfEventLinkId>,
    period_ns: u64,
}

/// Programs in the kernel, and the maps through which to talk to them.
pub struct Sampler {
    /// The programs.
    pub programs: Programs,
    /// Processes whose stacks are walked, by pid.
    pub processes: HashMap<MapData, u32, MapValue<PythonProcess>>,
    /// Samples and code records.
    pub records: RingBuf<MapData>,
    /// Process events.
    pub events: RingBuf<MapData>,
    /// Counters.
    pub counters: PerCpuArray<MapData, u64>,
}

impl Sampler {
    /// Loads the programs and listens to process events; samples nothing yet.
    ///
    /// # Errors
    /// [`LoadError`]
    pub fn load(period_ns: u64) -> Result<Self, LoadError> {
        let offsets = KernelOffsets::read()?;
        let namespace = std::fs::metadata("/proc/self/ns/pid")
            .map_err(|e| other("see the own pid namespace (is /proc mounted?)", &e))?
            .ino();
        let cpus = aya::util::nr_cpus().map_err(|(_, e)| other("count the CPUs", &e))?;
        let mut loader = EbpfLoader::new();
        let globals = [
            ("PERIOD_NS", &period_ns),
            ("PID_NAMESPACE", &namespace),
            ("TASK_THREAD_POINTER", &offsets.task_thread_pointer),
            ("TASK_GROUP_LEADER", &offsets.task_group_leader),
            ("TASK_THREAD_PID", &offsets.task_thread_pid),
            ("TASK_START", &offsets.task_start),
            ("TASK_SIGNAL", &offsets.task_signal),
            ("SIGNAL_LIVE", &offsets.signal_live),
            ("PID_LEVEL", &offsets.pid_level),
            ("PID_NUMBERS", &offsets.pid_numbers),
            ("NAMESPACE_INODE", &offsets.namespace_inode),
        ];
        for (name, value) in globals {
            loader.override_global(name, value, true);
        }
        loader.map_max_entries("SCRATCH", cpus.get());
        let mut ebpf = loader.load(OBJECT).map_err(load_error)?;
        for (program, tracepoint) in TRACEPOINTS {
            let handle: &mut RawTracePoint = program_of(&mut ebpf, program)?;
            handle.load().map_err(|e| refused(program, e))?;
            handle.attach(tracepoint).map_err(|e| refused(program, e))?;
        }
        let sample: &mut PerfEvent = program_of(&mut ebpf, "on_cpu_sample")?;
        sample.load().map_err(|e| refused("on_cpu_sample", e))?;
        let mut take =
            |name: &'static str| ebpf.take_map(name).ok_or_else(|| other("find a map of the object", &name));
        let (processes, records, events, counters) =
            (take("PROCESSES")?, take("RECORDS")?, take("EVENTS")?, take("COUNTERS")?);
        let wrong = |e: aya::maps::MapError| other("open a map", &e);
        Ok(Self {
            processes: HashMap::try_from(processes).map_err(wrong)?,
            records: RingBuf::try_from(records).map_err(wrong)?,
            events: RingBuf::try_from(events).map_err(wrong)?,
            counters: PerCpuArray::try_from(counters).map_err(wrong)?,
            programs: Programs { ebpf, events: Vec::new(), period_ns },
        })
    }
}

impl Programs {
    /// Starts sampling on every CPU that is online, once each period of CPU time; nothing happens when it
    /// goes on already.
    ///
    /// # Errors
    /// [`LoadError`]
    pub fn attach(&mut self) -> Result<(), LoadError> {
        if !self.events.is_empty() {
            return Ok(());
        }
        let cpus = aya::util::online_cpus().map_err(|(_, e)| other("list the CPUs online", &e))?;
        let sample: &mut PerfEvent = program_of(&mut self.ebpf, "on_cpu_sample")?;
        for cpu in cpus {
            let event = sample
                .attach(
                    PerfEventConfig::Software(SoftwareEvent::CpuClock),
                    PerfEventScope::AllProcessesOneCpu { cpu },
                    SamplePolicy::Period(self.period_ns),
                    false,
                )
                .map_err(|e| refused("on_cpu_sample", e))?;
            self.events.push(event);
        }
        Ok(())
    }

    /// Closes the perf events, so that nothing is interrupted any more; processes are still followed.
    ///
    /// # Errors
    /// [`LoadError`]
    pub fn detach(&mut self) -> Result<(), LoadError> {
        let sample: &mut PerfEvent = program_of(&mut self.ebpf, "on_cpu_sample")?;
        for event in self.events.drain(..) {
            sample.detach(event).map_err(|e| other("close a perf event", &e))?;
        }
        Ok(())
    }
}

fn program_of<'a, T>(ebpf: &'a mut Ebpf, name: &'static str) -> Result<&'a mut T, LoadError>
where
    &'a mut T: TryFrom<&'a mut aya::programs::Program, Error = ProgramError>,
{
    ebpf.program_mut(name)
        .ok_or_else(|| other("find a program of the object", &name))?
        .try_into()
        .map_err(|e| other("use a program of the object", &e))
}

fn other(action: &'static str, reason: &dyn std::fmt::Display) -> LoadError {
    LoadError::Other { action, reason: reason.to_string() }
}

fn not_permitted(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut current = Some(error);
    while let Some(e) = current {
        if let Some(io) = e.downcast_ref::<std::io::Error>()
            && io.kind() == std::io::ErrorKind::PermissionDenied
        {
            return true;
        }
        current = e.source();
    }
    false
}

fn load_error(error: EbpfError) -> LoadError {
    if not_permitted(&error) {
        return LoadError::NotPermitted { action: "create BPF maps" };
    }
    other("create the BPF maps", &error)
}

fn refused(program: &'static str, error: ProgramError) -> LoadError {
    if not_permitted(&error) {
        return LoadError::NotPermitted { action: "load BPF programs and open perf events" };
    }
    let reason = match &error {
        ProgramError::LoadError { io_error, verifier_log } => {
            let log = verifier_log.to_string();
            let lines: Vec<&str> = log.lines().filter(|l| !l.trim().is_empty()).collect();
            format!("{io_error}: {}", lines[lines.len().saturating_sub(VERIFIER_LINES)..].join(" | "))
        }
        other => other.to_string(),
    };
    LoadError::Refused { program, reason }
}
