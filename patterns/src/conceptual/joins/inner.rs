//! The inner form of every join.

use keyloom::Result;

/// The rows of a left outer join that match something.
#[derive(Debug)]
pub struct Inner<J>(pub(super) J);

impl<T, U, J: Iterator<Item = Result<(T, Option<U>)>>> Iterator for Inner<J> {
    type Item = Result<(T, U)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.0.next()? {
                Ok((left, Some(right))) => return Some(Ok((left, right))),
                Ok((_, None)) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
