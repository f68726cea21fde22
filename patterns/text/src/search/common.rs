//! The intersection of several operands.

use keyloom::Result;

use super::window::END;

/// The first document at or after `target` that all operands have.
pub(super) fn common<T>(
    operands: &mut [T],
    target: u32,
    mut seek: impl FnMut(&mut T, u32) -> Result<u32>,
) -> Result<u32> {
    let Some((first, others)) = operands.split_first_mut() else { return Ok(END) };
    let mut doc = seek(first, target)?;
    'candidates: while doc != END {
        for other in others.iter_mut() {
            let next = seek(other, doc)?;
            if next > doc {
                doc = seek(first, next)?;
                continue 'candidates;
            }
        }
        return Ok(doc);
    }
    Ok(END)
}
