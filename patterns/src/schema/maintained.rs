//! What every kind of derived data brings, so that a schema can own it.

use std::ops::ControlFlow;
use std::sync::Arc;

use keyloom::value::Codec;
use keyloom::{Reader, Result, Store, Subspace};

use crate::derived::{
    Attach, Derived, Inconsistency, RepairOptions, RepairPhase, RepairPosition, RepairProgress,
};
use crate::general::aggregation::{RankedIndex, RollUp, Sketches, Totals};
use crate::general::composite_key_index::Index;
use crate::general::dimensionality_reduction::{
    CurveIndex, ExtentIndex, PointIndex, SpaceTimeIndex,
};
use crate::general::inverted_index::InvertedIndex;
use crate::hierarchy::path::PathHierarchy;
use crate::table::{RecordKey, Table};

/// A kind of derived data: what a [`Schema`](super::Schema) must know of it.
///
/// Its life (building, being queried, dropping) is written once, for all kinds; see
/// [`Attached`](super::Attached).
pub trait Maintained: Clone + Send + Sync + 'static {
    /// The key of the records that it is derived from.
    type Key: RecordKey;
    /// The records that it is derived from.
    type Value: 'static;

    /// The name of the kind, such as `unique index`. It is stored: another name is another kind.
    fn kind(&self) -> &'static str;

    /// The format of the bytes. Raise it when they change.
    fn format(&self) -> u32 {
        1
    }

    /// What else the bytes depend on, in words; two definitions with other options are not the same.
    fn options(&self) -> String {
        String::new()
    }

    /// Where the bytes are, or some of them: within the subspace that [`Schema::derive`](super::Schema::derive) gave.
    fn space(&self) -> &Subspace;

    /// What is told of each change of a record.
    fn derived(&self) -> Arc<dyn Derived<Self::Key, Self::Value>>;

    /// Everything that is not as it should be between `table` and this.
    ///
    /// # Errors
    /// Any error of the store.
    fn check<C: Codec<Self::Value>>(
        &self,
        reader: &impl Reader,
        table: &Table<Self::Key, Self::Value, C>,
    ) -> Result<Vec<Inconsistency>>;

    /// Makes it what it should be, in bounded transactions.
    ///
    /// # Errors
    /// Any error of the store, and what the kind refuses.
    fn repair<S: Store, C: Codec<Self::Value>>(
        &self,
        store: &S,
        table: &Table<Self::Key, Self::Value, C>,
        options: &RepairOptions,
        progress: impl FnMut(&RepairProgress) -> ControlFlow<()>,
    ) -> Result<RepairProgress>;
}

/// What [`Maintained`] needs besides the repair, by the methods that a kind has by itself.
macro_rules! described {
    ($kind:expr $(, options $options:expr)?) => {
        type Key = K;
        type Value = V;

        fn kind(&self) -> &'static str {
            let kind: fn(&Self) -> &'static str = $kind;
            kind(self)
        }

        $(fn options(&self) -> String {
            let options: fn(&Self) -> String = $options;
            options(self)
        })?

        fn space(&self) -> &Subspace {
            Self::space(self)
        }

        fn derived(&self) -> Arc<dyn Derived<K, V>> {
            self.attached()
        }

        fn check<C: Codec<V>>(
            &self,
            reader: &impl Reader,
            table: &Table<K, V, C>,
        ) -> Result<Vec<Inconsistency>> {
            Self::check(self, reader, table)
        }
    };
}

/// Implements [`Maintained`] for a kind with a repair of its own.
macro_rules! maintained {
    ($name:ident $(, $constant:ident)?; $($described:tt)*) => {
        impl<K: RecordKey, V: 'static $(, const $constant: usize)?> Maintained
            for $name<K, V $(, $constant)?>
        {
            described!($($described)*);

            fn repair<S: Store, C: Codec<V>>(
                &self,
                store: &S,
                table: &Table<K, V, C>,
                options: &RepairOptions,
                progress: impl FnMut(&RepairProgress) -> ControlFlow<()>,
            ) -> Result<RepairProgress> {
                Self::repair(self, store, table, options, progress)
            }
        }
    };
}

maintained!(Index; |index| if index.is_unique() { "unique index" } else { "index" });
maintained!(Totals; |_| "totals");
maintained!(RankedIndex; |_| "ranked index");
maintained!(RollUp; |_| "roll-up", options |roll_up| format!("widths {:?}", roll_up.widths()));
maintained!(InvertedIndex; |_| "inverted index");
maintained!(PointIndex; |_| "points");
maintained!(ExtentIndex; |_| "extents");
maintained!(SpaceTimeIndex; |_| "points in space and time");
maintained!(CurveIndex, N; |_| "curve");
maintained!(PathHierarchy; |_| "path hierarchy");

impl<K: RecordKey, V: 'static> Maintained for Sketches<K, V> {
    described!(|_| "sketches");

    /// All of it in one transaction: a sketch cannot be mended, only made again.
    fn repair<S: Store, C: Codec<V>>(
        &self,
        store: &S,
        table: &Table<K, V, C>,
        _: &RepairOptions,
        mut progress: impl FnMut(&RepairProgress) -> ControlFlow<()>,
    ) -> Result<RepairProgress> {
        let written = store.transact(|txn| self.rebuild(txn, table))?;
        let position = RepairPosition { phase: RepairPhase::Records, last: None };
        let mut done = RepairProgress::at(position);
        (done.written, done.finished) = (written, true);
        let _ = progress(&done);
        Ok(done)
    }
}
