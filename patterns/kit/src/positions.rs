//! The positions at which work in bounded transactions resumes: after the last visited key of a
//! subspace.

use keyloom::key::display_named;
use keyloom::{EntryPage, Error, Order, Reader, Result, Subspace};

/// At most `limit` entries of `space` after the key `last`, which must be in `space`.
///
/// # Errors
/// [`Error::InvalidArgument`] for a key of another subspace; any error of the store.
pub fn page_behind<'r, R: Reader>(
    last: Option<&[u8]>,
    reader: &'r R,
    space: &Subspace,
    limit: usize,
) -> Result<EntryPage<R::Bytes<'r>>> {
    refuse_foreign(space, last)?;
    let all = space.self_and_children();
    let rest = match last {
        None => all,
        Some(last) => all.resume(Order::Ascending, last),
    };
    reader.page(rest, Order::Ascending, limit)
}

/// Returns an error if `last`, the position at which to resume, is outside of `space`.
///
/// # Errors
/// [`Error::InvalidArgument`] for a key of another subspace.
pub fn refuse_foreign(space: &Subspace, last: Option<&[u8]>) -> Result<()> {
    match last.filter(|last| !space.self_and_children().contains(last)) {
        None => Ok(()),
        Some(last) => Err(Error::InvalidArgument {
            what: "the position to resume at",
            value: display_named(last).to_string(),
            why: "it belongs to another repair; begin this one again",
        }),
    }
}
