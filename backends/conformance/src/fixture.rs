//! What a check runs on: a store, with the resources that it needs.

use keyloom::{BoxedError, Store};

/// A store under test, with the resources that must live as long as it: the store alone, a pair, or
/// [`Reopening`].
///
/// The test of a store that can do more implements it for a type of its own:
///
/// ```
/// use keyloom_conformance::Fixture;
/// use keyloom::{Fault, Faulty, Memory};
/// struct Failing(Faulty<Memory>);
///
/// impl Fixture for Failing {
///     type Store = Faulty<Memory>;
///
///     fn store(&self) -> &Faulty<Memory> {
///         &self.0
///     }
///
///     fn fail_read_after(&self, reads: Option<usize>) -> bool {
///         match reads {
///             Some(reads) => self.0.fail_at(reads as u64, Fault::Error),
///             None => self.0.clear_fault(),
///         }
///         true
///     }
/// }
///
/// keyloom_conformance::check(|| Ok(Failing(Faulty::new(Memory::new()))));
/// ```
pub trait Fixture: Sized {
    /// The type of the store.
    type Store: Store;

    /// The store.
    fn store(&self) -> &Self::Store;

    /// Closes the store and opens it again. `None`, the default, if its data ends with it.
    ///
    /// # Errors
    /// The error of the store.
    fn reopen(self) -> Result<Option<Self>, BoxedError> {
        Ok(None)
    }

    /// Lets the engine fail once, after this number of further reads: calls, and entries that an
    /// iterator fetches. `None` removes a failure that has not happened. Returns whether it can;
    /// `false` by default.
    fn fail_read_after(&self, reads: Option<usize>) -> bool {
        let _ = reads;
        false
    }
}

impl<S: Store> Fixture for S {
    type Store = S;

    fn store(&self) -> &S {
        self
    }
}

/// A store, and what it needs and must outlive it, such as its directory.
///
/// Not a pair: a future version of `keyloom` may implement [`Store`] for one.
///
/// ```
/// use keyloom::Lmdb;
/// use keyloom_conformance::With;
/// keyloom_conformance::check(|| {
///     let directory = tempfile::tempdir()?;
///     Ok(With(Lmdb::open(directory.path())?, directory))
/// });
/// ```
#[derive(Debug)]
pub struct With<S, T>(pub S, pub T);

impl<S: Store, T> Fixture for With<S, T> {
    type Store = S;

    fn store(&self) -> &S {
        &self.0
    }
}

/// A store that can be closed and opened again, and the resource that stays in between, such as its
/// directory.
///
/// ```
/// use keyloom::Lmdb;
/// use keyloom_conformance::Reopening;
/// keyloom_conformance::check(|| {
///     Reopening::open(tempfile::tempdir()?, |directory| Ok(Lmdb::open(directory.path())?))
/// });
/// ```
#[derive(Debug)]
pub struct Reopening<S, R, O> {
    // Dropped first.
    store: S,
    resource: R,
    open: O,
}

impl<S: Store, R, O: Fn(&R) -> Result<S, BoxedError>> Reopening<S, R, O> {
    /// Opens a store with what stays when it is closed.
    ///
    /// # Errors
    /// The error of `open`.
    pub fn open(resource: R, open: O) -> Result<Self, BoxedError> {
        Ok(Self { store: open(&resource)?, resource, open })
    }
}

impl<S: Store, R, O: Fn(&R) -> Result<S, BoxedError>> Fixture for Reopening<S, R, O> {
    type Store = S;

    fn store(&self) -> &S {
        &self.store
    }

    fn reopen(self) -> Result<Option<Self>, BoxedError> {
        let Self { store, resource, open } = self;
        drop(store);
        Self::open(resource, open).map(Some)
    }
}
