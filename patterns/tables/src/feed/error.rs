//! Errors of feeds.

use keyloom::key::display;
use keyloom::{Error, Result, SharedError, Subspace};

/// An error of a [`Feed`](crate::Feed) or of a consumer. It is wrapped in an [`Error::Other`];
/// unwrap it with [`Error::downcast_ref`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FeedError {
    /// The next change was removed: the feed [keeps](crate::Feed::keep_at_most) fewer changes, or
    /// the consumer was started at a number before the first remaining change. Copy the table, and
    /// start the consumer at the [last number](crate::Feed::last) in the snapshot of the copy.
    #[error(
        "the changes {from} to {} of the feed {feed} were removed; copy the table, and start the consumer at the feed's last number in the snapshot of the copy",
        first - 1
    )]
    Removed {
        /// The subspace of the feed.
        feed: String,
        /// The number of the next change.
        from: u64,
        /// The number of the first remaining change.
        first: u64,
    },
    /// A change does not decode. Acknowledge its number to skip the change. The consumer has then
    /// missed a change, and may have to compare its data with the record.
    #[error(
        "change {number} of a feed, at key {key}, does not decode: {source}; acknowledge {number} to skip it"
    )]
    Damaged {
        /// The key of the change.
        key: String,
        /// The number of the change.
        number: u64,
        /// The error.
        source: SharedError,
    },
    /// The consumer has no position. [Start](crate::feed::Consumer::start) the consumer, for
    /// example at 0 for all changes.
    #[error("the consumer {consumer} of the feed {feed} was not started; call `start`")]
    NotStarted {
        /// The subspace of the feed.
        feed: String,
        /// The name of the consumer.
        consumer: String,
    },
    /// The consumer already has a position. To move the position, use
    /// [`seek`](crate::feed::Consumer::seek).
    #[error(
        "the consumer {consumer} of the feed {feed} is at change {position} already; `seek` moves it"
    )]
    AlreadyStarted {
        /// The subspace of the feed.
        feed: String,
        /// The name of the consumer.
        consumer: String,
        /// The number of the last acknowledged change.
        position: u64,
    },
    /// The number is larger than the number of the newest change.
    #[error(
        "there is no change {number} in the feed {feed}, whose newest change is {last}; pass the number of a change that was polled, or {last} for its end"
    )]
    NoSuchChange {
        /// The subspace of the feed.
        feed: String,
        /// The number.
        number: u64,
        /// The number of the newest change.
        last: u64,
    },
    /// The consumer is divided into a different number of shares. Remove the consumer, and start
    /// all shares at the same number.
    #[error(
        "the consumer {consumer} of the feed {feed} has {stored} shares, not {shares}; remove it and start all shares at one number"
    )]
    OtherShares {
        /// The subspace of the feed.
        feed: String,
        /// The name of the consumer.
        consumer: String,
        /// The number of shares in the store.
        stored: u32,
        /// The number of shares of this handle.
        shares: u32,
    },
}

/// Formats a subspace for a message.
pub(super) fn shown(feed: &Subspace) -> String {
    display(feed.prefix()).to_string()
}

impl FeedError {
    pub(super) fn removed<T>(feed: &Subspace, from: u64, first: u64) -> Result<T> {
        Err(Error::other(Self::Removed { feed: shown(feed), from, first }))
    }

    pub(super) fn damaged<T>(key: &[u8], number: u64, source: Error) -> Result<T> {
        // A change in a newer format is not damaged.
        if matches!(source, Error::NewerFormat { .. }) {
            return Err(source.at(key));
        }
        let key = display(key).to_string();
        Err(Error::other(Self::Damaged { key, number, source: source.into() }))
    }
}
