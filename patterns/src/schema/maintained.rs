//! The contract of a kind of derived data in a schema.

use std::ops::ControlFlow;
use std::sync::Arc;

use keyloom::value::Codec;
use keyloom::{Reader, Result, Store, Subspace};

use crate::conceptual::denormalization::Copies;
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

/// A kind of derived data that a [`Schema`](super::Schema) can hold.
///
/// Building, disabling, draining and dropping are the same for all kinds: see [`Attached`](super::Attached).
///
/// Not kinds: [`BitSliced`](crate::BitSliced) integers and bitmaps by themselves, whose ids the program sets (declare an
/// [`InvertedIndex`] with fields of [integers](InvertedIndex::integers), which assigns ids to records); a
/// [`PropertyIndex`](crate::PropertyIndex), which is for stores without transactions.
pub trait Maintained: Clone + Send + Sync + 'static {
    /// The key of the records.
    type Key: RecordKey;
    /// The records.
    type Value: 'static;

    /// The name of the kind, such as `unique index`. It is part of the stored definition.
    fn kind(&self) -> &'static str;

    /// The version of the byte format. Raise it when the format changes.
    fn format(&self) -> u32 {
        1
    }

    /// Options that the bytes depend on, as text. They are part of the stored definition.
    fn options(&self) -> String {
        String::new()
    }

    /// Whether [`Schema::derive_deferred`](super::Schema::derive_deferred) may defer the updates. Provided: yes.
    fn can_be_deferred(&self) -> bool {
        true
    }

    /// The subspace of the data, or of a part of them. [`Schema::derive`](super::Schema::derive) checks that it
    /// lies within the assigned one.
    fn space(&self) -> &Subspace;

    /// The maintainer, called for each change of a record.
    fn derived(&self) -> Arc<dyn Derived<Self::Key, Self::Value>>;

    /// Reports every inconsistency between `table` and the derived data.
    ///
    /// # Errors
    /// Any error of the store.
    fn check<C: Codec<Self::Value>>(
        &self,
        reader: &impl Reader,
        table: &Table<Self::Key, Self::Value, C>,
    ) -> Result<Vec<Inconsistency>>;

    /// Fixes every inconsistency, in bounded transactions.
    ///
    /// # Errors
    /// Errors of the kind; any error of the store.
    fn repair<S: Store, C: Codec<Self::Value>>(
        &self,
        store: &S,
        table: &Table<Self::Key, Self::Value, C>,
        options: &RepairOptions,
        progress: impl FnMut(&RepairProgress) -> ControlFlow<()>,
    ) -> Result<RepairProgress>;
}

/// The methods of [`Maintained`] but for the repair, by the inherent methods of a kind.
macro_rules! described {
    ($kind:expr $(, options $options:expr)? $(, deferred if $deferred:expr)?) => {
        type Key = K;
        type Value = V;

        fn kind(&self) -> &'static str {
            let kind: fn(&Self) -> &'static str = $kind;
            kind(self)
        }

        $(fn can_be_deferred(&self) -> bool {
            let can_be_deferred: fn(&Self) -> bool = $deferred;
            can_be_deferred(self)
        })?

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

/// Implements [`Maintained`] by the inherent methods of a kind.
macro_rules! maintained {
    ($name:ident $(, const $constant:ident)? $(, parts $parts:ident)?; $($described:tt)*) => {
        impl<K: RecordKey, V: 'static $(, const $constant: usize)? $(, $parts: 'static)?>
            Maintained for $name<K, V $(, $constant)? $(, $parts)?>
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

maintained!(Index, parts P; |index| if index.is_unique() { "unique index" } else { "index" },
    deferred if |index| !index.is_unique());
maintained!(Totals, parts P; |_| "totals");
maintained!(RankedIndex, parts P; |_| "ranked index");
maintained!(RollUp; |_| "roll-up", options |roll_up| format!("widths {:?}", roll_up.widths()));
maintained!(InvertedIndex; |_| "inverted index", options |index| index.options());
maintained!(PointIndex; |_| "points");
maintained!(ExtentIndex; |_| "extents");
maintained!(SpaceTimeIndex; |_| "points in space and time", options |index| index.options());
maintained!(CurveIndex, const N; |_| "curve", options |index| index.options());
maintained!(PathHierarchy; |_| "path hierarchy", options |paths| paths.options());

impl<SK, S, K, V, CS, CC> Maintained for Copies<SK, S, K, V, CS, CC>
where
    SK: RecordKey,
    S: 'static,
    K: RecordKey,
    V: Clone + PartialEq + 'static,
    CS: Codec<S>,
    CC: Codec<V>,
{
    type Key = SK;
    type Value = S;

    fn kind(&self) -> &'static str {
        "copies"
    }

    /// No: sources with many carriers are [propagated](Copies::propagate) later as they are.
    fn can_be_deferred(&self) -> bool {
        false
    }

    fn space(&self) -> &Subspace {
        Self::space(self)
    }

    fn derived(&self) -> Arc<dyn Derived<SK, S>> {
        self.attached()
    }

    /// Reports stale copies, but not those whose source is marked: a propagation will refresh them.
    fn check<C: Codec<S>>(
        &self,
        reader: &impl Reader,
        _: &Table<SK, S, C>,
    ) -> Result<Vec<Inconsistency>> {
        let stale = Self::check(self, reader)?.into_iter().filter(|stale| !stale.pending);
        Ok(stale.map(|stale| Inconsistency::Wrong { entry: stale.carrier }).collect())
    }

    fn repair<T: Store, C: Codec<S>>(
        &self,
        store: &T,
        _: &Table<SK, S, C>,
        options: &RepairOptions,
        progress: impl FnMut(&RepairProgress) -> ControlFlow<()>,
    ) -> Result<RepairProgress> {
        Self::repair(self, store, options, progress)
    }
}

impl<K: RecordKey, V: 'static> Maintained for Sketches<K, V> {
    described!(|_| "sketches", options | sketches | sketches.options());

    /// Rebuilds all sketches in one transaction: a sketch does not say which values it counts.
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
