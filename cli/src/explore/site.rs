//! The store that the explorer shows.

use keyloom::AnyStore;

use super::guard::Guard;

/// What the server shows.
pub struct Site {
    /// The store.
    pub store: AnyStore,
    /// The address of the store, without a password.
    pub address: String,
    /// The check of requests.
    pub guard: Guard,
}
