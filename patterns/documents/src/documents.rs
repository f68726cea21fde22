//! Documents: a table with a text index, and the nested paths and children that depend on its
//! records.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;
use std::slice::from_ref;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use keyloom::value::{Codec, Postcard};
use keyloom::{DynWriter, Error, KeyBuf, KeyRange, Order, Reader, Result, Store, Subspace, Writer};
use keyloom_kit::{RecordKey, get_many};
use keyloom_tables::derived::Elsewhere;
use keyloom_tables::{Attached, Schema, Table};
use keyloom_text::TextIndex;

use crate::error::DocumentError;

/// The greatest nesting depth of children.
// A move or a deletion recurses once per level, in one transaction. So the limit bounds the stack.
pub const MAX_DEPTH: usize = 64;

/// The most levels that a move or a deletion follows, which ends it in a cycle of children. The
/// records of the last level of children have elements and children of other tables, so this is
/// more than [`MAX_DEPTH`].
const MOST_LEVELS: usize = 3 * MAX_DEPTH;

/// A table of documents with a text index, in a schema.
///
/// The elements of [nested](crate::nested) paths and the records of [children](crate::parent_child)
/// are declared on this table. From then on, [`put`](Self::put) also writes the elements, and
/// [`delete`](Self::delete) also deletes the elements and children of the document.
///
/// Cheap to clone: clones share the declared paths and children.
pub struct Documents<K: RecordKey, V: 'static, C = Postcard> {
    name: Arc<str>,
    text: Attached<TextIndex<K, V>, C>,
    parts: Arc<Parts<K, V>>,
    /// The number of nested paths above these documents: 0 for top-level documents, more for
    /// elements.
    depth: usize,
}

impl<K: RecordKey, V, C> Clone for Documents<K, V, C> {
    fn clone(&self) -> Self {
        let Self { name, text, parts, depth } = self;
        Self { name: Arc::clone(name), text: text.clone(), parts: Arc::clone(parts), depth: *depth }
    }
}

impl<K: RecordKey, V, C> fmt::Debug for Documents<K, V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Documents")
            .field("name", &self.name)
            .field("parts", &self.parts().len())
            .finish_non_exhaustive()
    }
}

/// Data that belongs to documents: the elements of a path, or their children.
pub(crate) trait Part<K, V>: Send + Sync {
    /// Removes the elements from a document before its record is written.
    fn strip(&self, document: &mut V) {
        let _ = document;
    }

    /// Replaces the stored elements by those of the documents. The documents have distinct keys.
    fn write(&self, txn: &mut DynWriter<'_>, documents: &[(&K, &V)]) -> Result<()> {
        let _ = (txn, documents);
        Ok(())
    }

    /// Adds the schema entries of the part's tables, with the checks that a reader does on them.
    fn add_expected(&self, all: &mut Vec<Expected>) {
        let _ = all;
    }

    /// Adds the stored elements to the documents with these keys.
    fn read(&self, reader: &dyn ReadEntries, keys: &[&K], documents: &mut [V]) -> Result<()> {
        let _ = (reader, keys, documents);
        Ok(())
    }

    /// Called after the documents with these keys were deleted. `depth` is the number of levels
    /// from the document that the caller deleted down to the elements or children of these
    /// documents.
    fn removed(&self, txn: &mut DynWriter<'_>, keys: &[K], depth: usize) -> Result<()>;

    /// Called after a document was moved to another key. `depth` is the number of levels from the
    /// document that the caller moved down to the elements or children of this document.
    fn moved(&self, txn: &mut DynWriter<'_>, from: &K, to: &K, depth: usize) -> Result<()>;
}

/// The key of a table's entry in the schema, and a check of this entry.
pub(crate) type Expected = (KeyBuf, Box<dyn Fn(Option<&[u8]>) -> Result<()>>);

/// Marks a nested path in the schema entry of the table of documents.
pub(crate) const PATH: &str = "path";

/// The parts of documents.
type Parts<K, V> = RwLock<Vec<Arc<dyn Part<K, V>>>>;

/// Visits entries with their keys and values.
type Visit<'v> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 'v;

/// Visits entries with the index of their range, their keys and values.
type VisitEach<'v> = dyn FnMut(usize, &[u8], &[u8]) -> Result<()> + 'v;

/// The number of ranges that are read together, and the number of entries read from each.
// So at most 65,536 entries are in memory at once. A lower value adds round trips; a higher one
// needs more memory.
const TOGETHER: usize = 256;

/// The reads of a [`Reader`] that searches of documents use, as a trait that can be an object.
pub(crate) trait ReadEntries {
    /// Visits the entries of a range in order.
    fn visit(&self, range: KeyRange<'_>, visit: &mut Visit<'_>) -> Result<()>;

    /// Visits the entries of each range in order. 256 ranges of at most 256 entries cost one round
    /// trip; a single range is read as one range of any length.
    fn visit_each(&self, ranges: &[KeyRange<'_>], visit: &mut VisitEach<'_>) -> Result<()>;
}

impl<R: Reader> ReadEntries for R {
    fn visit(&self, range: KeyRange<'_>, visit: &mut Visit<'_>) -> Result<()> {
        for entry in self.range(range, Order::Ascending)? {
            let (key, value) = entry?;
            visit(&key, &value)?;
        }
        Ok(())
    }

    fn visit_each(&self, ranges: &[KeyRange<'_>], visit: &mut VisitEach<'_>) -> Result<()> {
        if let [range] = ranges {
            return self.visit(range.clone(), &mut |key, value| visit(0, key, value));
        }
        for (chunk, some) in ranges.chunks(TOGETHER).enumerate() {
            let pages = self.range_many(some, TOGETHER)?;
            for (n, (range, page)) in some.iter().zip(pages).enumerate() {
                let number = chunk * TOGETHER + n;
                for (key, value) in page.entries {
                    visit(number, &key, &value)?;
                }
                if let Some(last) = page.last {
                    let rest = range.clone().after(&last);
                    self.visit(rest, &mut |key, value| visit(number, key, value))?;
                }
            }
        }
        Ok(())
    }
}

impl<K: RecordKey, V, C: Codec<V> + 'static> Documents<K, V, C> {
    /// Declares a table and its text index in a schema. `index` adds the fields of the index.
    ///
    /// `version` is the version of the index. After `index` changes, raise `version` and
    /// [build](Attached::build) the index.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_documents::Documents;
    /// use keyloom_tables::Schema;
    /// use keyloom_text::{Analyzer, Query};
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "blog")?;
    /// let posts = Documents::<u32, String>::declare(&schema, "posts", 1, |index| {
    ///     index.field("text", Analyzer::english(), |_, text: &String, add| add(text))
    /// })?;
    /// store.transact(|txn| posts.put(txn, &7, &"Nest eggs".to_owned()))?;
    /// let snapshot = store.snapshot()?;
    /// let search = posts.text().at(&snapshot)?.search(Query::term("text", "nest"));
    /// assert_eq!(search.hits(&snapshot)?.items[0].key, 7);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Schema::table_with`] and [`Schema::derive`].
    pub fn declare<S: Store>(
        schema: &Schema<'_, S>,
        name: &str,
        version: u32,
        index: impl Fn(TextIndex<K, V>) -> TextIndex<K, V>,
    ) -> Result<Self> {
        Self::declare_at(schema, name, version, 0, index)
    }

    pub(crate) fn declare_at<S: Store>(
        schema: &Schema<'_, S>,
        name: &str,
        version: u32,
        depth: usize,
        index: impl Fn(TextIndex<K, V>) -> TextIndex<K, V>,
    ) -> Result<Self> {
        let table = schema.table_with::<K, V, C>(name, 1)?;
        let text =
            schema.derive(&table, "text", version, |space| Ok(index(TextIndex::new(space))))?;
        Ok(Self { name: name.into(), text, parts: Arc::default(), depth })
    }

    /// The table of the records, with the data that is derived from it.
    ///
    /// Its records do not hold the elements of paths; [`get_many`](Self::get_many) returns
    /// documents with their elements. Writes through the table do not write or delete elements and
    /// children.
    pub fn table(&self) -> &Table<K, V, C> {
        self.text.table()
    }

    /// The document with the elements of all its paths. Costs 1 get, 1 range for each path of the
    /// document, and 1 range for each path of each element. The ranges of a path are read together,
    /// 256 in one round trip.
    ///
    /// The schema entries of the tables are read with the document: 1 get for the documents, and 1
    /// for each path that the program declares. So a program that started before another one
    /// declared a path returns an error, not documents without the elements.
    ///
    /// # Errors
    /// [`SchemaError::Undeclared`](keyloom_tables::SchemaError::Undeclared) for a path that this
    /// program does not declare; an error with the key if a record does not decode; any error of
    /// the store.
    pub fn get(&self, reader: &impl Reader, key: &K) -> Result<Option<V>> {
        Ok(self.get_many(reader, [key])?.pop().flatten())
    }

    /// The documents of these keys, in the order of the keys, each as [`get`](Self::get) returns
    /// it; `None` for a key without a document. The records are read together, and so are the
    /// elements of each path.
    ///
    /// # Errors
    /// The errors of [`get`](Self::get).
    pub fn get_many(
        &self,
        reader: &impl Reader,
        keys: impl IntoIterator<Item: Borrow<K>>,
    ) -> Result<Vec<Option<V>>> {
        let keys: Vec<_> = keys.into_iter().collect();
        let keys: Vec<&K> = keys.iter().map(Borrow::borrow).collect();
        let packed: Vec<KeyBuf> = keys.iter().map(|key| self.table().space().pack(*key)).collect();
        let mut expected = Vec::new();
        self.add_expected(&mut expected);
        let entries = expected.iter().map(|(key, _)| key);
        let all: Vec<&KeyBuf> = packed.iter().chain(entries).collect();
        let found = get_many(reader, &all)?;
        let (records, entries) = found.split_at_checked(keys.len()).unwrap_or_default();
        if records.iter().all(Option::is_none) {
            return Ok(keys.iter().map(|_| None).collect());
        }
        let mut each = expected.iter().zip(entries);
        each.try_for_each(|((_, expect), entry)| expect(entry.as_deref()))?;
        let (mut there, mut documents) = (Vec::new(), Vec::new());
        for ((key, packed), record) in keys.iter().zip(&packed).zip(records) {
            let Some(record) = record else { continue };
            there.push(*key);
            documents.push(C::decode(record).map_err(|error| error.at(packed))?);
        }
        self.read_parts(reader, &there, &mut documents)?;
        let mut documents = documents.into_iter();
        Ok(records.iter().map(|record| record.as_ref().and_then(|_| documents.next())).collect())
    }

    /// Adds checks that this program declares all stored paths, including paths within elements.
    pub(crate) fn add_expected(&self, all: &mut Vec<Expected>) {
        if let Some(key) = self.table().entry_key() {
            let table = self.table().clone();
            all.push((key.clone(), Box::new(move |entry| table.expect_declared(entry, PATH))));
        }
        self.parts().iter().for_each(|part| part.add_expected(all));
    }

    pub(crate) fn read_parts(
        &self,
        reader: &dyn ReadEntries,
        keys: &[&K],
        documents: &mut [V],
    ) -> Result<()> {
        self.parts().iter().try_for_each(|part| part.read(reader, keys, documents))
    }

    /// Sets a document with the elements of all its paths. Writes only those records that change,
    /// of the document and of its elements.
    ///
    /// Costs 1 get for the document, 1 range for each of its paths, and 1 range for each path of
    /// each element. Each record that changes costs 1 more get, 1 key written, and the changes of
    /// its index. Elements are compared in their stored form.
    ///
    /// # Errors
    /// The errors of [`Table::put`](keyloom_tables::Table::put).
    pub fn put(&self, txn: &mut impl Writer, key: &K, document: &V) -> Result<()>
    where
        V: Clone,
    {
        txn.guarded(|txn| {
            let root = self.stripped(document);
            let packed = self.table().space().pack(key);
            let bytes = Self::encoded(&root).map_err(|error| error.at(&packed))?;
            let is_stored = txn.get(&packed)?.is_some_and(|stored| *stored == bytes);
            match is_stored {
                true => self.table().expect_writable(txn)?,
                false => self.table().put(txn, key, &root)?,
            }
            self.write_parts(&mut DynWriter::new(txn), &[(key, document)])
        })
    }

    /// Sets many documents like [`put`](Self::put), but reads and writes them together. Use it to
    /// load documents, a few thousand per transaction.
    ///
    /// Takes pairs or references to pairs. If a key occurs twice, its last document is written.
    ///
    /// Costs the same reads and writes as [`put`](Self::put) for each document. But the gets of all
    /// documents are made together, and so are the gets of the elements of a path that change. The
    /// ranges of a path take 1 round trip for 256 documents, and a list of the index is written
    /// once for all documents. For each path, a document with more than 256 elements costs 1 more
    /// range and 1 more round trip. Keeps the documents and their stored elements in memory.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_documents::Documents;
    /// use keyloom_tables::Schema;
    /// use keyloom_text::Analyzer;
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "blog")?;
    /// let posts = Documents::<u32, String>::declare(&schema, "posts", 1, |index| {
    ///     index.field("text", Analyzer::english(), |_, text: &String, add| add(text))
    /// })?;
    /// let two = [(7, "Nest eggs".to_owned()), (8, "Eggs".to_owned())];
    /// store.transact(|txn| posts.put_many(txn, &two))?;
    /// assert_eq!(posts.get_many(&store.snapshot()?, [8, 9])?, [Some("Eggs".to_owned()), None]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`put`](Self::put).
    pub fn put_many(
        &self,
        txn: &mut impl Writer,
        documents: impl IntoIterator<Item: Borrow<(K, V)>>,
    ) -> Result<()>
    where
        K: Clone,
        V: Clone,
    {
        txn.guarded(|txn| {
            let documents: Vec<_> = documents.into_iter().collect();
            let space = self.table().space();
            let by_key: BTreeMap<KeyBuf, &(K, V)> = documents
                .iter()
                .map(|document| (space.pack(&document.borrow().0), document.borrow()))
                .collect();
            let keys: Vec<&KeyBuf> = by_key.keys().collect();
            let stored = get_many(txn, &keys)?;
            let mut changed = Vec::new();
            for ((packed, (key, document)), stored) in by_key.iter().zip(&stored) {
                let root = self.stripped(document);
                let bytes = Self::encoded(&root).map_err(|error| error.at(packed))?;
                if stored.as_ref().is_none_or(|stored| **stored != bytes[..]) {
                    changed.push((key.clone(), root));
                }
            }
            drop(stored);
            match changed.is_empty() {
                true => self.table().expect_writable(txn)?,
                false => self.table().put_many(txn, &changed)?,
            }
            let all: Vec<(&K, &V)> =
                by_key.values().map(|(key, document)| (key, document)).collect();
            self.write_parts(&mut DynWriter::new(txn), &all)
        })
    }

    /// Deletes a document with its elements, and with those children whose relations cascade.
    /// Returns whether the document existed.
    ///
    /// # Errors
    /// [`DocumentError::HasChildren`] if a relation refuses the deletion;
    /// [`DocumentError::TooDeep`]; the errors of [`Table::delete`](keyloom_tables::Table::delete).
    pub fn delete(&self, txn: &mut impl Writer, key: &K) -> Result<bool> {
        txn.guarded(|txn| Ok(self.delete_at(&mut DynWriter::new(txn), from_ref(key), 0)? > 0))
    }

    /// Deletes documents that are `depth` levels below the first deleted one.
    pub(crate) fn delete_at(
        &self,
        txn: &mut DynWriter<'_>,
        keys: &[K],
        depth: usize,
    ) -> Result<usize> {
        if keys.is_empty() {
            return Ok(0);
        }
        self.refuse_depth(keys, depth)?;
        // The records are deleted first: so a cycle of parents is not followed forever.
        let deleted = self.table().delete_many(txn, keys)?;
        self.parts().iter().try_for_each(|part| part.removed(txn, keys, depth + 1))?;
        Ok(deleted)
    }

    /// Moves a document to another key, with its elements and children, in one transaction.
    ///
    /// The document and each of its elements and children cost 3 to 5 gets, 2 keys written, and the
    /// reads and writes of the changes of their indexes. A child whose key does not change costs 1
    /// key written instead of 2.
    ///
    /// # Errors
    /// [`DocumentError::NoRecord`] if there is no such document; [`DocumentError::Exists`] if there
    /// is a record at the new key, or at the new key of a child; [`DocumentError::TooDeep`]; the
    /// errors of [`Table::put`](keyloom_tables::Table::put).
    pub fn rename(&self, txn: &mut impl Writer, from: &K, to: &K) -> Result<()> {
        txn.guarded(|txn| {
            let txn = &mut DynWriter::new(txn);
            let document = self.table().get(txn, from)?;
            let document = document.ok_or_else(|| self.no_record(from))?;
            self.move_at(txn, from, to, &document, 0)
        })
    }

    /// Moves a record to another key, where it is stored as `record`, with its elements and
    /// children. The record is `depth` levels below the first moved one.
    pub(crate) fn move_at(
        &self,
        txn: &mut DynWriter<'_>,
        from: &K,
        to: &K,
        record: &V,
        depth: usize,
    ) -> Result<()> {
        let [old, new] = [from, to].map(|key| self.table().space().pack(key));
        if old == new {
            return self.table().put(txn, to, record);
        }
        self.refuse_depth(from_ref(to), depth)?;
        if txn.get(&new)?.is_some() {
            return Err(DocumentError::Exists { key: self.shown(to) }.into());
        }
        self.table().put(txn, to, record)?;
        self.table().delete(txn, from)?;
        self.parts().iter().try_for_each(|part| part.moved(txn, from, to, depth + 1))
    }

    #[cold]
    pub(crate) fn no_record(&self, key: &K) -> Error {
        DocumentError::NoRecord { key: self.shown(key) }.into()
    }

    fn refuse_depth(&self, keys: &[K], depth: usize) -> Result<()> {
        let Some(key) = keys.first().filter(|_| depth > MOST_LEVELS) else { return Ok(()) };
        let what = format!("the chain of children to {}", self.shown(key));
        Err(DocumentError::TooDeep { what, limit: MOST_LEVELS }.into())
    }

    /// Declares a part in the schema entry of the table, so that writers which do not declare this
    /// part are refused.
    pub(crate) fn declare_part<S: Store>(
        &self,
        schema: &Schema<'_, S>,
        (kind, name): (&'static str, &str),
        version: u32,
        options: &str,
        part: Arc<dyn Part<K, V>>,
    ) -> Result<()> {
        let make = |space: &Subspace| Ok(Elsewhere::new(space, kind, options));
        schema.derive(self.table(), &format!("{kind} {name}"), version, make)?;
        self.add_part(part);
        Ok(())
    }

    pub(crate) fn write_parts(
        &self,
        txn: &mut DynWriter<'_>,
        documents: &[(&K, &V)],
    ) -> Result<()> {
        self.parts().iter().try_for_each(|part| part.write(txn, documents))
    }

    /// The record of a document: the document without the elements of its paths.
    pub(crate) fn stripped(&self, document: &V) -> V
    where
        V: Clone,
    {
        let mut record = document.clone();
        self.parts().iter().for_each(|part| part.strip(&mut record));
        record
    }

    pub(crate) fn encoded(record: &V) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        C::encode(record, &mut bytes)?;
        Ok(bytes)
    }
}

impl<K: RecordKey, V, C> Documents<K, V, C> {
    /// The text index, for searches, builds, checks and repairs.
    pub fn text(&self) -> &Attached<TextIndex<K, V>, C> {
        &self.text
    }

    /// The name of the table in the schema.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// The paths and children. Returns a copy, so that the list is not locked while a part declares
    /// or uses other parts.
    pub(crate) fn parts(&self) -> Vec<Arc<dyn Part<K, V>>> {
        self.parts.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A weak handle for the parts of these documents, so that a part does not own its documents.
    pub(crate) fn downgrade(&self) -> WeakDocuments<K, V, C> {
        let Self { name, text, parts, depth } = self.clone();
        WeakDocuments { name, text, parts: Arc::downgrade(&parts), depth }
    }

    fn add_part(&self, part: Arc<dyn Part<K, V>>) {
        self.parts.write().unwrap_or_else(PoisonError::into_inner).push(part);
    }
}

impl<K: RecordKey, V, C: Codec<V> + 'static> Documents<K, V, C> {
    /// The key of a document in the store, for errors.
    pub(crate) fn shown(&self, key: &K) -> String {
        keyloom::key::display_named(&self.table().space().pack(key)).to_string()
    }
}

/// [`Documents`] that hold a weak reference to their parts.
pub(crate) struct WeakDocuments<K: RecordKey, V: 'static, C> {
    name: Arc<str>,
    text: Attached<TextIndex<K, V>, C>,
    parts: Weak<Parts<K, V>>,
    depth: usize,
}

impl<K: RecordKey, V, C> WeakDocuments<K, V, C> {
    /// The documents with their parts. The parts still exist: a part is only called through a value
    /// that owns the parts.
    pub(crate) fn upgrade(&self) -> Documents<K, V, C> {
        let Self { name, text, parts, depth } = self;
        let parts = parts.upgrade().unwrap_or_default();
        Documents { name: Arc::clone(name), text: text.clone(), parts, depth: *depth }
    }
}
