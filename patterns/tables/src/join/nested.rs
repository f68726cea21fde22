//! The nested-loop join, which pairs each row with the rows that a function returns for it.

use keyloom::Result;
use keyloom_kit::until_error;

/// Pairs each row with each row that `open` returns for it, or with `None`.
pub(super) fn pairs<T: Clone, U, J: Iterator<Item = Result<U>>>(
    mut rows: impl Iterator<Item = Result<T>>,
    mut open: impl FnMut(&T) -> Result<J>,
) -> impl Iterator<Item = Result<(T, Option<U>)>> {
    // A left row, the rest of its right rows, and whether a pair of this row was returned.
    let mut current: Option<(T, J, bool)> = None;
    until_error(move || {
        loop {
            if let Some((row, mut found, was_paired)) = current.take() {
                match found.next().transpose()? {
                    Some(right) => {
                        // If the size hint says that no right rows are left, the last pair takes
                        // the row itself instead of a clone.
                        if found.size_hint().1 != Some(0) {
                            current = Some((row.clone(), found, true));
                        }
                        return Ok(Some((row, Some(right))));
                    }
                    None if !was_paired => return Ok(Some((row, None))),
                    None => {}
                }
            }
            let Some(row) = rows.next().transpose()? else { return Ok(None) };
            let found = open(&row)?;
            current = Some((row, found, false));
        }
    })
}
