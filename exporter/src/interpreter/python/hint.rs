//! Signs of an interpreter in the constants of a file that names no symbol of it: an embedder that was
//! linked with `libpython.a` and stripped.

use memchr::memmem;

use super::version::Version;

/// A text that every CPython from 3.3 on has (`PYTHON…SEED`; `Python/initconfig.c`, before 3.8
/// `Python/pylifecycle.c`). Each letter is kept as the next one, so that the exporter itself lacks it.
const SIGN: &[u8; 14] = b"QZUIPOIBTITFFE";
/// Versions kept: other libraries in the file have versions of the same form, but few.
const VERSIONS: usize = 8;

/// Whether the constants (`.rodata`) are those of an interpreter.
#[must_use]
pub fn has_interpreter(constants: &[u8]) -> bool {
    memmem::find(constants, &sign()).is_some()
}

fn sign() -> [u8; SIGN.len()] {
    std::hint::black_box(SIGN).map(|letter| letter - 1)
}

/// Every text of the form `3.11.2` that may be `PY_VERSION`, at most [`VERSIONS`] of them.
#[must_use]
pub fn versions(constants: &[u8]) -> Vec<Version> {
    let mut found = Vec::new();
    for at in memmem::find_iter(constants, b"3.") {
        let before = at.checked_sub(1).and_then(|before| constants.get(before)).copied().unwrap_or_default();
        if before.is_ascii_alphanumeric() || before == b'.' {
            continue;
        }
        let end = (at + Version::TEXT_BYTES).min(constants.len());
        let version = constants.get(at..end).and_then(Version::parse);
        if let Some(version) = version.filter(|version| !found.contains(version)) {
            found.push(version);
            if found.len() == VERSIONS {
                break;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_may_be_the_version() {
        let mut constants = sign().to_vec();
        constants.extend(b"\0%s\x003.11.2\0Library 3.0.15\x003.11.2\x0013.7.1\x003.9\0x3.8.1\x003.7.16");
        let found: Vec<String> = versions(&constants).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["3.11.2", "3.0.15"]);
        assert!(has_interpreter(&constants) && !has_interpreter(constants.get(1..).unwrap_or_default()));
        assert!(sign().starts_with(b"PYTHON") && sign().ends_with(b"SEED"));
        assert!(versions(b"").is_empty() && !has_interpreter(b""));
        let many: Vec<u8> = (0..100).flat_map(|n| format!("3.{n}.0\0").into_bytes()).collect();
        assert_eq!(versions(&many).len(), VERSIONS);
    }
}
