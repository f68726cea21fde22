//! The interface of a kind of derived data in a schema.

use std::ops::ControlFlow;
use std::sync::Arc;

use keyloom::value::Codec;
use keyloom::{Reader, Result, Store, Subspace};
use keyloom_kit::derived::Derived;
use keyloom_kit::{Inconsistency, Progress, RecordKey, RepairOptions};

use crate::table::Table;

/// A kind of derived data that a [`Schema`](crate::Schema) can hold.
///
/// All kinds are built, disabled, drained and dropped in the same way: see
/// [`Attached`](crate::Attached).
///
/// Some patterns are not kinds. In stand-alone bit-sliced integers and bitmaps, the program assigns
/// the ids; in a schema, declare an inverted index with integer fields instead, which assigns ids
/// to records. A [`PropertyIndex`](crate::PropertyIndex) is for stores without transactions.
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

    /// The types of the parts of the entries, as named by [`KeyShape`](crate::parts::KeyShape);
    /// empty if the types are fixed. They are part of the stored definition, so that a function
    /// that returns parts of other types is refused.
    fn parts(&self) -> String {
        String::new()
    }

    /// Whether [`Schema::derive_deferred`](crate::Schema::derive_deferred) may defer the updates.
    /// `true` by default.
    fn can_be_deferred(&self) -> bool {
        true
    }

    /// Whether there is data to build from the records. `true` by default. A kind without such data
    /// is readable as soon as it is declared, in each version.
    fn has_data(&self) -> bool {
        true
    }

    /// The subspace of the data, or of a part of the data.
    /// [`Schema::derive`](crate::Schema::derive) checks that this subspace is within the assigned
    /// one.
    fn space(&self) -> &Subspace;

    /// The [`Derived`] value that the table calls for each change of a record.
    fn derived(&self) -> Arc<dyn Derived<Self::Key, Self::Value>>;

    /// Reports every inconsistency between `table` and the derived data, in one snapshot.
    ///
    /// # Errors
    /// Any error of the store; [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) if the
    /// table does not maintain the data; [`Error::NewerFormat`](keyloom::Error::NewerFormat) for
    /// data of a newer program.
    fn check<C: Codec<Self::Value>>(
        &self,
        reader: &impl Reader,
        table: &Table<Self::Key, Self::Value, C>,
    ) -> Result<Vec<Inconsistency>>;

    /// Like [`check`](Maintained::check), in one state of the store, on up to `threads` threads if
    /// the kind supports it: indexes of plain entries do. By default, one thread checks. `guard` is
    /// called with a snapshot of this state before the check, and can refuse the check with an
    /// error.
    ///
    /// # Errors
    /// The errors of [`check`](Maintained::check) and of `guard`.
    fn check_in_parallel<S: Store, C: Codec<Self::Value>>(
        &self,
        store: &S,
        table: &Table<Self::Key, Self::Value, C>,
        _threads: usize,
        guard: impl Fn(&S::Snapshot<'_>) -> Result<()> + Sync,
    ) -> Result<Vec<Inconsistency>> {
        let snapshot = store.snapshot()?;
        guard(&snapshot)?;
        self.check(&snapshot, table)
    }

    /// Fixes every inconsistency in bounded transactions, concurrently with other writers. Also
    /// builds new data. Before the repair begins, attach the data to the table that writers use.
    ///
    /// Without a [`Schema`](crate::Schema), do not run two concurrent repairs of data that is not
    /// idempotent, such as [`Totals`](crate::Totals): both could add the same missing contribution.
    ///
    /// # Errors
    /// The errors of [`check`](Maintained::check).
    fn repair<S: Store, C: Codec<Self::Value>>(
        &self,
        store: &S,
        table: &Table<Self::Key, Self::Value, C>,
    ) -> Result<Progress> {
        self.repair_with(store, table, &RepairOptions::default(), |_| ControlFlow::Continue(()))
    }

    /// Like [`repair`](Maintained::repair), with options. Calls `progress` after each commit and
    /// stops if `progress` breaks. A repair that was stopped or killed can resume at the last
    /// [position](Progress::position); starting from the beginning is also safe.
    ///
    /// # Errors
    /// The errors of [`check`](Maintained::check);
    /// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) for a position of other data.
    fn repair_with<S: Store, C: Codec<Self::Value>>(
        &self,
        store: &S,
        table: &Table<Self::Key, Self::Value, C>,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress>;
}

/// Generates the methods of [`Maintained`]($crate::Maintained) that describe a kind of data derived
/// from records `V` with keys `K`: `described!("word index", format 2, options |it| it.options())`.
/// The method `space` delegates to the inherent method `space` of the type.
#[macro_export]
macro_rules! described {
    (
        $kind:expr $(, format $format:expr)? $(, parts $parts:expr)? $(, options $options:expr)?
        $(, deferred if $deferred:expr)?
    ) => {
        type Key = K;
        type Value = V;

        fn kind(&self) -> &'static str {
            let kind: fn(&Self) -> &'static str = $kind;
            kind(self)
        }

        $(fn format(&self) -> u32 {
            $format
        })?

        $(fn parts(&self) -> String {
            let parts: fn(&Self) -> String = $parts;
            parts(self)
        })?

        $(fn can_be_deferred(&self) -> bool {
            let can_be_deferred: fn(&Self) -> bool = $deferred;
            can_be_deferred(self)
        })?

        $(fn options(&self) -> String {
            let options: fn(&Self) -> String = $options;
            options(self)
        })?

        fn space(&self) -> &keyloom::Subspace {
            Self::space(self)
        }

        fn derived(&self) -> std::sync::Arc<dyn $crate::Derived<K, V>> {
            #[allow(unused_imports)]
            use $crate::derived::Attach as _;
            self.attached()
        }
    };
}
