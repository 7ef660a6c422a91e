//! From the thread pointer to the thread state of the running thread. Every route's answer is
//! checked against `PyThreadState.thread_id`, which is the thread pointer (`pthread_self()`).
//!
//! Order: GIL holder (3.7 to 3.11, which also gives a sub-interpreter's inner state), the
//! thread-local variable (3.12+), the pthread key, and last the interpreters' thread lists.

use exporter_common::limits::MAX_THREAD_LIST;
use exporter_common::python::{
    HOLDER_GLOBAL, HOLDER_INTERPRETER, PythonProcess, TLS_DYNAMIC, TLS_STATIC, TSD_GLIBC, TSD_MUSL,
};
use exporter_common::sample::{GIL_HELD, GIL_RELEASED, GIL_UNKNOWN};

use crate::memory::Memory;

/// glibc keeps the first 32 keys inside `struct pthread` (nptl/descr.h, `PTHREAD_KEY_2NDLEVEL_SIZE`).
const GLIBC_KEYS_A_BLOCK: u64 = 32;

/// Address of the thread state of the thread with this thread pointer, 0 if it has none.
#[inline(always)]
pub fn find<M: Memory>(process: &PythonProcess, thread_pointer: u64, memory: &M) -> u64 {
    if process.holder_kind == HOLDER_GLOBAL {
        let found = memory.word(process.holder).unwrap_or(0);
        if belongs(process, found, thread_pointer, memory) {
            return found;
        }
    }
    let found = from_tls(process, thread_pointer, memory);
    if belongs(process, found, thread_pointer, memory) {
        return found;
    }
    let found = from_key(process, thread_pointer, memory);
    if belongs(process, found, thread_pointer, memory) {
        return found;
    }
    from_list(process, thread_pointer, memory)
}

/// Whether the thread holds the GIL.
#[inline(always)]
pub fn gil<M: Memory>(process: &PythonProcess, thread_state: u64, memory: &M) -> u8 {
    if process.holder_kind == HOLDER_GLOBAL {
        return match memory.word(process.holder) {
            Some(holder) if holder == thread_state => GIL_HELD,
            Some(_) => GIL_RELEASED,
            None => GIL_UNKNOWN,
        };
    }
    if process.holder_kind != HOLDER_INTERPRETER {
        return GIL_UNKNOWN;
    }
    let Some(interpreter) = memory.word(thread_state.wrapping_add(process.ts_interp as u64)) else {
        return GIL_UNKNOWN;
    };
    let Some(gil) = memory.word(interpreter.wrapping_add(process.holder)) else { return GIL_UNKNOWN };
    let Some(locked) = memory.half(gil.wrapping_add(process.gil_locked as u64)) else { return GIL_UNKNOWN };
    let holder = memory.word(gil.wrapping_add(process.gil_last_holder as u64)).unwrap_or(0);
    if locked == 1 && holder == thread_state { GIL_HELD } else { GIL_RELEASED }
}

#[inline(always)]
fn belongs<M: Memory>(process: &PythonProcess, state: u64, thread_pointer: u64, memory: &M) -> bool {
    state != 0 && memory.word(state.wrapping_add(process.ts_thread_id as u64)) == Some(thread_pointer)
}

#[inline(always)]
fn from_tls<M: Memory>(process: &PythonProcess, thread_pointer: u64, memory: &M) -> u64 {
    let slot = match process.tls_kind {
        TLS_STATIC => thread_pointer.wrapping_add(process.tls_offset),
        TLS_DYNAMIC => {
            // The dynamic thread vector: `fs:8` points at 16-byte slots, slot n belongs to module n.
            let vector = memory.word(thread_pointer.wrapping_add(8)).unwrap_or(0);
            let block = memory.word(vector.wrapping_add(16 * process.tls_module as u64)).unwrap_or(0);
            if block == 0 || block == u64::MAX {
                return 0;
            }
            block.wrapping_add(process.tls_offset)
        }
        _ => return 0,
    };
    memory.word(slot).unwrap_or(0)
}

#[inline(always)]
fn from_key<M: Memory>(process: &PythonProcess, thread_pointer: u64, memory: &M) -> u64 {
    let key = process.tsd_key as u64;
    let specific = thread_pointer.wrapping_add(process.tsd_specific as u64);
    let cell = match process.tsd_kind {
        TSD_GLIBC if key < GLIBC_KEYS_A_BLOCK => {
            thread_pointer.wrapping_add(process.tsd_first_block as u64 + 16 * key + 8)
        }
        TSD_GLIBC => match memory.word(specific.wrapping_add(8 * (key / GLIBC_KEYS_A_BLOCK))) {
            Some(block) if block != 0 => block.wrapping_add(16 * (key % GLIBC_KEYS_A_BLOCK) + 8),
            _ => return 0,
        },
        TSD_MUSL => match memory.word(specific) {
            Some(cells) if cells != 0 => cells.wrapping_add(8 * key),
            _ => return 0,
        },
        _ => return 0,
    };
    memory.word(cell).unwrap_or(0)
}

#[inline(always)]
fn from_list<M: Memory>(process: &PythonProcess, thread_pointer: u64, memory: &M) -> u64 {
    let mut interpreter = memory.word(process.interpreters_head).unwrap_or(0);
    let mut state = 0;
    for _ in 0..MAX_THREAD_LIST {
        if state == 0 {
            if interpreter == 0 {
                return 0;
            }
            state = memory.word(interpreter.wrapping_add(process.interp_threads as u64)).unwrap_or(0);
            interpreter = memory.word(interpreter.wrapping_add(process.interp_next as u64)).unwrap_or(0);
        } else {
            if belongs(process, state, thread_pointer, memory) {
                return state;
            }
            state = memory.word(state.wrapping_add(process.ts_next as u64)).unwrap_or(0);
        }
    }
    0
}
