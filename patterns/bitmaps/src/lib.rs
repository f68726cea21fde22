//! Inverted index: which records have these properties, and how many of each kind are there?
//!
//! A table goes from a record to its properties. An *inverted* index goes from a property to the
//! records that have it. If records are known by small numbers, a set of them is a *bitmap*, a bit
//! for each number, and "users of this site, in that city, but not interested in sports" is AND and
//! AND NOT of three bitmaps, 64 users at a time. Once the audience is found it is counted: by the
//! bitmaps of another field, or by looking its members up in a *direct* index, which goes from a
//! number to what the record holds.
//!
//! | what | for |
//! |---|---|
//! | [`InvertedIndex`] | derived data of a [`Table`](keyloom_tables::Table): both indexes, and ids for its keys |
//! | [`BitmapExpr`] | the audience: any Boolean expression of stored bitmaps, comparisons, and bitmaps in memory |
//! | [`Report`](report) | an audience by the values of fields, with counts and sums; [many audiences](report::Batch) in one pass |
//! | [`Bitmap`] | one set of ids in the store |
//! | [`BitSliced`] | an integer for each id, to compare, sum and rank |
//! | [`DenseIds`] | numbers for keys of any kind |
//!
//! # Layout
//!
//! A bitmap lies in *chunks* of [`CHUNK_IDS`] (32,512) ids each, so that to set one id rewrites one
//! chunk. A chunk without ids is not there.
//!
//! | what | key | value |
//! |---|---|---|
//! | [`Bitmap`] | subspace, chunk | a container |
//! | [`BitSliced`] | subspace, chunk, slice: 0 who has a value, 1 who has a negative one, 2 and up the bits of the magnitude, the lowest first | a container |
//! | [`InvertedIndex`] | subspace, `"terms"`, field, value, chunk | a container: who has this value; a null for who has none |
//! | | subspace, `"integers"`, field, chunk, slice | a container |
//! | | subspace, `"all"`, chunk | a container: all ids in use |
//! | | subspace, `"direct"`, field, block | a column: what the field holds for each of [1,016 ids](#columns) |
//! | | subspace, `"containers"`, field | a [counter](keyloom::Writer::add): how many containers the field has |
//! | | subspace, `"ids"`, … | as in [`dense_ids`] |
//!
//! ```text
//! ("ads", "terms", "city", "Oslo", 0)      ->  the users of Oslo among the first 32,512
//! ("ads", "terms", "city", "Oslo", 1)      ->  and among the next
//! ("ads", "terms", "site", "a.org", 0)     ->  the users of a.org
//! ("ads", "integers", "age", 0, 2)         ->  who of the first 32,512 is of an odd age
//! ("ads", "direct", "city", 0)             ->  the cities of the first 1,016, in the order of their ids
//! ("ads", "direct", "city", 1)             ->  and of the next
//! ```
//!
//! ## Containers
//!
//! The first byte tells the form and, in its high four bits, the version of the format (1). Ids are
//! offsets in the chunk. As in the [Roaring
//! format](https://github.com/RoaringBitmap/RoaringFormatSpec), numbers are little-endian and the
//! lowest bit of a byte is the first.
//!
//! | first byte | form | what follows | bytes |
//! |---|---|---|---|
//! | `11` | array | each id, 2 bytes, in ascending order | 1 + 2 n |
//! | `12` | runs | the first and the last id of each, 2 bytes each, in ascending order; runs do not touch | 1 + 4 r |
//! | `13` | blocks | the count, 2 bytes; for each of 127 blocks of 256 ids how many bytes it has, 1 byte; the blocks: up to 31 ids, a byte each, ascending, or 32 bytes, a bitmap of 32 ids or more | 130 and more |
//! | `14` | bitset | a zero; the count, 2 bytes; 12 zeros; 508 words of 8 bytes | 4,080 |
//!
//! The smallest form is taken, and a bitset where the smallest would take more than 1,900 bytes.
//!
//! Why these sizes: with pages of 4 KiB, LMDB keeps what takes more than 2,030 bytes with its key
//! in pages of its own, 4,096 bytes each less one header of 16. A bitset of 4,080 bytes fills
//! exactly one, and its words lie aligned to 32 bytes there; one of a whole Roaring container
//! (2<sup>16</sup> ids, 8,208 bytes) takes three; one of 2<sup>13</sup> ids lies in the tree
//! itself, and a long AND walks four times the entries. Blocks write an id of a chunk that is
//! neither dense nor nearly empty in one byte instead of two, so that such chunks stay in the tree
//! as well. Measured: see the
//! [book](https://github.com/keyloom/keyloom/blob/main/book/src/bitmaps.md).
//!
//! ## Columns
//!
//! The forward index is kept as a column store keeps its data, and a search engine its doc values:
//! by field, and within a field by id, in *blocks* of 1,016 ids, 32 to a chunk. A column is the
//! values of one block. It begins with the different values that the block has, in order; then
//! comes for each id which of them it has, in as many bits as that takes. Where ids have several
//! values it also tells where the list of each ends, so any id is found without looking at the
//! others. Integers are written as what they are above the smallest of the block. A column in which
//! nobody has a value is not there.
//!
//! | first byte | form | what follows |
//! |---|---|---|
//! | `11` | at most one value per id | widths in bits of the codes, of the ends of lists (0 here) and of the ends of values, 1 byte each; how many ids there are up to the last that has a value, 2 bytes; how many different values, 4 bytes; where each value ends; the values, packed; for each id 0 for none, or 1 and the number of its value |
//! | `12` | lists of values | the same up to the values; for each id where its list ends; the numbers of the values |
//! | `13` | integers | the width of an integer in bits, 1 byte; 1 where some ids have none, 1 byte; how many ids, as above, 2 bytes; the smallest, 8 bytes; a bit for each id that has one, where some have none; for each id what it is above the smallest |
//!
//! The high four bits of the first byte are the version (1). Numbers are little-endian, and those
//! of a few bits stand one behind the other, the lowest bit first.
//!
//! Why each block names its values itself, though a dictionary for the whole field would take less
//! room: every transaction that brings a value would read and write that dictionary, a report would
//! look up what the numbers mean that it met, somebody would have to find out which values nobody
//! has any more, and what is stored would depend on the order in which records came. So it depends
//! on the records alone, and what is rebuilt is the same byte for byte.
//!
//! Why 1,016 ids: a put reads and rewrites the columns of its block whole, and a report touches
//! each block that its audience is in. Longer columns would repeat fewer values, and a put would
//! rewrite more; of shorter ones each would repeat most of the values, and those of 2 to 4 kB fill
//! their pages badly.
//!
//! # Invariants
//!
//! * An id is in the container of a value if and only if its record has the value; the columns say
//!   the same by id. So do the slices of an integer.
//! * Every record has one id, and every id in use one record. Of the others below the next one,
//!   each is free.
//! * A container has an id or more, and belongs to a chunk that has such ids. It is in the smallest
//!   form of the first three, or a bitset where that would take more than 1,900 bytes.
//!
//! # Cost
//!
//! | operation | cost | round trips |
//! |---|---|---|
//! | put or delete of records, attached | 1 get per record for its id and 1 for all; 1 get and 1 key written per container that changes, however many records change it; 1 get and 1 key written per column that changes, with what it holds for all of its 1,016 ids; a counter per field whose containers come or go | 2, and [2 more](dense_ids#cost) where ids come or go that are free |
//! | [`term`](InvertedIndex::term) and all that makes an expression | nothing | 0 |
//! | [`any_term`](InvertedIndex::any_term) | 1 range over the containers of the values; where there are none, up to 2 reads of other values | 1, up to 3 |
//! | [`count`](BitmapExpr::count), [`ids`](BitmapExpr::ids) and all that reads one | 1 range per stored operand, over the chunks that all operands of an AND may have; the others are stepped or sought over | 1 per operand, and per seek |
//! | a report, a batch | see [`report`](report#cost) | |
//! | [`direct`](InvertedIndex::forward) | 1 get, and 1 per field | 1 |
//! | [`forward_range`](InvertedIndex::forward_range) | 1 range over the chunks of all ids, and 1 per field over its columns | 1 each |
//! | [`Bitmap`]: one id | 1 get; 1 key written if it changes | 1 |
//! | [`BitSliced`]: a comparison, an aggregate | 1 range over all slices of the chunks; [percentiles](BitSliced::percentiles) several | 1 each |
//!
//! To evaluate an expression takes a chunk in memory per operand that is itself computed, and no
//! allocation per chunk. The operand with the fewest ids comes first, and what is empty ends the
//! AND for a chunk.
//!
//! # When not to use it
//!
//! * For one property that selects few records: an [`Index`](keyloom_tables::Index) answers by
//!   itself, in the order of its parts, and needs no ids.
//! * For values that are different in every record, such as names: each is a key and a value of
//!   some bytes for one id.
//! * For many values in each record, where records are put one by one: each put rewrites the column
//!   of 1,016 records, some tens of kilobytes where each has ten values. Write many records in a
//!   transaction; and no column may be larger than the store takes as a value
//!   ([`ColumnTooLarge`](InvertedIndexError::ColumnTooLarge)).
//! * On a store behind a network with a cheap trip for each key and many writers: two records that
//!   are put at a time share chunks and the next id, so they conflict. Write many records in a
//!   transaction.
//! * For sets without an end: `x.complement(..)` is counted at the cost of `x`, alone or as an
//!   operand, but to read its ids goes through every chunk that there could be. Take it from
//!   [`all`](InvertedIndex::all), or give it a universe.
//! * For text with ranks and positions: that is the matter of a search engine.
//!
//! # Source
//!
//! "Inverted search" and "direct aggregation" in I. Katsov, *NoSQL Data Modeling Techniques*
//! (2012). D. Lemire, G. Ssi-Yan-Kai and O. Kaser, *Consistently faster and smaller compressed
//! bitmaps with Roaring* (2016). Blocks: G. E. Pibiri, *Fast and compact set intersection through
//! recursive universe partitioning* (DCC 2021). Bit slices: P. O'Neil and D. Quass, *Improved query
//! performance with variant indexes* (SIGMOD 1997). Products that are built so: Pilosa, Apache
//! Druid, Apache Lucene.

pub mod bitmap;
mod chunk_ids;
mod column;
mod container;
mod counting;
pub mod dense_ids;
pub mod expression;
mod few;
pub mod index;
pub mod integers;
pub mod report;
mod words;

pub use bitmap::Bitmap;
pub(crate) use bitmap::{ChunkChanges, Chunks};
pub(crate) use chunk_ids::ChunkIds;
pub use container::CHUNK_IDS;
pub(crate) use container::Container;
pub use dense_ids::DenseIds;
pub use expression::BitmapExpr;
pub(crate) use expression::Evaluation;
pub use index::{
    FieldValues, InvertedIndex, InvertedIndexError, SelectValues, SelectedValues, one,
};
pub use integers::BitSliced;
pub use report::{Batch, Breakdown, Report, ReportExplain, ReportWay, ValueSum};
pub(crate) use words::Words;

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests;
