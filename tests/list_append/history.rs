//! The history: all operations and results of the writers of a campaign.
//!
//! This is the only input of the checker. So a history can also be written by hand, which is how
//! the checker itself is tested.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

/// The number of a list.
pub type List = u32;

/// An appended value. No element is appended twice, so an element identifies its writer.
pub type Element = u64;

/// One step of an attempt, with the result from the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation {
    /// The list was read, and written with `element` at its end.
    Append { list: List, found: Vec<Element>, element: Element, mark: Mark },
    /// The list was read, alone or with others in one `get_many`. An absent list counts as empty.
    Read { list: List, found: Vec<Element> },
    /// All lists of a range were read at once; lists that are not in `found` were absent.
    ReadRange { lists: Range<List>, found: Vec<(List, Vec<Element>)> },
    /// The marks of a range of lists were read at once; marks that are not in `found` were absent.
    ReadMarks { lists: Range<List>, found: Vec<(List, Element)> },
}

/// The change that an append makes to the mark of its list, a separate key that is set and deleted.
///
/// A list only grows, so it contains the order of its writes. A deleted key contains no history. So
/// each write of a mark comes with an append to its list in the same transaction, and the mark
/// contains the element. Reading the mark therefore amounts to reading a version of the list; in a
/// serializable store the two always agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mark {
    /// No change. Most lists have no mark at all.
    #[default]
    Left,
    /// The mark is set to the element.
    Set,
    /// The mark is deleted.
    Deleted,
}

/// The outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The store acknowledged the commit.
    Committed,
    /// The store reported that nothing was committed.
    Aborted,
    /// The connection to the store was lost during the commit.
    Unknown,
}

/// One run of a transaction, committed or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub writer: usize,
    /// The time just before the transaction began, in nanoseconds of a clock that all writers
    /// share. `ended` is the time just after its outcome was known.
    pub began: u64,
    pub ended: u64,
    pub operations: Vec<Operation>,
    pub outcome: Outcome,
    /// Whether the attempt read a snapshot instead of running a transaction.
    pub by_snapshot: bool,
}

/// All attempts, and the final state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    pub attempts: Vec<Attempt>,
    /// The reads of a transaction that began after the last attempt had ended.
    pub end: End,
}

/// The contents of the store at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    pub lists: BTreeMap<List, Vec<Element>>,
    pub marks: BTreeMap<List, Element>,
}
