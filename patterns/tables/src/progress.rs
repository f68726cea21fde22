//! How long work is cut into transactions, and what it reports.

use keyloom::KeyBuf;

/// How a repair, or other work in bounded transactions, proceeds.
#[derive(Clone, Debug)]
pub struct RepairOptions {
    /// The largest number of records or entries that one transaction visits. Default: 1,000. If a
    /// store refuses a batch as too large, it is halved until it fits; see
    /// [`BatchSize`](crate::BatchSize).
    pub batch: usize,
    /// Where to resume; `None` begins.
    pub resume: Option<RepairPosition>,
}

impl Default for RepairOptions {
    fn default() -> Self {
        Self { batch: 1_000, resume: None }
    }
}

/// What a repair is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RepairPhase {
    /// Visiting the records and writing entries that are missing or wrong.
    #[default]
    Records,
    /// Visiting the entries and removing those that no record makes.
    Entries,
}

/// Where work in bounded transactions is: everything up to `last` in `phase` is done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairPosition {
    /// What it was doing.
    pub phase: RepairPhase,
    /// The last key that it visited, `None` at the beginning of the phase.
    pub last: Option<KeyBuf>,
}

/// What work in bounded transactions has done so far: a repair, a build, a drain, a drop, a
/// propagation of copies, a collection of versions.
///
/// A function that takes a `progress` calls it after each commit and stops if that returns
/// [`ControlFlow::Break`](std::ops::ControlFlow::Break).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Whether the work is complete.
    pub finished: bool,
    /// Where it is, for [`RepairOptions::resume`]. Builds, drains, drops and propagations keep
    /// their position in the store and resume by themselves.
    pub position: RepairPosition,
    /// Records visited.
    pub records: u64,
    /// Entries visited.
    pub entries: u64,
    /// Keys written.
    pub written: u64,
    /// Keys removed.
    pub removed: u64,
    /// Entries left to another record that makes them too; see
    /// [`Rule::Contested`](crate::Rule::Contested).
    pub contested: u64,
    /// Records that do not decode, whose entries are left as they are; see
    /// [`Rule::Undecodable`](crate::Rule::Undecodable).
    pub undecodable: u64,
}

impl Progress {
    /// Nothing left to do.
    #[doc(hidden)]
    pub fn complete() -> Self {
        Self { finished: true, ..Self::default() }
    }

    /// Nothing done yet, and about to go on where the options say.
    #[doc(hidden)]
    pub fn beginning(options: &RepairOptions) -> Self {
        Self::at(options.resume.clone().unwrap_or_default())
    }

    /// Nothing done yet, and about to go on at `position`.
    pub(crate) fn at(position: RepairPosition) -> Self {
        Self { position, ..Self::default() }
    }

    /// What this work and a second one after it have done together; it is where the second one is.
    pub(crate) fn followed_by(&self, second: &Self) -> Self {
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
