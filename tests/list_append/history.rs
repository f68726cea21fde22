//! What happened: everything that the writers of a campaign did and saw.
//!
//! The checker knows nothing but this. So a history can also be written by hand, which is how the
//! checker itself is tested.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

/// The number of a list.
pub type List = u32;

/// What is appended to a list. No element is appended twice, so an element names its writer.
pub type Element = u64;

/// One step of an attempt, with what the store answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation {
    /// The list was read, and written with `element` at its end.
    Append { list: List, found: Vec<Element>, element: Element, mark: Mark },
    /// The list was read, alone or with others in one `get_many`. One that is absent is empty.
    Read { list: List, found: Vec<Element> },
    /// All lists of a range were read at once; those that are not found were absent.
    ReadRange { lists: Range<List>, found: Vec<(List, Vec<Element>)> },
    /// The marks of a range of lists were read at once; those not found were absent.
    ReadMarks { lists: Range<List>, found: Vec<(List, Element)> },
}

/// What an append does with the mark of its list: a key beside it that comes and goes.
///
/// A list only grows, so it contains the order of its writes. A deleted key contains no history. So
/// each write of a mark comes with an append to its list in the same transaction, and the mark
/// holds the element. A transaction that reads the mark thus reads a version of the list; in a
/// serializable store the two always agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mark {
    /// Nothing. Most lists have no mark at all.
    #[default]
    Left,
    /// It is set to the element.
    Set,
    /// It is deleted.
    Deleted,
}

/// What became of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The store acknowledged the commit.
    Committed,
    /// The store said that nothing was kept.
    Aborted,
    /// The store was lost during the commit.
    Unknown,
}

/// One run of one transaction, committed or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub writer: usize,
    /// Just before the transaction began, and just after its outcome was there, in nanoseconds of a
    /// clock that all writers share.
    pub began: u64,
    pub ended: u64,
    pub operations: Vec<Operation>,
    pub outcome: Outcome,
    /// It read a snapshot, and was no transaction.
    pub by_snapshot: bool,
}

/// Everything that happened, and what was left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    pub attempts: Vec<Attempt>,
    /// What a transaction saw that began after the last attempt had ended.
    pub end: End,
}

/// What the store holds at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    pub lists: BTreeMap<List, Vec<Element>>,
    pub marks: BTreeMap<List, Element>,
}
