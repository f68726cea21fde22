//! Shared errors: an [`Error`](super::Error) can be cloned although its sources cannot.

use std::error::Error as StdError;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// An error of another library, or of the program.
pub type BoxedError = Box<dyn StdError + Send + Sync + 'static>;

/// An error of another library, or of the program, that clones of an [`Error`](super::Error) share.
pub type SharedError = Shared<dyn StdError + Send + Sync + 'static>;

/// An error that cannot be cloned, so the clones of an [`Error`](super::Error) share it.
/// Dereferences to the shared error.
///
/// ```
/// use keyloom::SharedError;
/// let error = SharedError::from("the disk is on fire");
/// assert_eq!(error.clone().to_string(), "the disk is on fire");
/// ```
pub struct Shared<T: ?Sized>(Arc<T>);

impl<T: ?Sized> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: ?Sized> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: fmt::Debug + ?Sized> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: fmt::Display + ?Sized> fmt::Display for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<E: Into<BoxedError>> From<E> for SharedError {
    fn from(error: E) -> Self {
        Self(error.into().into())
    }
}

impl From<std::io::Error> for Shared<std::io::Error> {
    fn from(error: std::io::Error) -> Self {
        Self(error.into())
    }
}
