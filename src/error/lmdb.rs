//! The part of the error type that only LMDB needs.

use std::path::PathBuf;

use super::{HeldPages, Shared};

/// Errors of an LMDB store that concern its map, its reader slots or its lock files.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LmdbError {
    /// The memory map of an LMDB store is full. [`Store::transact`](crate::Store::transact) retries
    /// the transaction if readers of dead processes were cleared, or if the map may still grow.
    /// Otherwise end the oldest reader, delete data, or open the store with a larger
    /// `max_map_bytes`.
    #[error("the memory map of {map_bytes} bytes is full; {}", held.remedy(&map_remedy(*map_bytes, *max_map_bytes)))]
    MapFull {
        /// The size of the map.
        map_bytes: usize,
        /// The size up to which the map grows automatically.
        max_map_bytes: usize,
        /// The readers that keep freed pages from being reused.
        held: HeldPages,
    },
    /// The memory map of an LMDB store must grow. The map can grow only while no snapshot or
    /// transaction is open, but some stayed open. Drop snapshots before writing; read long ranges
    /// in pages.
    #[error(
        "the memory map must grow but {open} snapshots or transactions stayed open for {waited_ms} ms; drop them before writing"
    )]
    MapHeld {
        /// The number of snapshots and transactions open at the end of the wait.
        open: usize,
        /// The length of the wait.
        waited_ms: u64,
    },
    /// Another process takes too long to open the store, has the store open with
    /// `LmdbOptions::assume_no_writer`, or holds a lock (`flock`) on its directory for another
    /// reason. End that process, and open the store again.
    #[error(
        "another process has held a lock on {path} for {waited_ms} ms: it opens the store, or has it open with `assume_no_writer(true)`; end that process and try again"
    )]
    OpeningHeld {
        /// The directory of the store.
        path: PathBuf,
        /// The length of the wait.
        waited_ms: u64,
    },
    /// The system cannot reserve the address space for the memory map of a store that is opened, or
    /// for a larger map. The store and its map are unchanged. Raise the limit (`ulimit -v`), or set
    /// a smaller `map_bytes` or `max_map_bytes`.
    #[error(
        "the system cannot reserve {wanted_bytes} bytes of address space for the memory map: {source}; raise the limit (`ulimit -v`) or set a smaller `map_bytes` or `max_map_bytes`"
    )]
    AddressSpace {
        /// The size requested.
        wanted_bytes: usize,
        /// The error of the system.
        source: Shared<std::io::Error>,
    },
    /// Every reader slot is taken by a live snapshot. Drop snapshots earlier, or open the store
    /// with more slots. The first process that opens a store sets the number of slots, so close the
    /// store in all processes before you raise it.
    #[error(
        "all {max_readers} reader slots are taken; drop snapshots earlier, or close the store in all processes and open it with a larger `max_readers`"
    )]
    ReadersFull {
        /// The number of slots.
        max_readers: u32,
    },
    /// A store cannot be opened for reading, because the system refuses to open its lock file for
    /// writing. A snapshot takes a reader slot in this file, so that writers do not overwrite its
    /// pages. Make the lock file writable; or assert with `LmdbOptions::assume_no_writer` that no
    /// process writes to the store.
    #[error(
        "the lock file {path} cannot be opened for writing: {source}; a snapshot takes a reader slot there, so make it writable, or open the store with `assume_no_writer(true)` if no process writes to it meanwhile"
    )]
    LockFileNotWritable {
        /// The lock file.
        path: PathBuf,
        /// The system's error.
        source: Shared<std::io::Error>,
    },
    /// A store cannot be opened with `LmdbOptions::assume_no_writer`, because another process has
    /// it open and may write to it. End that process, or open the store without this option.
    #[error(
        "another process has {path} open and may write to it; end that process, or open the store without `assume_no_writer(true)`"
    )]
    OpenElsewhere {
        /// The store.
        path: PathBuf,
    },
    /// This process already has the store open. Clone that handle: two maps of one file in one
    /// process break each other's locks.
    #[error("this process already has {path} open; clone that handle")]
    AlreadyOpen {
        /// The file.
        path: PathBuf,
    },
}

impl LmdbError {
    pub(super) fn calls_for_another_run(&self) -> bool {
        match self {
            // `begin` enlarges the map while it is below `max_map_bytes`.
            Self::MapFull { map_bytes, max_map_bytes, held } => {
                map_bytes < max_map_bytes || held.dead_readers > 0
            }
            _ => false,
        }
    }
}

fn map_remedy(map_bytes: usize, max_map_bytes: usize) -> String {
    if map_bytes < max_map_bytes {
        format!("run the transaction again, the map grows up to {max_map_bytes} bytes")
    } else {
        "delete something, or open the store with a larger `max_map_bytes`".into()
    }
}
