//! How the running thread finds its `PyThreadState`: the thread-local variable `_Py_tss_tstate`
//! (3.12 and later), whose place is in the machine code of the exported function that returns it.
//!
//! x86-64 only. Source: `Python/pystate.c` of CPython v3.12.1 (`_PyThreadState_GetCurrent`), compiled.

/// Bytes of the function that are looked at.
pub const CODE_BYTES: usize = 48;

/// Where the variable is, as far as the file tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsRecipe {
    /// At thread pointer + this many bytes.
    Static(i32),
    /// In the block of a module.
    Dynamic {
        /// Address, in the file, of the pair {module id, offset} that the loader fills in.
        pair: u64,
        /// Bytes to add to that offset.
        add: i32,
    },
}

/// Reads the machine code of the function at `address`; `None` for another form.
#[must_use]
pub fn parse(code: &[u8], address: u64) -> Option<TlsRecipe> {
    let body = code.strip_prefix(b"\xf3\x0f\x1e\xfa").unwrap_or(code);
    // mov %fs:disp32, %rax
    if let Some(rest) = body.strip_prefix(b"\x64\x48\x8b\x04\x25") {
        return Some(TlsRecipe::Static(i32::from_le_bytes(*rest.first_chunk()?)));
    }
    // lea pair(%rip), %rdi — after a prologue of a few bytes.
    let lea = code.windows(3).take(16).position(|bytes| bytes == b"\x48\x8d\x3d")?;
    let (displacement, after_lea) = code.get(lea + 3..)?.split_first_chunk::<4>()?;
    let next = u64::try_from(lea + 7).ok()?;
    let pair = address.wrapping_add(next).wrapping_add_signed(i32::from_le_bytes(*displacement).into());
    // call __tls_get_addr, with padding prefixes; directly or through its GOT entry.
    let after_prefixes = after_lea.trim_prefixes();
    let call_bytes = if after_prefixes.starts_with(b"\xe8") {
        5
    } else if after_prefixes.starts_with(b"\xff\x15") {
        6
    } else {
        return None;
    };
    let load = after_prefixes.get(call_bytes..)?;
    // mov disp(%rax), %rax
    let (head, rest) = load.split_first_chunk::<3>()?;
    let add = match head {
        b"\x48\x8b\x00" => 0,
        b"\x48\x8b\x40" => i32::from(i8::from_le_bytes([*rest.first()?])),
        b"\x48\x8b\x80" => i32::from_le_bytes(*rest.first_chunk()?),
        _ => return None,
    };
    Some(TlsRecipe::Dynamic { pair, add })
}

trait TrimPrefixes {
    /// Without leading operand-size and REX.W prefixes.
    fn trim_prefixes(&self) -> &[u8];
}

impl TrimPrefixes for [u8] {
    fn trim_prefixes(&self) -> &[u8] {
        let count = self.iter().take_while(|&&byte| matches!(byte, 0x66 | 0x48)).count();
        self.get(count..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn static_model() {
        let code = b"\xf3\x0f\x1e\xfa\x64\x48\x8b\x04\x25\xf8\xff\xff\xff\xc3";
        assert_eq!(parse(code, 0x1000), Some(TlsRecipe::Static(-8)));
        assert_eq!(parse(&code[4..], 0x1000), Some(TlsRecipe::Static(-8)));
    }

    #[test]
    fn dynamic_model() {
        let start =
            b"\x48\x83\xec\x08\x66\x48\x8d\x3d\x00\x10\x00\x00\x66\x66\x48\xe8\xdc\x78\xdf\xff".to_vec();
        let pair = 0x1000 + 12 + 0x1000;
        let with = |load: &[u8]| parse(&[start.as_slice(), load].concat(), 0x1000);
        assert_eq!(with(b"\x48\x8b\x00\xc3"), Some(TlsRecipe::Dynamic { pair, add: 0 }));
        assert_eq!(with(b"\x48\x8b\x40\x08\xc3"), Some(TlsRecipe::Dynamic { pair, add: 8 }));
        assert_eq!(with(b"\x48\x8b\x80\x00\x01\x00\x00"), Some(TlsRecipe::Dynamic { pair, add: 256 }));
        assert_eq!(with(b"\xc3"), None);
        assert_eq!(with(b""), None);
    }

    #[test]
    fn other_code_is_refused() {
        assert_eq!(parse(b"", 0), None);
        assert_eq!(parse(b"\x64\x48\x8b\x04\x25\x01", 0), None);
        assert_eq!(parse(&[0x90; CODE_BYTES], 0), None);
    }
}
