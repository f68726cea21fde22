//! Conformance: does a kind of derived data satisfy the laws that a [`Schema`](crate::Schema)
//! relies on?
//!
//! Needs the feature `conformance`. A test describes a kind with a [`Subject`]: how to create the
//! kind, some records, a query, and a model that computes the same query from the plain records.
//! [`check_maintained`] checks every [`Law`] for the kind. Like the suite for stores
//! ([`keyloom_conformance`]), this suite runs on any store.
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::ops::ControlFlow;
//! use std::sync::Arc;
//!
//! use keyloom::value::Codec;
//! use keyloom::{Memory, Reader, Result, Store, Subspace};
//! use keyloom_tables::conformance::{Subject, check_maintained};
//! use keyloom_tables::derived::{self, Attach, DerivedEntry};
//! use keyloom_tables::{
//!     Derived, DerivedEntries, Inconsistency, Maintained, Progress, RepairOptions, Table,
//! };
//!
//! /// The ids of the records of each length.
//! #[derive(Clone)]
//! struct Lengths(Subspace);
//!
//! impl DerivedEntries<u32, String> for Lengths {
//!     fn space(&self) -> &Subspace {
//!         &self.0
//!     }
//!     fn entries(&self, id: &u32, text: &String) -> Vec<DerivedEntry> {
//!         vec![(self.0.pack(&(text.len() as u64, *id)), Default::default())]
//!     }
//!     fn record_key(&self, key: &[u8], _: &[u8]) -> Result<u32> {
//!         Ok(self.0.unpack::<(u64, u32)>(key)?.1)
//!     }
//! }
//!
//! impl Maintained for Lengths {
//!     type Key = u32;
//!     type Value = String;
//!     fn kind(&self) -> &'static str {
//!         "lengths"
//!     }
//!     fn space(&self) -> &Subspace {
//!         &self.0
//!     }
//!     fn derived(&self) -> Arc<dyn Derived<u32, String>> {
//!         self.attached()
//!     }
//!     fn check<C: Codec<String>>(
//!         &self,
//!         reader: &impl Reader,
//!         table: &Table<u32, String, C>,
//!     ) -> Result<Vec<Inconsistency>> {
//!         let mut found = Vec::new();
//!         derived::check(self, table, reader, |fault| found.push(fault))?;
//!         Ok(found)
//!     }
//!     fn repair_with<S: Store, C: Codec<String>>(
//!         &self,
//!         store: &S,
//!         table: &Table<u32, String, C>,
//!         options: &RepairOptions,
//!         progress: impl FnMut(&Progress) -> ControlFlow<()>,
//!     ) -> Result<Progress> {
//!         derived::repair(self, table, store, options, progress)
//!     }
//! }
//!
//! struct LengthsOfWords;
//!
//! impl Subject for LengthsOfWords {
//!     type Key = u32;
//!     type Value = String;
//!     type Kind = Lengths;
//!     /// The number of words of each length from 0 to 4.
//!     type Answers = Vec<u64>;
//!
//!     fn make(&self, space: &Subspace) -> Result<Lengths> {
//!         Ok(Lengths(space.clone()))
//!     }
//!     fn record(&self, n: u32, version: u32) -> (u32, String) {
//!         (n, "w".repeat(((n + version) % 5) as usize))
//!     }
//!     fn answers(&self, lengths: &Lengths, reader: &impl Reader) -> Result<Vec<u64>> {
//!         let count = |length: u64| reader.count(lengths.0.child(&length).self_and_children());
//!         (0..5).map(count).collect()
//!     }
//!     fn model(&self, records: &BTreeMap<u32, String>) -> Vec<u64> {
//!         let count = |length| records.values().filter(|text| text.len() == length).count() as u64;
//!         (0..5).map(count).collect()
//!     }
//! }
//!
//! check_maintained(|| Ok(Memory::new()), &LengthsOfWords);
//! ```
//!
//! # What the suite compares
//!
//! | [`Fidelity`] | rebuilt and maintained data | records of the histories |
//! |---|---|---|
//! | [`Bytes`](Fidelity::Bytes) | equal bytes, and equal answers | put, changed and deleted |
//! | [`Answers`](Fidelity::Answers) | equal answers: the bytes depend on the history | put, changed and deleted |
//! | [`Growing`](Fidelity::Growing) | equal answers; `repair` may use one transaction | put once: the kind, such as sketches, cannot remove anything |
//!
//! The suite does not measure times or kill processes.

mod budget;
mod costs;
mod damage;
mod field;
mod life;
mod maintenance;
mod repairs;

use std::collections::BTreeMap;
use std::fmt;

use keyloom::{BoxedError, Error, Reader, Result, Store, Subspace};
pub use keyloom_conformance::{Fixture, With};
use keyloom_kit::RecordKey;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::derived::Maintained;

/// Checks every law for a kind, each law on its own store.
///
/// `make` returns an empty store, or a pair of a store and a value that must live as long as the
/// store, such as a temporary directory.
///
/// # Panics
/// If the kind breaks a law, or `make` fails. The message names each broken law.
pub fn check_maintained<T: Subject, F: Fixture<Store: Clone>>(
    make: impl Fn() -> Result<F, BoxedError>,
    subject: &T,
) {
    Suite::new().check(make, subject);
}

/// A kind of derived data under test.
pub trait Subject {
    /// The key of the records.
    type Key: RecordKey + Ord + Clone + fmt::Debug;
    /// The records. They are encoded with [`Postcard`](keyloom::value::Postcard).
    type Value: Clone + PartialEq + Serialize + DeserializeOwned + 'static;
    /// The kind.
    type Kind: Maintained<Key = Self::Key, Value = Self::Value>;
    /// The results of queries.
    type Answers: PartialEq + fmt::Debug;

    /// The data that the suite compares.
    const FIDELITY: Fidelity = Fidelity::Bytes;

    /// Returns the kind in `space`, and keeps no state between calls.
    ///
    /// # Errors
    /// The errors of the kind.
    fn make(&self, space: &Subspace) -> Result<Self::Kind>;

    /// Version `version` of record `n`. Different `n` have different keys; all versions of one `n`
    /// have the same key.
    ///
    /// Some of the versions from 0 to 40 should have the same derived data, some should have
    /// different derived data, and, if the kind allows it, some should have none. `n` is below 300.
    fn record(&self, n: u32, version: u32) -> (Self::Key, Self::Value);

    /// Queries the kind.
    ///
    /// # Errors
    /// The errors of the queries.
    fn answers(&self, kind: &Self::Kind, reader: &impl Reader) -> Result<Self::Answers>;

    /// The correct answers, computed from the records without the kind.
    fn model(&self, records: &BTreeMap<Self::Key, Self::Value>) -> Self::Answers;

    /// Whether an entry with this value is equivalent to a missing entry, such as a total of 0.
    /// `false` by default.
    fn is_neutral(&self, value: &[u8]) -> bool {
        let _ = value;
        false
    }
}

/// The data of a kind that the suite compares; see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fidelity {
    /// The same records give the same bytes.
    Bytes,
    /// The same records give the same answers.
    Answers,
    /// Like `Answers`, for a kind that adds records and cannot remove them.
    Growing,
}

/// The seed of the random histories.
///
/// ```
/// # use keyloom_tables::conformance::Suite;
/// let suite = Suite::new().seed(7);
/// # let _ = suite;
/// ```
#[derive(Clone, Debug)]
pub struct Suite {
    seed: u64,
}

impl Default for Suite {
    fn default() -> Self {
        Self { seed: 1 }
    }
}

impl Suite {
    /// A suite with the default seed: all runs check the same histories.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the seed of the random histories.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Checks every law and returns the violations in the order of [`Law::ALL`].
    ///
    /// # Errors
    /// The errors of `make`.
    pub fn run<T: Subject, F: Fixture<Store: Clone>>(
        &self,
        make: impl Fn() -> Result<F, BoxedError>,
        subject: &T,
    ) -> Result<Vec<Violation>, BoxedError> {
        let mut violations = Vec::new();
        for law in Law::ALL {
            let fixture = make()?;
            let outcome = law.hold(subject, fixture.store(), self.seed);
            violations.extend(outcome.err().map(|Finding(seen)| Violation { law, seen }));
        }
        Ok(violations)
    }

    /// Like [`run`](Suite::run), but panics with all violations.
    ///
    /// # Panics
    /// See [`check_maintained`].
    // Called by tests, like `assert!`.
    #[allow(clippy::panic)]
    pub fn check<T: Subject, F: Fixture<Store: Clone>>(
        &self,
        make: impl Fn() -> Result<F, BoxedError>,
        subject: &T,
    ) {
        match self.run(make, subject) {
            Ok(violations) if violations.is_empty() => {}
            Ok(violations) => {
                let lines: Vec<_> = violations.iter().map(|v| format!("\n* {v}")).collect();
                panic!("the kind breaks {} laws:{}", lines.len(), lines.concat());
            }
            Err(error) => panic!("the store under test cannot be made: {error}"),
        }
    }
}

/// A broken law, and the evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The law.
    pub law: Law,
    /// The observed and the correct data, as text.
    pub seen: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}: {}", self.law, self.law, self.seen)
    }
}

impl std::error::Error for Violation {}

/// A violation, without its law.
struct Finding(String);

impl From<Error> for Finding {
    fn from(error: Error) -> Self {
        Self(format!("an operation that should succeed failed: {error}"))
    }
}

type Outcome<T = ()> = std::result::Result<T, Finding>;

/// Returns a [`Finding`] unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::conformance::Finding(format!($($message)+)));
        }
    };
}
use ensure;

macro_rules! laws {
    ($($law:ident, $sentence:literal, $function:path;)+) => {
        /// A law of derived data. [`Display`](fmt::Display) states it as a sentence.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Law {
            $(#[doc = $sentence] $law,)+
        }

        impl Law {
            /// All laws. A kind that breaks an early law often breaks later laws too.
            pub const ALL: [Self; [$(Self::$law),+].len()] = [$(Self::$law),+];

            fn hold<T: Subject, S: Store + Clone>(self, subject: &T, store: &S, seed: u64) -> Outcome {
                match self {
                    $(Self::$law => $function(subject, store, seed),)+
                }
            }
        }

        impl fmt::Display for Law {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$law => $sentence,)+
                })
            }
        }
    };
}

laws! {
    Answers, "after each change of one record, queries answer like the model", maintenance::answers;
    Batches, "after each batch of changes, queries answer like the model", maintenance::batches;
    Budget, "within a budget, an answer is whole or refused", budget::whole_or_refused;
    Unchanged, "a put of an unchanged record writes no derived key", costs::unchanged;
    Growth, "the cost of a put does not grow with the number of records", costs::growth;
    Deterministic, "the same history leaves the same bytes", maintenance::deterministic;
    Records, "an update uses the given changes and does not read the table", maintenance::records;
    Rebuilt, "rebuilt data equal maintained data", maintenance::rebuilt;
    Lost, "deletion of a record that does not decode removes its derived data, or is refused", maintenance::lost;
    Faults, "a transaction with a fault is applied as a whole or not at all", maintenance::faults;
    Conflicts, "a transaction that runs again after a conflict has the same result", maintenance::conflicts;
    Quiet, "a check reports nothing about intact data", damage::quiet;
    Found, "a check reports damage, by its key and rule", damage::found;
    InSteps, "a check over short snapshots finds what a check in one snapshot finds", damage::in_steps;
    Fixed, "a repair fixes damage", damage::fixed;
    Untouched, "a repair writes no key of the records, of other data or of intact derived data", damage::untouched;
    Repairers, "two repairs beside each other and beside writers leave intact data", repairs::repairers;
    Bounded, "transactions of builds and repairs have a bounded size", repairs::bounded;
    Short, "a repair in transactions that end early fixes damage", repairs::short;
    Build, "a build beside writers leaves intact data", life::build;
    Deferred, "after each drain, deferred data are those of the records", life::deferred;
    Drop, "disabled data are not written, and dropped data leave no key", life::drop_data;
}
