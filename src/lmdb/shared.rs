//! The state that all handles of a store share.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use heed::types::Bytes;
use heed::{Database, Env, MdbError, WithoutTls};

use super::gate::{Gate, Holder, Ticket};
use super::open::Registration;
use super::opening_lock::OpeningLock;
use super::options::{Durability, LmdbOptions};
use super::owned_by::OwnedBy;
use super::readers::Readers;
use super::writer_lock::WriterLock;
use super::{explain, map_size};
use crate::backend::{CommitSignal, Process, WriterSlot, WriterTurn};
use crate::deadline::Deadline;
use crate::{Error, HeldPages, LmdbError, OldestReader, Result, StorageError};

#[derive(Debug)]
pub(super) struct Shared {
    // Dropped first, so that the file is closed before its registration is removed.
    pub(super) env: Env<WithoutTls>,
    pub(super) database: Database<'static, Bytes, Bytes>,
    pub(super) path: PathBuf,
    pub(super) process: Process,
    pub(super) options: LmdbOptions,
    pub(super) gate: Gate,
    pub(super) writer: WriterSlot,
    pub(super) signal: CommitSignal,
    /// The size of the map when a transaction last found it full; 0 once the map has grown.
    pub(super) full_at_bytes: AtomicUsize,
    /// Whether the engine was left without a map. A read would then access an invalid address.
    pub(super) is_unmapped: AtomicBool,
    /// Whether an fsync failed. Afterwards the system treats the unwritten pages as written.
    pub(super) sync_failed: AtomicBool,
    // Dropped after the engine, which holds locks on the same file.
    pub(super) readers: Readers,
    pub(super) writers: WriterLock,
    pub(super) _registration: Registration,
    /// Prevents writers from opening a store that is read without reader slots.
    pub(super) _no_writer: Option<OwnedBy<OpeningLock>>,
}

impl Shared {
    /// Enlarges the map if a transaction found it full and the map has not been enlarged since.
    pub(super) fn grow_if_full(&self, deadline: &Deadline<'_>) -> Result<()> {
        let full_at = self.full_at_bytes.load(Ordering::Acquire);
        if full_at == 0 {
            return Ok(());
        }
        if full_at >= self.options.max_map_bytes {
            // The map cannot grow, so waiting for snapshots is useless. A transaction that only
            // deletes may fit.
            self.full_at_bytes.store(0, Ordering::Release);
            return Ok(());
        }
        let grown = self.gate.alone(deadline, || {
            self.check_map()?;
            let now = self.env.info().map_size;
            let wanted = now.saturating_mul(2).min(self.options.max_map_bytes);
            if now <= full_at && wanted > now {
                self.resize(wanted)?;
            }
            Ok(())
        });
        // Reset after a failure too: a transaction that fits must not wait for the space that
        // another one needs.
        self.full_at_bytes.store(0, Ordering::Release);
        grown
    }

    /// Whether the map can grow. If so, a transaction that found the map full may succeed when it
    /// runs again.
    pub(super) fn can_grow(&self) -> bool {
        self.env.info().map_size < self.options.max_map_bytes
    }

    /// Adopts the map size that another process has set.
    #[allow(unsafe_code)]
    pub(super) fn adopt_size(&self, deadline: &Deadline<'_>) -> Result<()> {
        self.gate.alone(deadline, || {
            self.check_map()?;
            // SAFETY: as in `resize`.
            self.note_unmapped(unsafe { map_size::adopt(&self.env, &self.path) })
        })
    }

    #[allow(unsafe_code)]
    pub(super) fn resize(&self, bytes: usize) -> Result<()> {
        // SAFETY: the gate is closed and empty: no transaction, copy or flush of this process reads
        // the map.
        self.note_unmapped(unsafe { map_size::set(&self.env, &self.path, bytes) })
    }

    /// Records whether the engine was left without a map.
    pub(super) fn note_unmapped(&self, resized: Result<()>) -> Result<()> {
        if matches!(resized, Err(Error::Storage(StorageError::Unusable { .. }))) {
            self.is_unmapped.store(true, Ordering::Release);
        }
        resized
    }

    /// Returns an error if the handle is not usable any more. Must be called inside the gate, where
    /// the map does not change.
    pub(super) fn check_map(&self) -> Result<()> {
        if self.is_unmapped.load(Ordering::Acquire) {
            return Err(Error::Storage(StorageError::Unusable {
                path: self.path.clone(),
                source: None,
            }));
        }
        Ok(())
    }

    /// Returns an error if an fsync has failed, so that no write follows it.
    pub(super) fn check_sync(&self) -> Result<()> {
        if self.sync_failed.load(Ordering::Acquire) {
            return Err(Error::Storage(StorageError::Unusable {
                path: self.path.clone(),
                source: None,
            }));
        }
        Ok(())
    }

    /// Records that an fsync has failed, in the modes in which earlier commits depend on that
    /// fsync.
    pub(super) fn note_failed_sync(&self, error: heed::Error) -> Error {
        if self.options.durability != Durability::Full {
            self.sync_failed.store(true, Ordering::Release);
        }
        self.explain(error)
    }

    /// The size of the file. The engine duplicates the file descriptor for this, and a signal may
    /// interrupt that call.
    pub(super) fn file_bytes(&self) -> heed::Result<u64> {
        loop {
            match self.env.real_disk_size() {
                Err(heed::Error::Io(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    /// Waits for the writers of this process.
    pub(super) fn take_turn(&self, deadline: &Deadline<'_>) -> Result<WriterTurn<'_>> {
        let turn = self.writer.take_within(|| Some(deadline.left()))?;
        turn.ok_or_else(|| Error::WriterBusy {
            // The current writer of this process may itself be waiting for another process.
            holder: self.writers.holder().or_else(|| Some(std::process::id())),
            waited_ms: deadline.waited_ms(),
        })
    }

    /// Enters the gate for a call that reads the map while it runs.
    pub(super) fn enter_call(&self) -> Result<Ticket<'_>> {
        let deadline = Deadline::new(self.options.grow_patience);
        let ticket = self.gate.enter(Holder::Call, &deadline)?;
        self.check_map()?;
        Ok(ticket)
    }

    /// Enters the gate and opens a transaction or snapshot. If another process has enlarged the
    /// map, adopts its size and tries again. `lock` waits for other processes. It is called outside
    /// the gate, because a thread of this process that adopts the map must not have to wait for
    /// another process.
    pub(super) fn enter<'s, L, T>(
        &'s self,
        holder: Holder,
        deadline: &Deadline<'_>,
        lock: impl Fn() -> Result<L>,
        open: impl Fn(&'s Env<WithoutTls>) -> heed::Result<T>,
    ) -> Result<(OwnedBy<T>, Ticket<'s>, L)> {
        self.process.check(&self.path)?;
        let mut adoptions = 0;
        let (opened, ticket, locked) = loop {
            let locked = lock()?;
            let ticket = self.gate.enter(holder, deadline)?;
            self.check_map()?;
            match open(&self.env) {
                Err(heed::Error::Mdb(MdbError::MapResized))
                    if adoptions < map_size::MOST_ADOPTIONS =>
                {
                    drop(ticket);
                    drop(locked);
                    self.adopt_size(deadline)?;
                    adoptions += 1;
                }
                opened => break (opened, ticket, locked),
            }
        };
        let opened = opened.map_err(|error| self.explain(error))?;
        Ok((OwnedBy::new(opened, self.process), ticket, locked))
    }

    /// Whether the engine may have failed permanently. The engine reports such a failure only to
    /// the next transaction, and not if no reader slot is free.
    pub(super) fn may_be_unusable(&self) -> bool {
        !matches!(self.env.read_txn(), Ok(_) | Err(heed::Error::Mdb(MdbError::MapResized)))
    }

    /// Converts an error of the engine.
    pub(super) fn explain(&self, error: heed::Error) -> Error {
        match error {
            heed::Error::Mdb(MdbError::ReadersFull) => {
                // Another process may have created the lock file with another number of slots.
                Error::Lmdb(LmdbError::ReadersFull {
                    max_readers: self.env.info().maximum_number_of_readers,
                })
            }
            other => match explain::explain(other, &self.path) {
                Error::Storage(StorageError::DiskFull { source, .. }) => self.disk_full(source),
                error => error,
            },
        }
    }

    pub(super) fn disk_full(&self, source: crate::Shared<std::io::Error>) -> Error {
        Error::Storage(StorageError::DiskFull {
            path: self.path.clone(),
            source,
            held: self.held_pages(),
        })
    }

    /// The error of the first call that finds the map full. The next transaction enlarges the map,
    /// unless dead readers were cleared, which frees space.
    pub(super) fn map_full(&self) -> Error {
        let held = self.held_pages();
        if held.dead_readers == 0 {
            self.full_at_bytes.store(self.env.info().map_size, Ordering::Release);
        }
        self.map_full_held(held)
    }

    pub(super) fn map_full_held(&self, held: HeldPages) -> Error {
        let (map_bytes, max_map_bytes) = (self.env.info().map_size, self.options.max_map_bytes);
        Error::Lmdb(LmdbError::MapFull { map_bytes, max_map_bytes, held })
    }

    /// Clears the slots of dead processes, and finds the live reader that keeps the most pages.
    pub(super) fn held_pages(&self) -> HeldPages {
        // An error here must not replace the error of the transaction, which is returned next.
        let dead_readers = self.clear_dead_readers().unwrap_or_default();
        let oldest_reader = self.oldest_reader().filter(|reader| reader.commits > 0);
        HeldPages { dead_readers, oldest_reader }
    }

    pub(super) fn clear_dead_readers(&self) -> Result<u32> {
        self.readers.clear_dead(&self.env).map_err(|error| self.explain(error))
    }

    /// The reader, of all processes, that sees the oldest commit. Must be called inside the gate.
    pub(super) fn oldest_reader(&self) -> Option<OldestReader> {
        self.readers.oldest(&self.env, || self.gate.oldest_snapshot_age())
    }
}
