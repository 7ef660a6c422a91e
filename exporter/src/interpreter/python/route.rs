//! The addresses that the walk needs of one process: where the interpreter keeps what, and the routes
//! from a thread to its thread state.

use exporter_common::python::{HOLDER_GLOBAL, PythonProcess, TLS_DYNAMIC, TLS_STATIC, TSD_GLIBC, TSD_MUSL};

use super::{
    detect::NotPython,
    elf::{ElfFacts, Legacy, Runtime, State},
    offsets::Layout,
    thread_state::TlsRecipe,
    tls_search::Place,
};
use crate::remote_memory::{ReadError, RemoteMemory};

/// glibc x86-64: offset of the first block of pthread keys in `struct pthread` (2.31 to 2.43).
const GLIBC_FIRST_BLOCK: u16 = 784;
/// glibc x86-64: offset of `struct pthread.specific` (2.31 to 2.43).
const GLIBC_SPECIFIC: u16 = 1_296;
/// musl x86-64: offset of the array of keys in `struct pthread` (1.2.3).
const MUSL_SPECIFIC: u16 = 128;
/// pthread keys there can be (glibc; musl has 128).
const KEY_LIMIT: u32 = 1_024;

/// Addresses in the process of what the interpreter keeps for itself.
pub(super) struct Variables {
    /// See `PythonProcess::interpreters_head`.
    pub(super) interpreters_head: u64,
    /// See `PythonProcess::holder`: an address, or an offset in the interpreter.
    pub(super) holder: u64,
    key: Option<Key>,
}

/// The pthread key of the thread state.
struct Key {
    address: u64,
    /// The `int` that says whether there is a key; without it the key is −1 until it is made.
    is_initialised: Option<u64>,
}

impl Variables {
    /// Of an interpreter whose `_PyRuntime` (3.7 and later) is at `base`.
    pub(super) fn of(
        runtime: &Runtime,
        base: Option<u64>,
        layout: &Layout,
        bias: u64,
    ) -> Result<Self, NotPython> {
        match (base, runtime.state) {
            (Some(base), _) => {
                let holder = match layout.process.holder_kind {
                    HOLDER_GLOBAL => base.wrapping_add(layout.holder),
                    _ => layout.holder,
                };
                let key = layout.tsd_key.map(|offset| {
                    let address = base.wrapping_add(offset);
                    Key { address, is_initialised: Some(address.wrapping_sub(4)) }
                });
                Ok(Self { interpreters_head: base.wrapping_add(layout.interpreters_head), holder, key })
            }
            (None, State::Legacy(Legacy { current, interpreters, key })) => {
                let interpreters = interpreters.ok_or_else(|| {
                    NotPython::LayoutNotBelieved("PyInterpreterState_Head has another form".to_owned())
                })?;
                let key = key.map(|at| Key { address: at.wrapping_add(bias), is_initialised: None });
                Ok(Self {
                    interpreters_head: interpreters.wrapping_add(bias),
                    holder: current.wrapping_add(bias),
                    key,
                })
            }
            (None, State::Runtime(_) | State::Unknown) => Err(NotPython::NotYet),
        }
    }
}

/// The thread-local variable. Its module id is filled in by the loader before the runtime starts.
pub(super) fn set_tls(
    memory: &impl RemoteMemory,
    process: &mut PythonProcess,
    recipe: Option<TlsRecipe>,
    facts: &ElfFacts,
    bias: u64,
) -> Result<(), NotPython> {
    match recipe {
        Some(TlsRecipe::Static(offset)) => {
            process.tls_kind = TLS_STATIC;
            process.tls_offset = i64::from(offset).cast_unsigned();
        }
        // musl's vector has cells of another size: the pthread key serves there.
        Some(TlsRecipe::Dynamic { pair, add }) if !facts.needs_musl => {
            let pair = pair.wrapping_add(bias);
            let module = memory.read_u64(pair).map_err(unreadable)?;
            let offset = memory.read_u64(pair.wrapping_add(8)).map_err(unreadable)?;
            if let Ok(module @ 1..) = u32::try_from(module) {
                process.tls_kind = TLS_DYNAMIC;
                process.tls_module = module;
                process.tls_offset = offset.wrapping_add_signed(add.into());
            }
        }
        Some(TlsRecipe::Dynamic { .. }) | None => {}
    }
    Ok(())
}

/// The thread-local variable that was searched for.
pub(super) fn set_found_tls(process: &mut PythonProcess, place: Place) {
    match place {
        Place::Static(offset) => {
            process.tls_kind = TLS_STATIC;
            process.tls_offset = i64::from(offset).cast_unsigned();
        }
        Place::Dynamic { module, offset } => {
            process.tls_kind = TLS_DYNAMIC;
            process.tls_module = module;
            process.tls_offset = offset;
        }
    }
}

/// The pthread key. It is made after the first interpreter, so that for a moment it may be missing.
pub(super) fn set_tsd(
    memory: &impl RemoteMemory,
    process: &mut PythonProcess,
    variables: &Variables,
    facts: &ElfFacts,
) -> Result<(), NotPython> {
    let Some(Key { address, is_initialised }) = variables.key else {
        return Ok(());
    };
    let key = memory.read_u32(address).map_err(unreadable)?;
    let is_initialised = match is_initialised {
        Some(at) => memory.read_u32(at).map_err(unreadable)?,
        None => u32::from(key != u32::MAX),
    };
    if is_initialised == 0 {
        return Err(NotPython::NotYet);
    }
    if is_initialised != 1 || key >= KEY_LIMIT {
        return Err(NotPython::LayoutNotBelieved("the key of the thread state is none".to_owned()));
    }
    process.tsd_key = key;
    if facts.needs_musl {
        process.tsd_kind = TSD_MUSL;
        process.tsd_specific = MUSL_SPECIFIC;
    } else {
        process.tsd_kind = TSD_GLIBC;
        process.tsd_specific = GLIBC_SPECIFIC;
        process.tsd_first_block = GLIBC_FIRST_BLOCK;
    }
    Ok(())
}

/// What a failed read means.
pub(super) fn unreadable(error: ReadError) -> NotPython {
    NotPython::Unreadable(error.to_string())
}
