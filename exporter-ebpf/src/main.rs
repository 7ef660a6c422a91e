//! Entry points of the eBPF programs. The work is in `sample.rs` and `process_event.rs`.
//!
//! Hash maps are only looked up here, never updated: an update from the perf or scheduler context
//! may hang a machine. Userspace inserts; the programs write to arrays and to the ring buffers.
#![no_std]
#![no_main]

#[cfg(target_arch = "bpf")]
mod arch;
#[cfg(target_arch = "bpf")]
mod maps;
#[cfg(target_arch = "bpf")]
mod process_event;
#[cfg(target_arch = "bpf")]
mod read;
#[cfg(target_arch = "bpf")]
mod sample;
#[cfg(target_arch = "bpf")]
mod task;

#[cfg(target_arch = "bpf")]
mod programs {
    use aya_ebpf::macros::{perf_event, raw_tracepoint};
    use aya_ebpf::programs::{PerfEventContext, RawTracePointContext};

    /// One period of the CPU clock has passed on this CPU.
    #[perf_event]
    pub fn on_cpu_sample(context: PerfEventContext) -> u32 {
        crate::sample::on_cpu(&context);
        0
    }

    /// `sched_process_exec(task, old_pid, binprm)`.
    #[raw_tracepoint(tracepoint = "sched_process_exec")]
    pub fn process_exec(context: RawTracePointContext) -> i32 {
        crate::process_event::exec(&context);
        0
    }

    /// `sched_process_fork(parent, child)`.
    #[raw_tracepoint(tracepoint = "sched_process_fork")]
    pub fn process_fork(context: RawTracePointContext) -> i32 {
        crate::process_event::fork(&context);
        0
    }

    /// `sched_process_exit(task)`.
    #[raw_tracepoint(tracepoint = "sched_process_exit")]
    pub fn process_exit(context: RawTracePointContext) -> i32 {
        crate::process_event::exit(&context);
        0
    }
}

#[cfg(target_arch = "bpf")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // Never linked: the build fails if the object holds a panic.
    loop {}
}

#[cfg(target_arch = "bpf")]
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

#[cfg(not(target_arch = "bpf"))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
