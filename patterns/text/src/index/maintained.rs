//! An index as derived data of its table: its definition, check and repair.

use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{Reader, Result, Store};
use keyloom_kit::parts::KeyShape;
use keyloom_kit::{Inconsistency, Progress, RecordKey, RepairOptions};
use keyloom_tables::table::Table;
use keyloom_tables::{Maintained, described};

use super::TextIndex;
use super::check::check;
use super::repair::repair;

impl<K: RecordKey, V: 'static, G: KeyShape + 'static> Maintained for TextIndex<K, V, G> {
    described!(|_| "text index", parts | index | index.parts(), options | index | index.options());

    /// Returns all differences between the stored bytes and the bytes computed from `table`.
    ///
    /// # Errors
    /// An error if a record does not decode; [`Error::InvalidArgument`](keyloom::Error) if the
    /// table does not maintain this index.
    fn check<C: Codec<V>>(
        &self,
        reader: &impl Reader,
        table: &Table<K, V, C>,
    ) -> Result<Vec<Inconsistency>> {
        check(self, reader, table)
    }

    /// Repairs or builds the index; see the [module](super#check-and-repair).
    ///
    /// # Errors
    /// As [`check`](Maintained::check).
    fn repair_with<S: Store, C: Codec<V>>(
        &self,
        store: &S,
        table: &Table<K, V, C>,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        repair(self, store, table, options, progress)
    }
}
