//! Reports through the direct index: what each id of an audience has.

use keyloom::{KeyBuf, Reader, Result};

use super::window::Window;
use crate::explain::Explain;
use crate::general::inverted_index::InvertedIndex;
use crate::general::inverted_index::index::{DirectEntry, PackedValues};
use crate::table::RecordKey;

/// How many ids are asked for together.
const TOGETHER: usize = 1_024;

/// Visits what each id of the window has in the direct index.
pub(super) fn for_each_entry<K: RecordKey, V, R: Reader>(
    index: &InvertedIndex<K, V>,
    reader: &R,
    window: &Window,
    mut visit: impl FnMut(&DirectEntry<R::Bytes<'_>>) -> Result<()>,
) -> Result<Explain> {
    let (mut explain, mut ids) = (Explain::default(), Vec::with_capacity(TOGETHER));
    let mut all = window.ids();
    loop {
        ids.clear();
        ids.extend(all.by_ref().take(TOGETHER));
        if ids.is_empty() {
            return Ok(explain);
        }
        explain.seeks += ids.len() as u64;
        let entries = index.direct_many(reader, &ids)?;
        for (id, entry) in ids.iter().zip(&entries) {
            let Some(entry) = entry else { continue };
            explain.keys_scanned += 1;
            visit(entry).map_err(|error| index.at_direct(*id, error))?;
        }
    }
}

/// Visits every combination of one value of each field, packed one behind the other.
pub(super) fn combinations(
    fields: &[PackedValues<'_>],
    group: &mut KeyBuf,
    visit: &mut impl FnMut(&[u8]),
) -> Result<()> {
    let Some((field, others)) = fields.split_first() else {
        visit(group);
        return Ok(());
    };
    let length = group.len();
    for value in field.clone() {
        group.extend_from_slice(value?);
        combinations(others, group, visit)?;
        group.truncate(length);
    }
    Ok(())
}
