//! The readers that keep freed pages of an LMDB store from being reused.

use std::fmt;
use std::time::Duration;

/// The readers that keep an LMDB store from reusing freed pages. Empty on other stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldPages {
    /// The number of readers of dead processes that were just cleared. If it is not 0, a retry of
    /// the transaction can succeed.
    pub dead_readers: u32,
    /// The reader that sees the oldest commit, if there are newer commits.
    pub oldest_reader: Option<OldestReader>,
}

/// An open snapshot of an LMDB store, in this process or another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OldestReader {
    /// The process that holds the snapshot.
    pub process: u32,
    /// The number of commits since the snapshot began.
    pub commits: u64,
    /// The age of the snapshot; `None` if another process holds it.
    pub age: Option<Duration>,
}

impl HeldPages {
    /// The remedy for the message: to run the transaction again if readers of dead processes were
    /// cleared. Otherwise, the remedy is to end the oldest reader or to follow `otherwise`; without
    /// an oldest reader, it is `otherwise` alone.
    pub(super) fn remedy(&self, otherwise: &str) -> String {
        match (self.dead_readers, self.oldest_reader) {
            (0, None) => otherwise.into(),
            (0, Some(reader)) => {
                format!("end {reader}, which keeps freed pages from being reused, or {otherwise}")
            }
            (dead, _) => format!("{dead} readers of dead processes were cleared, run it again"),
        }
    }
}

impl fmt::Display for OldestReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { process, commits, age } = self;
        match age {
            Some(age) => {
                let age_ms = age.as_millis();
                write!(
                    f,
                    "the snapshot of this process that is {age_ms} ms and {commits} commits old"
                )
            }
            None => write!(f, "the snapshot of process {process} that is {commits} commits old"),
        }
    }
}
