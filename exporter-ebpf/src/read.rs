//! The only calls of `bpf_probe_read_*`.

use core::ffi::c_void;

use aya_ebpf::helpers::generated::{bpf_probe_read_kernel, bpf_probe_read_user};
use exporter_ebpf::memory::Memory;

/// The memory of the current task.
pub struct User;

impl Memory for User {
    #[inline(always)]
    fn read(&self, to: &mut [u8], address: u64) -> bool {
        let length = to.len() as u32;
        // SAFETY: `to` is writable; the helper checks the user address.
        unsafe {
            bpf_probe_read_user(to.as_mut_ptr().cast::<c_void>(), length, address as *const c_void) == 0
        }
    }
}

/// A 64-bit word of kernel memory, 0 when it cannot be read.
#[inline(always)]
pub fn kernel_word(address: u64) -> u64 {
    let mut value = 0u64;
    // SAFETY: `value` is 8 writable bytes; the helper checks the kernel address.
    unsafe { bpf_probe_read_kernel((&raw mut value).cast::<c_void>(), 8, address as *const c_void) };
    value
}

/// A 32-bit word of kernel memory, 0 when it cannot be read.
#[inline(always)]
pub fn kernel_half(address: u64) -> u32 {
    let mut value = 0u32;
    // SAFETY: as above, 4 bytes.
    unsafe { bpf_probe_read_kernel((&raw mut value).cast::<c_void>(), 4, address as *const c_void) };
    value
}
