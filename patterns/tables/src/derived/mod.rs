//! Derived data: how is derived data of any kind maintained, checked and repaired?
//!
//! An index entry, a counter, a spatial cell, a denormalized field: all of them are *derived data*.
//! Such data is computed from records, and is stored in addition to them because a query needs
//! another order. keyloom has one mechanism for all kinds:
//!
//! * [`Derived`]: receives every change of a record (the old and the new value, either may be
//!   absent), and updates the derived data within the same transaction.
//! * [`DerivedEntries`]: if the derived data consists of plain entries, a function from a record to
//!   its entries is enough. This module then writes only the difference between the entries of the
//!   old value and those of the new value. It also [checks](check()) and [repairs](repair()) the
//!   entries, since the function gives the entries that *should* exist.
//!
//! Other derived data, such as a count over many records, has its own check and repair, with the
//! same names: see [`Totals`](crate::Maintained::repair).
//!
//! One law holds for all derived data, and a property test per pattern verifies it: **data rebuilt
//! from scratch equals data maintained step by step**.
//!
//! # Cost
//!
//! Maintenance of plain entries reads nothing, and writes one key per entry that is added, removed
//! or changed. The entries of many records are written in the order of their keys. For n records
//! and m entries, in chunks of c (1,000 unless the options of a repair say otherwise):
//!
//! | operation | reads | round trips |
//! |---|---|---|
//! | [`check`](check()) | each record and each entry, with one get for the matching entry or record | 2 (n/c + m/c), rounded up |
//! | [`repair`](repair()) | the same | 3 (n/c + m/c), rounded up: one more per chunk, for the commit |

mod check;
mod elsewhere;
mod maintained;
mod repair;

pub use check::{check, check_in_parallel};
pub use elsewhere::Elsewhere;
#[doc(inline)]
pub use keyloom_kit::derived::{
    Attach, Derived, DerivedEntries, DerivedEntry, LostRecords, RecordChange, SortedWrites,
};
pub use keyloom_kit::{RepairOptions, RepairPosition};
pub use maintained::Maintained;
pub use repair::repair;
