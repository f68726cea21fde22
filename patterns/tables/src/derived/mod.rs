//! Derived data: how is derived data of any kind maintained, checked and repaired?
//!
//! An index entry, a counter, a spatial cell, a denormalized field: all of them are *derived data*.
//! They follow from records, and are stored beside them because a query needs them in another
//! order. keyloom has one mechanism for all of them:
//!
//! * [`Derived`]: receives every change of a record (its old and its new value, either may be
//!   absent), and updates its data within the same transaction.
//! * [`DerivedEntries`]: if the derived data are plain entries, a function from a record to its
//!   entries is enough. This module then writes only the difference between the entries of the old
//!   and the new value. It also [checks](check()) and [repairs](repair()) the entries, since the
//!   function gives the entries that *should* exist.
//!
//! Derived data that is not plain entries, such as a count over many records, has a check and a
//! repair of its own, with the same names: see [`Totals`](crate::Maintained::repair).
//!
//! All derived data obeys one law, which a property test per pattern verifies: **rebuilt from
//! scratch equals maintained step by step**.
//!
//! # Cost
//!
//! Maintenance of plain entries reads nothing, and writes one key per entry that appears,
//! disappears or changes; the entries of many records are written in the order of their keys. Over
//! n records and m entries, in chunks of c (1,000 unless the options of a repair say otherwise):
//!
//! | operation | reads | round trips |
//! |---|---|---|
//! | [`check`](check()) | each record and each entry, and one get of the matching entry or record of each | 2 (n/c + m/c), rounded up |
//! | [`repair`](repair()) | the same | 3 (n/c + m/c), rounded up: one more per chunk, for the commit |

mod check;
mod elsewhere;
mod maintained;
mod repair;

pub use check::check;
pub use elsewhere::Elsewhere;
#[doc(inline)]
pub use keyloom_kit::derived::{
    Attach, Derived, DerivedEntries, DerivedEntry, LostRecords, RecordChange, SortedWrites,
};
pub use keyloom_kit::{RepairOptions, RepairPosition};
pub use maintained::Maintained;
pub use repair::repair;
