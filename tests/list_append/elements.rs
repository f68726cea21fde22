//! The assignment of elements to processes.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::history::Element;

/// The elements of one process. Each element is used once.
///
/// Each of `n` processes has every `n`-th number. A process that reads an element of another
/// process continues after it, so that all processes work on the same lists. This is a Lamport
/// clock that is exchanged through the store under test.
#[derive(Debug)]
pub struct Elements {
    next: AtomicU64,
    first: Element,
    step: u64,
}

/// An element that is further ahead was not appended by any process, so the store made it up.
const FAR: u64 = 1 << 24;

impl Elements {
    pub fn new(process: usize, processes: usize) -> Self {
        // 0 means bytes that are not an element.
        let first = process as u64 + 1;
        Self { next: AtomicU64::new(first), first, step: processes.max(1) as u64 }
    }

    /// Returns an element that no other process gets.
    pub fn take(&self) -> Element {
        self.next.fetch_add(self.step, Ordering::Relaxed)
    }

    /// The progress of all processes, as far as this process has read it.
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
