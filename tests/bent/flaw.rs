//! The mistakes.

/// One mistake that stores are known to make. Everything else of a [`Bent`](crate::Bent) store is
/// right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// No mistake: the control.
    None,
    /// The last write of a transaction of three and more is lost.
    LostWrite,
    /// A snapshot shows what is not committed yet.
    DirtyRead,
    /// A snapshot shows what was committed after it was taken.
    MovingSnapshot,
    /// Keys are ordered as signed bytes.
    SignedOrder,
    /// A prefix range ends at the prefix and `FF`, and so loses keys that continue with `FF`.
    LostFf,
    /// An excluded end is included.
    InclusiveEnd,
    /// A committed delete is not done.
    ForgottenDelete,
    /// A descending range with an end begins one key too late.
    ReverseOffByOne,
    /// Each seventh commit is not done, and reported as if it were.
    ForgottenCommit,
    /// Each seventh commit is done, and reported as a conflict.
    DeniedCommit,
    /// Half of the writes of a commit are kept, the first half.
    CommitHalfDone,
    /// A commit shows its first half before its second.
    CommitInTwoSteps,
    /// Transactions run side by side and nothing is compared.
    LostUpdate,
    /// Snapshot isolation: of transactions side by side, only the writes are compared.
    WriteSkew,
    /// Reads of ranges are not remembered: a key that appears in one is no conflict.
    Phantom,
    /// After its end an iterator begins again.
    ResumesAfterTheEnd,
    /// To a get of a key that is too long the answer is "absent".
    LongKeyAbsent,
    /// A key of 512 bytes is cut to 511.
    LongKeyCut,
    /// A bound as long as the longest key, or longer, is an error.
    LongBoundRefused,
    /// A transaction that is dropped is committed.
    RollbackKeeps,
    /// When a commit conflicts, its first write stays.
    ConflictKeeps,
    /// A page begins at the incremented last key: behind `a` it skips `aa`.
    PageSkips,
    /// Counters are big-endian.
    BigEndianCounter,
    /// `min` and `max` compare as signed numbers.
    SignedMinMax,
    /// Ranges of a transaction do not show its own writes.
    BlindRanges,
    /// `delete_range` keeps the first key.
    DeleteRangeKeepsFirst,
    /// `get_many` answers in the order of the keys' bytes.
    SortedBatch,
    /// An empty value reads as absent.
    EmptyIsAbsent,
    /// Values are cut at 64 KiB.
    CutValue,
    /// An error of the body is swallowed, and what it wrote is committed.
    ErrorCommits,
}
