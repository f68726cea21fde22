//! A summary: the bounds of consecutive blocks, or of consecutive summaries of the layer below.

use super::{IdRange, Malformed, VERSION, bounds, varint};

/// The maximum number of units of a summary.
// A change of a block also rewrites its summary, so larger summaries cost more bytes written. With
// smaller summaries, a search reads more keys and layers.
pub(crate) const SUMMARY_UNITS: usize = 16;

/// Pairs of frequency and length that bound the scores of all postings, the greatest frequency
/// first.
pub(crate) type Bounds = Vec<(u32, u32)>;

/// The entry of a block or a lower summary in a summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    /// The last id of the range of the block or summary.
    pub(crate) last: u32,
    pub(crate) bounds: Bounds,
}

/// Encodes the units of a range.
pub(crate) fn encode_summary(range: IdRange, units: &[Unit]) -> Vec<u8> {
    let mut out = vec![(VERSION << 4) as u8, range.level(), units.len() as u8];
    let mut next = range.first();
    for Unit { last, bounds } in units {
        varint::write(last.wrapping_sub(next), &mut out);
        next = last.wrapping_add(1);
        out.push(bounds.len() as u8);
        for (frequency, length) in bounds {
            varint::write(*frequency, &mut out);
            varint::write(*length, &mut out);
        }
    }
    out
}

/// Decodes the summary that is stored under the id `last`, the end of its range.
pub(crate) fn decode_summary(bytes: &[u8], last: u32) -> Result<(IdRange, Vec<Unit>), Malformed> {
    let mut units = Vec::new();
    let range = each_unit(bytes, last, |last, bounds| {
        units.push(Unit { last, bounds: bounds.to_vec() });
    })?;
    Ok((range, units))
}

/// Passes the last id and the bounds of each unit of a summary to `visit`. Returns the range.
// This takes a visitor because a search reduces the bounds to scores at once. Allocating a vector
// for each of the 16 units took 10 % of the time of a query for a common term in 100,000 documents.
pub(crate) fn each_unit(
    mut bytes: &[u8],
    last: u32,
    mut visit: impl FnMut(u32, &[(u32, u32)]),
) -> Result<IdRange, Malformed> {
    let broken = Malformed::Broken;
    let (head, rest) = bytes.split_first_chunk::<3>().ok_or(broken("no header of a summary"))?;
    let [flags, level, many] = *head;
    match u32::from(flags >> 4) {
        VERSION if flags & 0x0F == 0 => {}
        newer if newer > VERSION => return Err(Malformed::Newer(newer)),
        _ => return Err(broken("the version of a summary")),
    }
    bytes = rest;
    let range = IdRange::ending_at(last, level).ok_or(broken("the range of a summary"))?;
    if many == 0 || usize::from(many) > SUMMARY_UNITS {
        return Err(broken("the number of units"));
    }
    let (mut bounds, mut next) = (Bounds::with_capacity(8), Some(range.first()));
    for _ in 0..many {
        let gap = varint::take(&mut bytes).ok_or(broken("a unit of a summary"))?;
        let last = next.and_then(|next| next.checked_add(gap)).filter(|last| range.contains(*last));
        let last = last.ok_or(broken("a unit outside of the range"))?;
        next = last.checked_add(1);
        let (count, rest) = bytes.split_first().ok_or(broken("the bounds of a unit"))?;
        bytes = rest;
        bounds.clear();
        for _ in 0..*count {
            let pair = varint::take(&mut bytes).zip(varint::take(&mut bytes));
            bounds.push(pair.ok_or(broken("the bounds of a unit"))?);
        }
        visit(last, &bounds);
    }
    match bytes {
        [] => Ok(range),
        _ => Err(broken("bytes after a summary")),
    }
}

/// The bounds of all units together.
pub(crate) fn merged_bounds<'u>(units: impl IntoIterator<Item = &'u Unit>) -> Bounds {
    let pairs = units.into_iter().flat_map(|unit| unit.bounds.iter().copied());
    bounds::best(pairs.collect())
}

/// Visits the units of each summary of a layer. A summary is a range with at most 16 units whose
/// parent has more. A layer with at most 16 units has no summaries.
pub(crate) fn divide_units(
    range: IdRange,
    units: &[Unit],
    visit: &mut impl FnMut(IdRange, &[Unit]),
) {
    if units.is_empty() || range == IdRange::ALL && units.len() <= SUMMARY_UNITS {
        return;
    }
    match range.halves().filter(|_| units.len() > SUMMARY_UNITS) {
        None => visit(range, units),
        Some([low, high]) => {
            let at = units.partition_point(|unit| unit.last <= low.last());
            let (before, after) = units.split_at_checked(at).unwrap_or((units, &[]));
            divide_units(low, before, visit);
            divide_units(high, after, visit);
        }
    }
}
