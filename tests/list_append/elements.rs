//! Who appends what.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::history::Element;

/// The elements of one process. Each is used once.
///
/// Of `n` processes, each has every `n`-th number. A process that reads an element of another one
/// continues after it, so that all processes work on the same lists. This is a Lamport clock that
/// is exchanged through the store under test.
#[derive(Debug)]
pub struct Elements {
    next: AtomicU64,
    first: Element,
    step: u64,
}

/// What lies further ahead was not appended by anybody: the store has made it up.
const FAR: u64 = 1 << 24;

impl Elements {
    pub fn new(process: usize, processes: usize) -> Self {
        // 0 stands for bytes that are no element.
        let first = process as u64 + 1;
        Self { next: AtomicU64::new(first), first, step: processes.max(1) as u64 }
    }

    /// One that no other process gets.
    pub fn take(&self) -> Element {
        self.next.fetch_add(self.step, Ordering::Relaxed)
    }

    /// How far everybody is, as far as is known here.
    pub fn position(&self) -> Element {
        self.next.load(Ordering::Relaxed)
    }

    pub fn see(&self, element: Element) {
        let position = self.position();
        if element > position && element - position < FAR {
            let steps = (element - self.first) / self.step + 1;
            self.next.fetch_max(self.first + steps * self.step, Ordering::Relaxed);
        }
    }
}
