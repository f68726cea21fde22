//! Tree aggregation: how is a whole tree read at once?
//!
//! A post and all comments on it, a menu, an outline, the parts of an assembly: trees that are
//! small, and wanted as a whole. Here the whole tree is one *document*: its nodes stand in
//! preorder, one behind the other, in one value. A page is shown after one read; the tree is
//! [searched](Document::find) in memory; and who thinks between reading and writing is
//! [told](TreeDocument::write) when somebody else has written meanwhile.
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
//! // Two people read, and both decide to write.
//! let (mut one, mut other) = (comments.read(&store.snapshot()?)?, comments.read(&store.snapshot()?)?);
//! one.set_value(2, &"Indeed!".into())?;
//! other.delete_subtree(2)?;
//! store.transact(|txn| comments.write(txn, &one))?;
//! let error = store.transact(|txn| comments.write(txn, &other)).unwrap_err();
//! assert!(error.downcast_ref::<RecordConflict<()>>().is_some());
//! assert_eq!(
//!     error.to_string(),
//!     r#"the record ("comments", 7, "head") has version 3 and not 2; read it again and decide anew"#
//! );
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Layout
//!
//! | key | value |
//! |---|---|
//! | subspace, "head" | the format (1), 1 byte; the version, 8 bytes, big-endian; the next number for a piece; how many pieces there are; number and length of each, in the order of the text; the text, where there are no pieces |
//! | subspace, "piece", number | a part of the text, at most [as long as a piece may be](TreeDocument::piece_bytes) |
//!
//! Numbers without a length given are LEB128. The text is a row for each node, in preorder:
//!
//! ```text
//! how many levels higher than a child of the node before    LEB128
//! the id                                                    LEB128
//! how many bytes follow                                     LEB128
//! format, name, value                                       as in all models
//! ```
//!
//! A row says how much higher it lies than the row before, and not how deep, so the rows of a
//! subtree are the same bytes wherever it is moved. Where the text is cut into pieces is chosen by
//! the rows themselves (content-defined chunking), so a change moves no other cuts than those
//! beside it: what is written of a large document is a piece or two, and the head. A piece usually
//! ends with a row; a row that is longer than a piece goes on in the next.
//!
//! # Invariants
//!
//! * The head and its pieces are one text; each piece that the head names is there and has the
//!   length that the head says.
//! * Each change raises the version by one. What changes nothing writes nothing.
//! * No version comes twice, also when all nodes are deleted: the head stays. (Who removes the
//!   whole subspace begins again.)
//!
//! # Cost
//!
//! A document of `p` pieces; `p` is 0 as long as its text fits into one.
//!
//! | operation | gets | round trips | keys written |
//! |---|---|---|---|
//! | [`read`](TreeDocument::read) and every read of [`Tree`](super::Tree) | 1 + `p` | 1, or 2 with pieces | |
//! | every read of a [`Document`] | 0 | 0 | |
//! | every change of [`Tree`](super::Tree) that is a single node, or moves, or deletes | 1 + `p` | as `read` | the head, and of a document with pieces those that changed: mostly 1 or 2; asserted for 2,500 comments in 50 to 150 pieces: 2.5 on average, a move 4.5 |
//! | [`write`](TreeDocument::write) | 1 | 1 | as the change |
//! | refused, or nothing changed | as `read`, or 1 | | 0 |
//!
//! Where there is no head yet, one range more makes sure that there are no pieces either, in one
//! round trip.
//!
//! Each operation also goes through all bytes of the document in memory, so a thousand operations
//! on a large document are better done on one [`Document`], and written once.
//!
//! The commit of the transaction adds one round trip. A move in steps and a deletion in steps are
//! one transaction here, since they write few keys. A document that does not fit into one
//! transaction, because it was loaded or changed all over, is [written in
//! steps](TreeDocument::write_in_steps).
//!
//! # Check and repair
//!
//! Nothing in a document is derived, so a [`repair`](super::Tree::repair) saves what can be read. A
//! document without its head is an error and not an empty tree. Its pieces are read in the order of
//! their numbers then, which is that of the text as long as no change reused a number, and the
//! version becomes a greater one than any that was lost. The same is done where the head decodes
//! but has lost its list of pieces. Of a piece that is lost the nodes are lost; those after it keep
//! their order, and depths as far as the rows that are left say. A node that cannot be read becomes
//! a [placeholder](super::Tree::repair). The text of a document without pieces is in its head, and
//! lost with it.
//!
//! # When not to use it
//!
//! When many write into one tree at the same time: all changes of a document meet in its head, and
//! on a store that finds conflicts at commit one of two runs again. When a tree has more nodes than
//! are wanted at once: its parent, its children or one path of it cost the whole. Take the [other
//! models](super) there.
//!
//! # Source
//!
//! "Tree aggregation" in I. Katsov, *NoSQL Data Modeling Techniques* (2012), where the example is
//! the post with its comments. Cutting where the content says so is from A. Muthitacharoen, B.
//! Chen, D. Mazières, "A low-bandwidth network file system" (2001).

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
pub use preorder::DocumentBytes;

/// How long a piece is unless told otherwise: 16 pages of an LMDB file, and less than FoundationDB
/// and etcd take as a value.
const PIECE_BYTES: usize = 65_520;
/// The shortest that a piece may be made.
const LEAST_PIECE_BYTES: usize = 64;

/// A tree in one document; see the [module](self).
///
/// One value of this type is one tree, in a subspace of its own. It holds no store and is cheap to
/// make, so a program that has a tree for each of many things makes it when it is wanted:
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
    /// The document in `space`, whose values are written with [`Postcard`].
    pub fn new(space: &Subspace) -> Self {
        Self::with_codec(space)
    }
}

impl<V, C> TreeDocument<V, C> {
    /// The document in `space`, whose values are written with the codec `C`.
    ///
    /// ```
    /// use keyloom::{Subspace, value::Json};
    /// use keyloom_trees::TreeDocument;
    /// let comments = TreeDocument::<Vec<String>, Json>::with_codec(&Subspace::new("comments"));
    /// ```
    pub fn with_codec(space: &Subspace) -> Self {
        Self { space: space.clone(), piece_bytes: PIECE_BYTES, types: PhantomData }
    }

    /// The same with pieces of at most so many bytes, at least 64. Anything that a store takes as a
    /// value is right, and 65,520, the default, is taken by all of them. Larger ones are fewer to
    /// read, smaller ones less to write.
    ///
    /// May be changed between runs of a program: a document that was written with another length is
    /// read as it is, and cut again when it is written.
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
