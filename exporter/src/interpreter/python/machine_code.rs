//! Addresses in the machine code of small exported functions (x86-64). What is read is untrusted: an
//! address found here is checked by what is there.

/// Bytes of `Py_GetVersion` that are looked at: what it formats is passed within them.
pub const VERSION_CODE_BYTES: usize = 192;

/// The variable that a function returns: `mov variable(%rip), %rax; ret` (`PyInterpreterState_Head`,
/// `Python/pystate.c` of CPython v3.6.15).
#[must_use]
pub fn returned(code: &[u8], address: u64) -> Option<u64> {
    let start = if code.starts_with(ENDBR64) { ENDBR64.len() } else { 0 };
    let (displacement, rest) = code.get(start..)?.strip_prefix(b"\x48\x8b\x05")?.split_first_chunk::<4>()?;
    rest.starts_with(b"\xc3").then(|| relative(address, start + 7, *displacement))
}

/// The first 32-bit variable that is loaded as an argument: `mov variable(%rip), %edi`
/// (`PyGILState_GetThisThreadState`, the same file: `autoTLSkey`).
#[must_use]
pub fn first_argument(code: &[u8], address: u64) -> Option<u64> {
    let at = code.windows(2).position(|bytes| bytes == b"\x8b\x3d")?;
    Some(relative(address, at + 6, *code.get(at + 2..)?.first_chunk()?))
}

/// Every address that the code takes: `lea x(%rip), %reg` and `mov $x, %reg32`.
pub fn addresses(code: &[u8], address: u64) -> impl Iterator<Item = u64> + '_ {
    code.windows(7).enumerate().flat_map(move |(at, bytes)| {
        let &[first, second, third, a, b, c, d] = bytes.first_chunk().unwrap_or(&[0; 7]);
        let lea = matches!((first, second, third & 0xc7), (0x48 | 0x4c, 0x8d, 0x05))
            .then(|| relative(address, at + 7, [a, b, c, d]));
        let load = matches!(first, 0xb8..=0xbf).then(|| u32::from_le_bytes([second, third, a, b]).into());
        [lea, load].into_iter().flatten()
    })
}

const ENDBR64: &[u8] = b"\xf3\x0f\x1e\xfa";

fn relative(address: u64, next: usize, displacement: [u8; 4]) -> u64 {
    address.wrapping_add(next as u64).wrapping_add_signed(i32::from_le_bytes(displacement).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_3_6() {
        assert_eq!(returned(b"\x48\x8b\x05\x00\x01\x00\x00\xc3", 0x1000), Some(0x1107));
        assert_eq!(returned(b"\xf3\x0f\x1e\xfa\x48\x8b\x05\x00\x01\x00\x00\xc3", 0x1000), Some(0x110b));
        assert_eq!(returned(b"\x48\x8b\x05\x00\x01\x00\x00\x90", 0x1000), None);
        assert_eq!(returned(b"", 0), None);
        assert_eq!(first_argument(b"\x48\x83\x3d\x8b\x3d\xfe\xff\xff\xff", 0x1000), Some(0x1007));
        assert_eq!(first_argument(b"\x8b\x3d\x01", 0), None);
    }

    #[test]
    fn addresses_that_code_takes() {
        let code =
            b"\x48\x8d\x15\x10\x00\x00\x00\x4c\x8d\x05\x20\x00\x00\x00\xbe\x78\x56\x34\x12\xc3\x90\x90";
        let found: Vec<u64> = addresses(code, 0x1000).collect();
        assert!([0x1017, 0x102e, 0x1234_5678].iter().all(|address| found.contains(address)), "{found:x?}");
        assert_eq!(addresses(b"\xbe\x01", 0).count(), 0);
    }
}
