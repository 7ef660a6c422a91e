//! Reading the target's memory, and index masks that LLVM may not drop.

/// The memory of the process whose stack is walked.
pub trait Memory {
    /// Fills `to` from `address` of the target on; false when any of it is unreadable.
    fn read(&self, to: &mut [u8], address: u64) -> bool;

    /// One 64-bit word.
    #[inline(always)]
    fn word(&self, address: u64) -> Option<u64> {
        let mut value = [0u8; 8];
        if self.read(&mut value, address) { Some(u64::from_ne_bytes(value)) } else { None }
    }

    /// One 32-bit word.
    #[inline(always)]
    fn half(&self, address: u64) -> Option<u32> {
        let mut value = [0u8; 4];
        if self.read(&mut value, address) { Some(u32::from_ne_bytes(value)) } else { None }
    }
}

/// `length` bytes from `to` on as a slice, for a read.
///
/// # Safety
/// They must be writable and nobody else's meanwhile.
#[inline(always)]
pub unsafe fn room<'a>(to: *mut u8, length: u64) -> &'a mut [u8] {
    // SAFETY: as the caller promises.
    unsafe { core::slice::from_raw_parts_mut(to, length as usize) }
}

/// `value & M`, in a form that LLVM cannot drop because an earlier branch implied it: the verifier
/// needs the mask on the very register that is used.
#[inline(always)]
pub fn mask<const M: u32>(value: usize) -> usize {
    #[cfg(target_arch = "bpf")]
    {
        let mut result = value as u64;
        // SAFETY: a register operation without memory access.
        unsafe {
            core::arch::asm!("{r} &= {m}", r = inout(reg) result, m = const M, options(pure, nomem, nostack));
        }
        result as usize
    }
    #[cfg(not(target_arch = "bpf"))]
    {
        value & M as usize
    }
}

/// The smaller of `value` and `limit`, in a form that LLVM cannot move to another copy of the value.
#[inline(always)]
pub fn at_most<const LIMIT: u32>(value: u64) -> u64 {
    #[cfg(target_arch = "bpf")]
    {
        let mut result = value;
        // SAFETY: register operations without memory access.
        unsafe {
            core::arch::asm!("if {r} <= {m} goto +1", "{r} = {m}", r = inout(reg) result, m = const LIMIT,
                options(pure, nomem, nostack));
        }
        result
    }
    #[cfg(not(target_arch = "bpf"))]
    {
        if value > LIMIT as u64 { LIMIT as u64 } else { value }
    }
}

/// 64-bit finalizer of the MurmurHash3 family: every input bit changes every output bit.
#[inline(always)]
pub fn mix(mut value: u64) -> u64 {
    value ^= value >> 33;
    value = value.wrapping_mul(0xff51_afd7_ed55_8ccd);
    value ^= value >> 33;
    value = value.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    value ^ (value >> 33)
}
