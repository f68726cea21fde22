//! The fixture of a check: a store with the resources that it needs.

use keyloom::{BoxedError, Store};

/// A store under test, with the resources that must live as long as the store: the store alone,
/// [`With`] resources, or [`Reopening`].
///
/// To support more kinds of checks, implement the trait for a type of your own:
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

    /// Closes the store and opens it again. `None`, the default, if the data does not outlive the
    /// store.
    ///
    /// # Errors
    /// The error of the store.
    fn reopen(self) -> Result<Option<Self>, BoxedError> {
        Ok(None)
    }

    /// Makes the engine fail once, after this number of further reads. Calls count as reads, and so
    /// do entries that an iterator fetches. `None` cancels a failure that has not happened yet.
    /// Returns whether the fixture supports failures; `false` by default.
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

/// A store, and resources that must outlive the store, such as its directory.
///
/// `With` is a type of its own because a future version of `keyloom` may implement [`Store`] for
/// pairs.
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

/// A store that can be closed and opened again, and the resource that remains in between, such as
/// its directory.
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
    /// Opens a store on a resource that remains when the store is closed.
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
