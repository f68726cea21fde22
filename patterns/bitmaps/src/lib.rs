//! Inverted index: bitmaps that map properties to records, for set queries and counts.
//!
//! A table maps a record to its properties. An *inverted* index maps a property to the records that
//! have it. If the ids of records are small numbers, a set of records is a *bitmap* with one bit
//! per id. Then "users of this site, in that city, but not interested in sports" is AND and AND NOT
//! of three bitmaps, 64 users at a time. The members of the resulting set, the *audience*, are
//! counted by the bitmaps of another field, or by reading their fields from a *forward* index (the
//! catalogue's *direct* index). A forward index maps an id to the values of its record.
//!
//! | type | purpose |
//! |---|---|
//! | [`InvertedIndex`] | derived data of a [`Table`](keyloom_tables::Table): both indexes, and ids for its keys |
//! | [`BitmapExpr`] | the audience: any Boolean expression of stored bitmaps, comparisons, and bitmaps in memory |
//! | [`Report`](report) | the breakdown of an audience by field values, with counts and sums; [many audiences](report::Batch) in one pass |
//! | [`Bitmap`] | one set of ids in the store |
//! | [`BitSliced`] | an integer for each id, to compare, sum and rank |
//! | [`DenseIds`] | ids for keys of any kind |
//!
//! # Layout
//!
//! A bitmap is divided into *chunks* of [`CHUNK_IDS`] (32,512) ids each, so that setting one id
//! rewrites one chunk. A chunk without ids is not stored.
//!
//! | type | key | value |
//! |---|---|---|
//! | [`Bitmap`] | subspace, chunk | a container |
//! | [`BitSliced`] | subspace, chunk, slice: 0 for the ids with a value, 1 for the ids with a negative value, 2 and up for the bits of the magnitude, lowest first | a container |
//! | [`InvertedIndex`] | subspace, `"terms"`, field, value, chunk | a container: the ids with this value; the null value has the ids without a value |
//! | | subspace, `"integers"`, field, chunk, slice | a container |
//! | | subspace, `"all"`, chunk | a container: all ids in use |
//! | | subspace, `"direct"`, field, block | a column: the values of the field for each of [1,016 ids](#columns) |
//! | | subspace, `"containers"`, field | a [counter](keyloom::Writer::add): the number of containers of the field |
//! | | subspace, `"ids"`, … | as in [`dense_ids`] |
//!
//! ```text
//! ("ads", "terms", "city", "Oslo", 0)      ->  the users of Oslo among the first 32,512
//! ("ads", "terms", "city", "Oslo", 1)      ->  and among the next 32,512
//! ("ads", "terms", "site", "a.org", 0)     ->  the users of a.org
//! ("ads", "integers", "age", 0, 2)         ->  of the first 32,512, the users of an odd age
//! ("ads", "direct", "city", 0)             ->  the cities of the first 1,016, in id order
//! ("ads", "direct", "city", 1)             ->  and of the next 1,016
//! ```
//!
//! ## Containers
//!
//! The low four bits of the first byte are the form of the container, the high four bits the
//! version of the format (1). Ids are offsets in the chunk. As in the [Roaring
//! format](https://github.com/RoaringBitmap/RoaringFormatSpec), numbers are little-endian and the
//! lowest bit of a byte comes first.
//!
//! | first byte | form | content | bytes |
//! |---|---|---|---|
//! | `11` | array | each id, 2 bytes, in ascending order | 1 + 2 n |
//! | `12` | runs | the first and the last id of each run, 2 bytes each, in ascending order; runs are not adjacent | 1 + 4 r |
//! | `13` | blocks | the count, 2 bytes; for each of 127 blocks of 256 ids its length in bytes, 1 byte; the blocks: up to 31 ids, a byte each, ascending, or a bitmap of 32 bytes for 32 ids or more | 130 and more |
//! | `14` | bitset | a zero; the count, 2 bytes; 12 zeros; 508 words of 8 bytes | 4,080 |
//!
//! The smallest form is used, or a bitset if the smallest would take more than 1,900 bytes.
//!
//! Why these sizes: with pages of 4 KiB, LMDB stores an entry of more than 2,030 bytes, including
//! the key, in separate overflow pages. Overflow pages hold 4,096 bytes each, less one header of 16
//! bytes per entry. A bitset of 4,080 bytes fills exactly one overflow page, and its words are
//! aligned to 32 bytes there. A whole Roaring container (2<sup>16</sup> ids, 8,208 bytes) takes
//! three overflow pages. A container of 2<sup>13</sup> ids stays in the B+tree, but then a long AND
//! walks four times as many entries. For a chunk that is neither dense nor nearly empty, the blocks
//! form takes one byte per id instead of two, so these chunks stay in the B+tree as well. For
//! measurements see the [book](https://github.com/keyloom/keyloom/blob/main/book/src/measurements.md).
//!
//! ## Columns
//!
//! The forward index is stored like the data of a column store or the doc values of a search
//! engine: by field, and within a field by id. The ids are divided into *blocks* of 1,016 ids, 32
//! per chunk. A column holds the values of one field for one block. It begins with a dictionary:
//! the distinct values of the block, in order. Then it stores, for each id, the number of its value
//! in the dictionary, in as few bits as possible. If ids have several values, the column also
//! stores the end of each id's list, so the values of an id are found without reading the others.
//! Integers are stored as differences from the smallest integer of the block. A column without
//! values is not stored.
//!
//! | first byte | form | content |
//! |---|---|---|
//! | `11` | at most one value per id | widths in bits of the codes, of the ends of lists (0 here) and of the ends of values, 1 byte each; the number of ids up to the last with a value, 2 bytes; the number of distinct values, 4 bytes; the end of each value; the values, packed; for each id 0 for none, or 1 plus the number of its value |
//! | `12` | lists of values | the same up to the values; for each id the end of its list; the numbers of the values |
//! | `13` | integers | the width of an integer in bits, 1 byte; 1 if some ids have none, 1 byte; the number of ids, as above, 2 bytes; the smallest, 8 bytes; if some ids have none, a bit for each id, set if it has one; for each id its difference from the smallest |
//!
//! The high four bits of the first byte are the version (1). Numbers are little-endian. Numbers of
//! a few bits are packed without gaps, lowest bit first.
//!
//! Each block has its own dictionary of values, although one dictionary for the whole field would
//! take less space. With a shared dictionary, every transaction with a new value would read and
//! write that dictionary. A report would have to look up the values of the codes that it finds.
//! Values no longer in use would have to be garbage-collected, and the stored bytes would depend on
//! the order of inserts. With a dictionary per block, the stored bytes depend on the records alone,
//! and a rebuild writes identical bytes.
//!
//! Why 1,016 ids: a put reads and rewrites the whole columns of its block, and a report reads each
//! block that contains ids of its audience. Longer columns would repeat fewer values, but a put
//! would rewrite more. Shorter columns would each repeat most of the values, and columns of 2 to 4
//! kB fill their pages badly.
//!
//! # Invariants
//!
//! * An id is in the container of a value if and only if its record has the value. The columns hold
//!   the same data by id, and so do the slices of an integer.
//! * Every record has one id, and every id in use belongs to one record. All other ids below the
//!   next one are free.
//! * A container has at least one id, and its ids belong to its chunk. It has the smallest of the
//!   first three forms, or is a bitset if the smallest would take more than 1,900 bytes.
//!
//! # Cost
//!
//! | operation | cost | round trips |
//! |---|---|---|
//! | put or delete of records, with the index attached | 1 get per record for its id, and 1 for the state of the ids; 1 get and 1 key written per changed container, whatever the number of records that change it; 1 get and 1 key written per changed column, which holds the values of all of its 1,016 ids; a counter per field whose number of containers changes | 2, and 1 more if [free ids](dense_ids#cost) are assigned |
//! | [`term`](InvertedIndex::term) and all other constructors of expressions | nothing | 0 |
//! | [`any_term`](InvertedIndex::any_term) | 1 range over the containers of the values; if there are none, up to 2 reads of other values | 1, up to 3 |
//! | [`any_of_terms`](InvertedIndex::any_of_terms) | 1 range for each selection; if there are no containers, up to 2 reads of other values | 1 per 1,000 selections and 16,384 containers |
//! | [`count`](BitmapExpr::count), [`ids`](BitmapExpr::ids) and all other reads of an expression | 1 range per stored operand, over the chunks that all operands of an AND can have; other chunks are skipped by reading on or by a seek | 1 per operand, and per seek |
//! | a report, a batch | see [`report`](report#cost) | |
//! | [`forward`](InvertedIndex::forward) | 1 get, and 1 per field | 1 |
//! | [`forward_range`](InvertedIndex::forward_range) | 1 range over the chunks of all ids, and 1 per field over its columns | 1 each |
//! | [`Bitmap`]: one id | 1 get; 1 key written if it changes | 1 |
//! | [`BitSliced`]: a comparison, an aggregate | 1 range over all slices of the chunks; [percentiles](BitSliced::percentiles) of more than 2,048 distinct values several | 1 each |
//!
//! Evaluating an expression of n operands keeps at most about 8 + log<sub>2</sub> n chunks in
//! memory, and allocates nothing per chunk. The operand with the fewest ids is evaluated first; an
//! empty intermediate result ends the AND for that chunk.
//!
//! # When not to use it
//!
//! * For one property that selects few records: an [`Index`](keyloom_tables::Index) is enough,
//!   returns the records in the order of its parts, and needs no ids.
//! * For values that are different in every record, such as names: each distinct value takes a key
//!   and a container for a single id.
//! * For many values in each record, if records are put one by one. Each put rewrites a column of
//!   1,016 records: some tens of kilobytes at ten values per record. Write many records per
//!   transaction. No column may exceed the value limit of the store
//!   ([`ColumnTooLarge`](InvertedIndexError::ColumnTooLarge)).
//! * On a store behind a network with many writers that put single records: two concurrent puts
//!   share chunks and the next id, so they conflict. Write many records per transaction.
//! * For unbounded sets. Counting `x.complement(..)` costs the same as counting `x`, alone or as an
//!   operand, but reading the ids of the complement visits every possible chunk. Subtract from
//!   [`all`](InvertedIndex::all) instead, or give the complement a universe.
//! * For text with ranking and positions: use a search engine.
//!
//! # Source
//!
//! "Inverted search" and "direct aggregation" in I. Katsov, *NoSQL Data Modeling Techniques*
//! (2012). D. Lemire, G. Ssi-Yan-Kai and O. Kaser, *Consistently faster and smaller compressed
//! bitmaps with Roaring* (2016). Blocks: G. E. Pibiri, *Fast and compact set intersection through
//! recursive universe partitioning* (DCC 2021). Bit slices: P. O'Neil and D. Quass, *Improved query
//! performance with variant indexes* (SIGMOD 1997). Products built this way: Pilosa, Apache Druid,
//! Apache Lucene.

pub mod bitmap;
mod chunk_ids;
mod column;
mod comparison;
mod container;
mod counting;
pub mod dense_ids;
mod error;
pub mod expression;
mod few;
pub mod index;
pub mod integers;
mod operations;
pub mod report;
mod slices;
mod words;

pub use bitmap::Bitmap;
pub(crate) use bitmap::{ChunkChanges, Chunks};
pub(crate) use chunk_ids::ChunkIds;
pub use container::CHUNK_IDS;
pub(crate) use container::Container;
pub use dense_ids::DenseIds;
pub use error::InvertedIndexError;
pub use expression::BitmapExpr;
pub(crate) use expression::Evaluation;
pub use index::{
    FieldValues, InvertedIndex, SelectValues, SelectedValues, SingleValue, many, one, single,
};
pub use integers::BitSliced;
pub use report::{Batch, Breakdown, Report, ValueSum};
pub(crate) use words::Words;

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests;
