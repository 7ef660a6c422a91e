//! What depends on the processor: registers of the interrupted context (x86-64).

use aya_ebpf::EbpfContext;
use aya_ebpf::bindings::bpf_perf_event_data;
use aya_ebpf::programs::PerfEventContext;

/// Privilege bits of the code segment: 3 is user mode.
const USER_MODE: u64 = 3;

/// Whether the sample hit in kernel mode.
#[inline(always)]
pub fn in_kernel(context: &PerfEventContext) -> bool {
    // SAFETY: the context of a perf_event program is a `bpf_perf_event_data`; the verifier checks the field.
    unsafe { (*context.as_ptr().cast::<bpf_perf_event_data>()).regs.cs & USER_MODE != USER_MODE }
}
