//! The options and the progress of work in bounded transactions.

use keyloom::KeyBuf;

/// The options of a repair, or of other work in bounded transactions.
#[derive(Clone, Debug)]
pub struct RepairOptions {
    /// The largest number of records or entries that one transaction visits. Default: 1,000. If the
    /// store refuses a batch as too large, the batch is halved until the store accepts it; see
    /// [`BatchSize`](crate::BatchSize).
    pub batch: usize,
    /// The position at which to resume; `None` starts from the beginning.
    pub resume: Option<RepairPosition>,
}

impl Default for RepairOptions {
    fn default() -> Self {
        Self { batch: 1_000, resume: None }
    }
}

/// The position of work in bounded transactions: everything up to `last` is done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairPosition {
    /// The index of the part, from 0, if the work has several parts; see [`Stages`](crate::Stages).
    pub stage: u32,
    /// The phase of the work. If `false`, the work visits the records and writes missing or wrong
    /// entries. If `true`, it visits the entries and removes those that no record makes.
    pub entries: bool,
    /// The last visited key, `None` at the beginning of the records or of the entries.
    pub last: Option<KeyBuf>,
}

/// The work done so far in bounded transactions: by a repair, a build, a drain, a drop, a
/// propagation of denormalized fields, a sweep of garbage, or a move or a deletion in a tree.
///
/// A function with a `progress` argument calls it after each commit and stops if `progress` returns
/// [`ControlFlow::Break`](std::ops::ControlFlow::Break).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Whether the work is complete.
    pub finished: bool,
    /// The current position, for [`RepairOptions::resume`]. Builds, drains, drops, propagations,
    /// and moves and deletions in trees keep their position in the store and resume there without
    /// this option.
    pub position: RepairPosition,
    /// Records visited.
    pub records: u64,
    /// Entries visited.
    pub entries: u64,
    /// Keys written.
    pub written: u64,
    /// Keys removed.
    pub removed: u64,
    /// Entries left unchanged because they belong to another record that also makes them; see
    /// [`Rule::Contested`](crate::Rule::Contested).
    pub contested: u64,
    /// Records that do not decode, whose entries are left unchanged; see
    /// [`Rule::Undecodable`](crate::Rule::Undecodable).
    pub undecodable: u64,
}

impl Progress {
    /// Progress of work that is already complete.
    pub fn complete() -> Self {
        Self { finished: true, ..Self::default() }
    }

    /// No work done yet, at the position in the options.
    pub fn beginning(options: &RepairOptions) -> Self {
        Self::at(options.resume.clone().unwrap_or_default())
    }

    /// No work done yet, at `position`.
    pub fn at(position: RepairPosition) -> Self {
        Self { position, ..Self::default() }
    }

    /// Keys written and removed.
    pub fn changed(&self) -> u64 {
        self.written + self.removed
    }

    /// The sum of the numbers of this progress and of `second`. The position and `finished` are
    /// those of `second`.
    #[must_use]
    pub fn followed_by(&self, second: &Self) -> Self {
        Self {
            finished: second.finished,
            position: second.position.clone(),
            records: self.records + second.records,
            entries: self.entries + second.entries,
            written: self.written + second.written,
            removed: self.removed + second.removed,
            contested: self.contested + second.contested,
            undecodable: self.undecodable + second.undecodable,
        }
    }
}
