//! The derived data that a transaction maintains.

use keyloom::value::Codec;
use keyloom::{Error, Result, Subspace, Writer};
use keyloom_kit::RecordKey;

use super::Table;
use super::followed::{EntryBytes, Followed};

impl<K: RecordKey, V, C: Codec<V>> Table<K, V, C> {
    /// Refuses derived data in this subspace if the table does not maintain it. A check or a repair
    /// with such a table would report faults everywhere.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`].
    pub fn refuse_unless_attached(&self, derived: &Subspace) -> Result<()> {
        if self.upkeep.includes(derived) {
            return Ok(());
        }
        Err(Error::InvalidArgument {
            what: "the table",
            value: self.space.named(),
            why: "it does not maintain this derived data: attach it with `Table::with`, or pass the table that does",
        })
    }

    /// Checks whether the table accepts writes at all; for example, a dropped table refuses them.
    /// Costs a get if this is the first operation of the transaction on a table of a schema, and
    /// nothing otherwise. Patterns that write many records call this function before the first
    /// write.
    ///
    /// # Errors
    /// The errors of [`put`](Table::put) that do not depend on the record.
    pub fn expect_writable(&self, txn: &mut impl Writer) -> Result<()> {
        txn.guarded(|txn| self.follow(txn).map(drop))
    }

    /// The derived data that the transaction maintains. Reads the table's entry in the schema,
    /// unless this transaction has already read the entry.
    pub(super) fn follow(&self, txn: &mut impl Writer) -> Result<Followed<K, V>> {
        if let Some(followed) = self.remembered(txn) {
            return followed;
        }
        let Some(key) = self.upkeep.entry() else { return self.upkeep.followed(None) };
        let entry = txn.get(key)?.map(|bytes| self.upkeep.entry_bytes(&bytes));
        self.remember(txn, entry)
    }

    /// The derived data that the transaction maintains, if it has read the table's entry in the
    /// schema.
    pub(super) fn remembered(&self, txn: &mut impl Writer) -> Option<Result<Followed<K, V>>> {
        let entry = txn.state().remembered(self.upkeep.entry()?)?;
        Some(self.upkeep.followed(entry))
    }

    /// The derived data that the transaction maintains if the table's entry is `entry`. Remembers
    /// the entry, so later writes of the transaction need not read it again.
    pub(super) fn remember(
        &self,
        txn: &mut impl Writer,
        entry: Option<EntryBytes>,
    ) -> Result<Followed<K, V>> {
        if let Some(key) = self.upkeep.entry() {
            txn.state().remember(key, entry.clone());
        }
        self.upkeep.followed(entry.as_deref())
    }
}
