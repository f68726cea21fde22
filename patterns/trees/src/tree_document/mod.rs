//! Tree aggregation: a whole tree in one document, read at once.
//!
//! Use it for small trees that are read as a whole: a post with all its comments, a menu, an
//! outline, the parts of an assembly. The whole tree is one *document*: its nodes are stored in
//! preorder in one value. One read returns everything that a page shows. The tree is
//! [searched](Document::find) in memory. A [write](TreeDocument::write) is refused if another
//! writer has changed the document since it was read (optimistic locking).
//!
//! ```
//! use keyloom::{Memory, Store, Subspace};
//! use keyloom_tables::RecordConflict;
//! use keyloom_trees::{InsertAt, Tree, TreeDocument};
//!
//! // One document per post.
//! let posts = Subspace::new("comments");
//! let comments = TreeDocument::<String>::new(&posts.child(&7));
//! let store = Memory::new();
//! store.transact(|txn| {
//!     comments.insert(txn, 1, "Ada", &"What a post!".into(), InsertAt::Last(None))?;
//!     comments.insert(txn, 2, "Bob", &"Indeed.".into(), InsertAt::last(1))
//! })?;
//!
//! // Two users read, and both write.
//! let (mut one, mut other) =
//!     (comments.read(&store.snapshot()?)?, comments.read(&store.snapshot()?)?);
//! one.set_value(2, &"Indeed!".into())?;
//! other.delete_subtree(2)?;
//! store.transact(|txn| comments.write(txn, &one))?;
//! let error = store.transact(|txn| comments.write(txn, &other)).unwrap_err();
//! assert!(error.downcast_ref::<RecordConflict<()>>().is_some());
//! assert!(error.to_string().contains(r#"("comments", 7, "head") has version 3, version 2"#));
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Layout
//!
//! | key | value |
//! |---|---|
//! | subspace, "head" | the format (1), 1 byte; the version, 8 bytes, big-endian; the next piece number; the number of pieces; the number and the length of each piece, in the order of the text; the text, if there are no pieces |
//! | subspace, "piece", number | a part of the text, of at most [the maximum length of a piece](TreeDocument::piece_bytes) |
//!
//! Numbers without a given length are LEB128. The text has one row for each node, in preorder:
//!
//! ```text
//! how many levels higher than a child of the node before    LEB128
//! the id                                                    LEB128
//! how many bytes follow                                     LEB128
//! format, name, value                                       as in all models
//! ```
//!
//! A row does not store its depth, but its level relative to a child of the previous node. So a
//! move keeps the bytes of the moved rows, except for the first row. Content-defined chunking cuts
//! the text into pieces: the rows themselves determine the cuts, so a change moves only the cuts
//! near the change. A change of a large document therefore writes one or two pieces and the head. A
//! piece usually ends at the end of a row; a row longer than a piece continues in the next piece.
//!
//! # Invariants
//!
//! * The head and its pieces form one text. Each piece listed in the head exists and has the listed
//!   length.
//! * Each change increments the version by one. A change without effect writes nothing.
//! * Versions are never reused, even if all nodes are deleted, because the head stays. (Deleting
//!   the whole subspace resets the version.)
//!
//! # Cost
//!
//! A document has `p` pieces; `p` is 0 if its text fits into one piece.
//!
//! | operation | gets | round trips | keys written |
//! |---|---|---|---|
//! | [`read`](TreeDocument::read) and every read of [`Tree`](super::Tree) | 1 + `p` | 1, or 2 with pieces | |
//! | every read of a [`Document`] | 0 | 0 | |
//! | every change of [`Tree`](super::Tree) to a single node, every move and deletion | 1 + `p` | as `read` | the head, and the changed pieces if there are pieces: mostly 1 or 2. A test with 2,500 comments in 50 to 150 pieces asserts 2.5 on average, and 4.5 for a move |
//! | [`write`](TreeDocument::write) | 1 | 1 | as the change |
//! | a refused change, or a change without effect | as `read`, or 1 | | 0 |
//!
//! If there is no head yet, one more range read, in one round trip, checks that there are no pieces
//! either.
//!
//! Each operation also processes all bytes of the document in memory. For many operations on a
//! large document, change one [`Document`] and write it once.
//!
//! The commit of the transaction adds one round trip. Moves and deletions in steps use one
//! transaction here, since they write few keys. A document may be too large for one transaction,
//! for example after an import or after changes in many places. In this case, [write it in
//! steps](TreeDocument::write_in_steps).
//!
//! # Check and repair
//!
//! A document contains no derived data, so a [`repair`](super::Tree::repair) salvages the nodes
//! that can be read. A document that has lost its head is an error, not an empty tree. In this case
//! the repair reads the pieces in the order of their numbers. This is the order of the text if no
//! change has reused a number. The new version is greater than any lost version. The same applies
//! if the head decodes but has lost its list of pieces. If a piece is lost, its nodes are lost. The
//! nodes after it keep their order. Their depths are kept as far as the remaining rows determine
//! them. A node that cannot be read becomes a [placeholder](super::Tree::repair). The text of a
//! document without pieces is in the head, and is lost with the head.
//!
//! # When not to use it
//!
//! * When many writers change one tree concurrently: all changes of a document write its head. On a
//!   store that detects conflicts at commit, one of two concurrent changes is retried.
//! * When most reads need only a few nodes of a large tree: even a lookup of a parent, of the
//!   children of a node or of one path reads the whole document. Use one of the [other
//!   models](super).
//!
//! # Source
//!
//! "Tree aggregation" in I. Katsov, *NoSQL Data Modeling Techniques* (2012), whose example is a
//! post with its comments. Content-defined chunking is from A. Muthitacharoen, B. Chen, D.
//! Mazières, "A low-bandwidth network file system" (2001).

mod changes;
mod check;
mod document;
mod encoding;
mod head;
mod preorder;
mod salvage;
mod stored;
mod tree;

use std::fmt;
use std::marker::PhantomData;

use keyloom::Subspace;
use keyloom::value::Postcard;

pub use document::Document;

/// The default maximum length of a piece: it fits into 16 pages of an LMDB file, and is below the
/// value limits of FoundationDB and etcd.
const PIECE_BYTES: usize = 65_520;
/// The minimum length of a piece.
// Shorter pieces would be shorter than their keys.
const LEAST_PIECE_BYTES: usize = 64;

/// A tree in one document; see the [module](self).
///
/// One value of this type is one tree, in its own subspace. The value does not hold a store and is
/// cheap to create, so a program with many trees can create it when needed:
/// `TreeDocument::new(&posts.child(&post_id))`.
pub struct TreeDocument<V, C = Postcard> {
    space: Subspace,
    piece_bytes: usize,
    types: PhantomData<fn() -> (V, C)>,
}

impl<V, C> Clone for TreeDocument<V, C> {
    fn clone(&self) -> Self {
        Self { space: self.space.clone(), ..*self }
    }
}

impl<V, C> fmt::Debug for TreeDocument<V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreeDocument")
            .field("space", &self.space)
            .field("piece_bytes", &self.piece_bytes)
            .finish()
    }
}

impl<V> TreeDocument<V> {
    /// Creates the document in `space`, with values encoded by [`Postcard`].
    pub fn new(space: &Subspace) -> Self {
        Self::with_codec(space)
    }
}

impl<V, C> TreeDocument<V, C> {
    /// Creates the document in `space`, with values encoded by the codec `C`.
    ///
    /// ```
    /// use keyloom::{Subspace, value::Json};
    /// use keyloom_trees::TreeDocument;
    /// let comments = TreeDocument::<Vec<String>, Json>::with_codec(&Subspace::new("comments"));
    /// ```
    pub fn with_codec(space: &Subspace) -> Self {
        Self { space: space.clone(), piece_bytes: PIECE_BYTES, types: PhantomData }
    }

    /// Returns the same document with this maximum length of a piece, in bytes. A length below 64
    /// counts as 64. Any length that the store accepts as a value is valid; all stores accept the
    /// default, 65,520. Larger pieces mean fewer reads; smaller pieces mean smaller writes.
    ///
    /// The length may change between runs of a program. A document with pieces of another length
    /// can still be read. The next write cuts the document again.
    ///
    /// ```
    /// use keyloom::{Limits, Memory, Reader, Store, Subspace};
    /// use keyloom_trees::{InsertAt, Tree, TreeDocument};
    /// let comments = TreeDocument::<String>::new(&Subspace::new("comments")).piece_bytes(10_000);
    /// let store = Memory::builder().limits(Limits::foundationdb()).build();
    /// let long = "a value may be longer than a piece ".repeat(10_000);
    /// store.transact(|txn| comments.insert(txn, 1, "Ada", &long, InsertAt::Last(None)))?;
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(snapshot.count(comments.space().range())?, 1 + 36);
    /// assert_eq!(comments.read(&snapshot)?.get(1).expect("there").value()?, long);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    #[must_use]
    pub fn piece_bytes(self, piece_bytes: usize) -> Self {
        Self { piece_bytes: piece_bytes.max(LEAST_PIECE_BYTES), ..self }
    }
}
