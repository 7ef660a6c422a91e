//! The Python stack walk, independent of the kernel: it reads the target through [`memory::Memory`]
//! and hands out code objects through [`code::CodeSink`], so that the programs in `main.rs` and the
//! host tests over memory images run the very same code.
//!
//! | file | what |
//! |---|---|
//! | `memory.rs` | reading the target; masks that the verifier can follow |
//! | `walk.rs` | state of a walk, and one frame step |
//! | `thread_state.rs` | from the thread pointer to the thread state |
//! | `code.rs` | fingerprint of a code object, and its naming at first sight |
#![cfg_attr(target_arch = "bpf", no_std)]
#![cfg_attr(target_arch = "bpf", feature(asm_experimental_arch))]

pub mod code;
pub mod memory;
pub mod thread_state;
pub mod walk;
