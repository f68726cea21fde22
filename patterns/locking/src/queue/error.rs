//! Errors of a work queue.

use keyloom::Error;

use super::job::JobId;

/// Why a [`WorkQueue`](super::WorkQueue) refuses an operation. Returned in an
/// [`Error::Other`](keyloom::Error::Other).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// The consumer no longer has the job. Discard the work: return the error from the transaction,
    /// so that its other writes are rolled back.
    #[error(
        "the delivery {token} of job {id} is stale: {reason}; discard its work, and extend the lease of long work in time"
    )]
    Stale {
        /// The job.
        id: JobId,
        /// The token of the delivery.
        token: u64,
        /// What happened to the job.
        reason: Stale,
    },
    /// The job is not a dead letter.
    #[error("job {id} is not a dead letter: it {state}; list the dead letters")]
    NotDead {
        /// The job.
        id: JobId,
        /// The state of the job.
        state: &'static str,
    },
}

/// What happened to a job after a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stale {
    /// The job was completed or deleted.
    #[error("the job was completed or deleted")]
    Gone,
    /// The lease ended, and the job was delivered again.
    #[error("the job was delivered again with token {token}")]
    DeliveredAgain {
        /// The token of the last delivery.
        token: u64,
    },
    /// The delivery was failed, released or made a dead letter.
    #[error("the delivery was already given back")]
    GivenBack,
}

impl From<QueueError> for Error {
    fn from(error: QueueError) -> Self {
        Self::other(error)
    }
}
