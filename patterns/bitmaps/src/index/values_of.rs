//! The values of a field for many given ids.

use keyloom::{KeyBuf, Reader, Result};
use keyloom_kit::{RecordKey, get_many};

use super::InvertedIndex;
use crate::column::{Values, block_of};

/// The number of columns that are read together.
// 1,024 columns take some tens of megabytes with ten values per id. Fewer columns add round trips.
const TOGETHER: usize = 1_024;

impl<K: RecordKey, V> InvertedIndex<K, V> {
    /// Calls `visit` with each id and each of its values in a field, as
    /// [packed](super::ForwardEntry::packed) elements. The ids must ascend. Ids without a value are
    /// left out.
    ///
    /// Costs one get for each block of 1,016 ids that has one of `ids`, and one round trip per
    /// 1,024 of these blocks.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace, pack};
    /// use keyloom_tables::Table;
    /// use keyloom_bitmaps::{InvertedIndex, one};
    /// let index = InvertedIndex::with_keys_as_ids(&Subspace::new("index"))
    ///     .field("city", |_id: &u32, city: &Option<String>| one(city.as_ref()));
    /// let users = Table::<u32, Option<String>>::new(&Subspace::new("users")).with(&index);
    /// let store = Memory::new();
    /// store.transact(|txn| {
    ///     users.put_many(txn, [(3, Some("Oslo".into())), (4, None), (9, Some("Rome".into()))])
    /// })?;
    /// let mut found = Vec::new();
    /// index.visit_values(&store.snapshot()?, "city", &[3, 4, 9], |id, city| {
    ///     found.push((id, city.to_vec()));
    ///     Ok(())
    /// })?;
    /// assert_eq!(found, [(3, pack("Oslo").to_vec()), (9, pack("Rome").to_vec())]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`term`](InvertedIndex::term), and the errors of `visit`; any error of the
    /// store; [`Error::At`](keyloom::Error::At) with the key if stored bytes are not a column of
    /// values.
    pub fn visit_values(
        &self,
        reader: &impl Reader,
        field: &str,
        ids: &[u64],
        mut visit: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let field = self.values_field(field)?;
        let blocks: Vec<&[u64]> = ids.chunk_by(|a, b| block_of(*a).0 == block_of(*b).0).collect();
        for some in blocks.chunks(TOGETHER) {
            let number = |ids: &&[u64]| ids.first().map_or(0, |id| block_of(*id).0);
            let keys: Vec<KeyBuf> =
                some.iter().map(|ids| field.column.pack(&number(ids))).collect();
            for ((ids, key), column) in some.iter().zip(&keys).zip(get_many(reader, &keys)?) {
                let Some(column) = column else { continue };
                let values = Values::parse(&column).map_err(|error| error.at(key))?;
                for id in *ids {
                    for code in values.codes(block_of(*id).1) {
                        let value = values.dictionary().value(code);
                        visit(*id, value.map_err(|error| error.at(key))?)?;
                    }
                }
            }
        }
        Ok(())
    }
}
