//! Handles of what is derived from a table.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use keyloom::value::{Codec, Postcard};
use keyloom::{Order, Reader, Result, Store};

use super::error::SchemaError;
use super::maintained::Maintained;
use super::owned::{Declared, Owned};
use super::stored::State;
use crate::continuation::Continuation;
use crate::derived::{Inconsistency, RepairOptions, RepairProgress};
use crate::general::composite_key_index::Index;
use crate::select::Select;
use crate::table::{RecordKey, RecordPage, Table};

/// Something derived from the records of a table that a [`Schema`](super::Schema) owns: what it is, its
/// table, and its life.
///
/// Cheap to clone. Its type can be written down: `Attached<Index<u32, City>>`, and with another codec of the
/// table than [`Postcard`] `Attached<Index<u32, City>, Json>`.
pub struct Attached<D: Maintained, C = Postcard> {
    pub(super) derived: D,
    pub(super) declared: Arc<Declared<D::Key, D::Value>>,
    pub(super) table: Table<D::Key, D::Value, C>,
}

impl<D: Maintained, C> Clone for Attached<D, C> {
    fn clone(&self) -> Self {
        let Self { derived, declared, table } = self;
        let declared = Arc::clone(declared);
        Self { derived: derived.clone(), declared, table: table.clone() }
    }
}

impl<D: Maintained, C> fmt::Debug for Attached<D, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attached")
            .field("kind", &self.derived.kind())
            .field("name", &self.declared.name)
            .field("table", &self.table)
            .finish_non_exhaustive()
    }
}

impl<D: Maintained, C> Attached<D, C> {
    pub(super) fn new(
        derived: D,
        declared: Arc<Declared<D::Key, D::Value>>,
        table: Table<D::Key, D::Value, C>,
    ) -> Self {
        Self { derived, declared, table }
    }
}

impl<D: Maintained, C: Codec<D::Value>> Attached<D, C> {
    /// What is derived, to be queried: if it is readable in this snapshot or transaction. Costs one get.
    ///
    /// # Errors
    /// [`SchemaError::NotReadable`], [`SchemaError::Changed`] or [`SchemaError::Gone`] in an
    /// [`Error::Other`](keyloom::Error::Other); any error of the store.
    pub fn at(&self, reader: &impl Reader) -> Result<&D> {
        match self.state(reader)? {
            State::Readable => Ok(&self.derived),
            state => {
                let (table, name) =
                    (self.owned()?.name.to_string(), self.declared.name.to_string());
                Err(SchemaError::NotReadable { table, name, state }.into())
            }
        }
    }

    /// What may be done with it. Costs one get.
    ///
    /// # Errors
    /// [`SchemaError::Changed`] when the store has it by another definition, [`SchemaError::Gone`]; any
    /// error of the store.
    pub fn state(&self, reader: &impl Reader) -> Result<State> {
        let owned = self.owned()?;
        let stored = owned.read(reader)?;
        let name = &self.declared.name;
        let Some(stored) = stored.get(name) else {
            return Err(SchemaError::Gone { name: owned.name_of(name) }.into());
        };
        owned.refuse_change(&self.declared, stored)?;
        Ok(stored.state)
    }

    /// The table that it is derived from.
    pub fn table(&self) -> &Table<D::Key, D::Value, C> {
        &self.table
    }

    /// Everything that is not as it should be between the table and this.
    ///
    /// # Errors
    /// As [`at`](Attached::at), and as the `check` of its kind.
    pub fn check(&self, reader: &impl Reader) -> Result<Vec<Inconsistency>> {
        self.at(reader)?.check(reader, &self.table)
    }

    /// Makes it what it should be, in bounded transactions while others write.
    ///
    /// # Errors
    /// As [`repair_with`](Attached::repair_with).
    pub fn repair(&self, store: &impl Store) -> Result<RepairProgress> {
        self.repair_with(store, &RepairOptions::default(), |_| ControlFlow::Continue(()))
    }

    /// [`repair`](Attached::repair), telling `progress` after each transaction how far it is, which can stop
    /// it.
    ///
    /// # Errors
    /// As [`at`](Attached::at), and as the `repair` of its kind.
    pub fn repair_with<S: Store>(
        &self,
        store: &S,
        options: &RepairOptions,
        progress: impl FnMut(&RepairProgress) -> ControlFlow<()>,
    ) -> Result<RepairProgress> {
        self.at(&store.snapshot()?)?.repair(store, &self.table, options, progress)
    }

    pub(super) fn owned(&self) -> Result<&Arc<Owned<D::Key, D::Value>>> {
        let gone = || SchemaError::Gone { name: self.declared.name.to_string() }.into();
        self.table.owner().ok_or_else(gone)
    }
}

impl<K: RecordKey, V: 'static, C: Codec<V>> Attached<Index<K, V>, C> {
    /// The records of one page of the index, in its order, as [`Index::records`]. Costs one get more.
    ///
    /// ```
    /// use keyloom::{Desc, Memory, Order, Store};
    /// use keyloom_patterns::{Schema, entry};
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "game")?;
    /// let scores = schema.table::<String, u32>("scores")?;
    /// let by_score = schema.index(&scores, "by_score", 1, |_, score| entry(Desc(*score)))?;
    /// store.transact(|txn| scores.put_many(txn, [("Ada".to_owned(), 80), ("Bob".to_owned(), 95)]))?;
    /// let best = by_score.records(&store.snapshot()?, (), Order::Ascending, 1, None)?;
    /// assert_eq!(best.records, [("Bob".to_owned(), 95)]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`at`](Attached::at) and [`Index::records`].
    pub fn records(
        &self,
        reader: &impl Reader,
        select: impl Select,
        order: Order,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<RecordPage<K, V>> {
        self.at(reader)?.records(reader, &self.table, select, order, limit, after)
    }
}
