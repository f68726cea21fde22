//! Concurrency across transactions, processes and machines: sessions, locks, queues, expiry.

mod clock;

pub use clock::{Clock, ManualClock, SystemClock};
