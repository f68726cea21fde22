//! Errors of feeds.

use keyloom::key::display;
use keyloom::{Error, Result, SharedError, Subspace};

/// An error of a [`Feed`](crate::Feed) or of a consumer. It is wrapped in an [`Error::Other`];
/// unwrap it with [`Error::downcast_ref`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FeedError {
    /// The next change is no longer there: the feed [keeps](crate::Feed::keep_at_most) fewer, or the
    /// consumer was started before the first one. Copy the table, and start the consumer at the
    /// number of the copy.
    #[error(
        "the changes {from} to {} of the feed {feed} were removed; copy the table, and start the consumer at the feed's last number in the snapshot of the copy",
        first - 1
    )]
    Removed {
        /// The subspace of the feed.
        feed: String,
        /// The number of the next change.
        from: u64,
        /// The number of the first change that is there.
        first: u64,
    },
    /// A change does not decode. Acknowledge its number to skip it; the record may have to be
    /// compared.
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
    /// The consumer has no position. [Start](crate::feed::Consumer::start) it: at 0 for all changes
    /// that are there.
    #[error("the consumer {consumer} of the feed {feed} was not started; call `start`")]
    NotStarted {
        /// The subspace of the feed.
        feed: String,
        /// The name of the consumer.
        consumer: String,
    },
    /// The consumer has a position already. To move it, use
    /// [`seek`](crate::feed::Consumer::seek).
    #[error(
        "the consumer {consumer} of the feed {feed} is at change {position} already; `seek` moves it"
    )]
    AlreadyStarted {
        /// The subspace of the feed.
        feed: String,
        /// The name of the consumer.
        consumer: String,
        /// The number that it has acknowledged.
        position: u64,
    },
    /// The number is larger than that of the newest change.
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
    /// The consumer is divided into another number of shares. Remove it, and start all shares at
    /// one number.
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

/// A subspace in a message.
pub(super) fn shown(feed: &Subspace) -> String {
    display(feed.prefix()).to_string()
}

impl FeedError {
    pub(super) fn removed<T>(feed: &Subspace, from: u64, first: u64) -> Result<T> {
        Err(Error::other(Self::Removed { feed: shown(feed), from, first }))
    }

    pub(super) fn damaged<T>(key: &[u8], number: u64, source: Error) -> Result<T> {
        // What a newer program wrote is not damaged.
        if matches!(source, Error::NewerFormat { .. }) {
            return Err(source.at(key));
        }
        let key = display(key).to_string();
        Err(Error::other(Self::Damaged { key, number, source: source.into() }))
    }
}
