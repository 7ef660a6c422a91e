//! Wire types as bytes and as map values.

use exporter_common::Wire;

/// Reads a value; `None` unless there are exactly as many bytes as it has.
pub fn read<T: Wire>(bytes: &[u8]) -> Option<T> {
    if bytes.len() != size_of::<T>() {
        return None;
    }
    // SAFETY: the length is right; `Wire` types are made of integers, so every bit pattern is a
    // value; the read does not need alignment.
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// A wire value as bytes.
pub fn bytes<T: Wire>(value: &T) -> &[u8] {
    // SAFETY: `Wire` types have no padding, so every byte is initialised.
    unsafe { std::slice::from_raw_parts((&raw const *value).cast::<u8>(), size_of::<T>()) }
}

/// A wire type as the value of a BPF map.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct MapValue<T: Wire>(pub T);
// SAFETY: transparent over a type of integers without padding.
unsafe impl<T: Wire> aya::Pod for MapValue<T> {}
