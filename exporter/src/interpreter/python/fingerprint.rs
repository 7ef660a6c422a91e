//! The fingerprint of a code object as the kernel side computes it, read from outside: userspace
//! believes what it reads at an address only while the fingerprint is the one of the sample.

use exporter_common::python::PythonProcess;
use exporter_ebpf::code::{self, CodeSink};
use exporter_ebpf::memory::Memory;
use exporter_ebpf::walk::Walk;

use crate::remote_memory::RemoteMemory;

/// Fingerprint of the code object at `address`, `None` when it is unreadable or none.
pub fn of(memory: &impl RemoteMemory, process: &PythonProcess, address: u64) -> Option<u64> {
    let mut walk = Box::new(Walk::new(*process));
    code::inspect(&mut walk, address, &Remote(memory), &mut Nothing).map(|(fingerprint, _)| fingerprint)
}

/// Remote memory as the walk reads it.
pub struct Remote<'a, M>(pub &'a M);

impl<M: RemoteMemory> Memory for Remote<'_, M> {
    fn read(&self, to: &mut [u8], address: u64) -> bool {
        self.0.read(address, to).is_ok()
    }
}

/// Takes no code records: everything is known.
struct Nothing;

impl CodeSink for Nothing {
    fn is_known(&self, _: u64) -> bool {
        true
    }
    fn remember(&mut self, _: u64) {}
    fn scratch(&mut self) -> *mut u8 {
        std::ptr::null_mut()
    }
    fn send(&mut self, _: usize) -> bool {
        false
    }
    fn over_budget(&mut self) {}
}
