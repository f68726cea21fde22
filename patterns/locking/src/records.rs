//! The stored records of locks.

use serde::{Deserialize, Serialize};

use crate::Lock;

/// A session: the owner of locks, as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// The human-readable name of the owner.
    pub name: String,
    /// When the session began, in milliseconds since 1970.
    pub started: u64,
    /// When the lease ends without a renewal, in milliseconds since 1970.
    pub expires: u64,
    /// How long the locks remain after the end of the lease, in milliseconds.
    pub grace: u64,
}

impl SessionRecord {
    /// When other sessions may take the locks.
    pub(crate) fn dead_at(&self) -> u64 {
        self.expires.saturating_add(self.grace)
    }
}

/// The key of a request: the id of its session, and its ticket.
pub(crate) type RequestKey = (u64, u64);

/// A request for locks, all granted together or waiting together, as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The locks.
    pub locks: Vec<Lock>,
    /// The fencing token, 0 while the request waits.
    pub token: u64,
    /// When the request was made or granted, in milliseconds since 1970.
    pub since: u64,
}

impl Request {
    /// The locks.
    pub fn locks(&self) -> &[Lock] {
        &self.locks
    }

    /// Whether the locks are held.
    pub fn is_granted(&self) -> bool {
        self.token > 0
    }

    /// The locks as text.
    pub(crate) fn shown(&self) -> String {
        shown(&self.locks)
    }
}

/// The record of unfinished work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// The name of the operation.
    pub operation: String,
    /// The argument of the operation, in the encoding of the operation.
    pub argument: Vec<u8>,
    /// The progress so far, in the encoding of the operation; empty at the beginning.
    pub position: Vec<u8>,
    /// Whether the committed steps are being undone.
    pub is_rolling_back: bool,
    /// When the work began, in milliseconds since 1970.
    pub started: u64,
    /// How many times the work was taken over.
    pub takeovers: u32,
}

/// Locks as text.
pub(crate) fn shown(locks: &[Lock]) -> String {
    locks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
