//! A collection: a table of documents, and its indexes.

use std::fmt;
use std::ops::ControlFlow;

use keyloom::value::Json;
use keyloom::{Reader, Result, Store};
use keyloom_kit::{Inconsistency, Progress, RecordKey, RepairOptions, Stages};
use keyloom_tables::schema::Attached;
use keyloom_tables::table::Table;
use keyloom_tables::{Index, Schema};
use keyloom_text::{Analyzer, TextIndex};
use serde_json::Value;

use super::definition::Definition;
use super::path_index::PathIndex;
use super::query::JsonQuery;
use super::{JsonError, JsonPath};

/// The version of the entry format. Since version 2, a long string is stored as a prefix and a
/// hash.
const LAYOUT: u32 = 2;

/// A collection of JSON documents; see the [module](super).
pub struct Collection<K: RecordKey> {
    pub(super) table: Table<K, Value, Json>,
    pub(super) indexes: Vec<PathIndex<K>>,
    texts: Vec<(String, Attached<TextIndex<K, Value>, Json>)>,
}

impl<K: RecordKey> fmt::Debug for Collection<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let indexes: Vec<String> = self.index_names().collect();
        let mut out = f.debug_struct("Collection");
        out.field("table", &self.table).field("indexes", &indexes).finish_non_exhaustive()
    }
}

/// Declaration.
impl<K: RecordKey> Collection<K> {
    /// Opens the collection `name` of a schema, without indexes. A new collection is added to the
    /// schema. The indexes of an existing collection must be declared again.
    ///
    /// # Errors
    /// The errors of [`Schema::table`].
    pub fn open<S: Store>(schema: &Schema<'_, S>, name: &str) -> Result<Self> {
        let table = schema.table_with::<K, Value, Json>(name, 1)?;
        Ok(Self { table, indexes: Vec::new(), texts: Vec::new() })
    }

    /// Adds an index of the values at some paths. The paths are the name of the index, so an index
    /// with other paths is a different index. [Build](Collection::build) the index if the
    /// collection has documents already.
    ///
    /// # Errors
    /// [`JsonError::BadPath`]; the errors of [`Schema::derive`].
    pub fn with_index<'p, S: Store>(
        self,
        schema: &Schema<'_, S>,
        paths: impl IntoIterator<Item = &'p str>,
    ) -> Result<Self> {
        self.with(schema, Definition::new(None, paths)?, false)
    }

    /// Adds an index in which no two documents may have the same values at these paths. Documents
    /// without a value at the first path are exempt.
    ///
    /// # Errors
    /// [`JsonError::BadPath`]; the errors of [`Schema::derive`].
    pub fn with_unique<'p, S: Store>(
        self,
        schema: &Schema<'_, S>,
        paths: impl IntoIterator<Item = &'p str>,
    ) -> Result<Self> {
        self.with(schema, Definition::new(None, paths)?, true)
    }

    /// Adds an index of the elements of an array: a query finds documents in which *one* element
    /// has all of the values. The paths are relative to the element.
    ///
    /// # Errors
    /// [`JsonError::BadPath`]; the errors of [`Schema::derive`].
    pub fn with_nested<'p, S: Store>(
        self,
        schema: &Schema<'_, S>,
        elements: &str,
        paths: impl IntoIterator<Item = &'p str>,
    ) -> Result<Self> {
        self.with(schema, Definition::new(Some(elements), paths)?, false)
    }

    fn with<S: Store>(
        mut self,
        schema: &Schema<'_, S>,
        definition: Definition,
        is_unique: bool,
    ) -> Result<Self> {
        let kind = if is_unique { "unique" } else { "index" };
        let name = format!("{kind} {}", definition.text());
        let index = schema.derive(&self.table, &name, LAYOUT, |space| {
            let of = definition.clone();
            let index =
                Index::try_new(space, move |key: &K, document: &Value| of.entries(key, document));
            Ok(if is_unique { index.unique() } else { index })
        })?;
        self.indexes.push(PathIndex { definition, index });
        Ok(self)
    }

    /// Adds a text index of all strings at some paths. The paths are the names of its fields. The
    /// version of the index is 1; see [`with_text_version`](Self::with_text_version).
    ///
    /// # Errors
    /// [`JsonError::BadPath`]; the errors of [`Schema::derive`].
    pub fn with_text<'p, S: Store>(
        self,
        schema: &Schema<'_, S>,
        name: &str,
        fields: impl IntoIterator<Item = (&'p str, Analyzer)>,
    ) -> Result<Self> {
        self.with_text_version(schema, name, 1, fields)
    }

    /// [`with_text`](Self::with_text) with a version of the index. Raise it after the paths or an
    /// analyzer change, and [build](Self::build) the index.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_documents::json::Collection;
    /// use keyloom_tables::Schema;
    /// use keyloom_text::Analyzer;
    /// use serde_json::json;
    /// let store = Memory::new();
    /// let open = |version, analyzer| -> keyloom::Result<Collection<u32>> {
    ///     let schema = Schema::open(&store, "shop")?;
    ///     let articles = Collection::open(&schema, "articles")?;
    ///     articles.with_text_version(&schema, "words", version, [("title", analyzer)])
    /// };
    /// let old = open(1, Analyzer::simple())?;
    /// store.transact(|txn| old.put(txn, &7, &json!({ "title": "White rabbits" })))?;
    ///
    /// let new = open(2, Analyzer::english())?;
    /// new.build(&store)?;
    /// let snapshot = store.snapshot()?;
    /// let words = new.text("words").expect("it is declared").at(&snapshot)?;
    /// let found = words.search(keyloom_text::Query::term("title", "rabbit")).ids(&snapshot)?;
    /// assert_eq!(found.len(), 1);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`with_text`](Self::with_text).
    pub fn with_text_version<'p, S: Store>(
        mut self,
        schema: &Schema<'_, S>,
        name: &str,
        version: u32,
        fields: impl IntoIterator<Item = (&'p str, Analyzer)>,
    ) -> Result<Self> {
        let parsed = fields.into_iter().map(|(path, analyzer)| Ok((path.parse()?, analyzer)));
        let fields: Vec<(JsonPath, Analyzer)> = parsed.collect::<Result<_>>()?;
        let index = schema.derive(&self.table, &format!("text {name}"), version, |space| {
            let add = |index: TextIndex<K, Value>, (path, analyzer): &(JsonPath, Analyzer)| {
                let (name, path) = (path.to_string(), path.clone());
                index.field(&name, analyzer.clone(), move |_, document: &Value, add| {
                    let texts = path.values(document).into_iter().filter_map(Value::as_str);
                    texts.for_each(add);
                })
            };
            Ok(fields.iter().fold(TextIndex::new(space), add))
        })?;
        self.texts.push((name.to_owned(), index));
        Ok(self)
    }

    /// Builds the new indexes of a collection that has documents, in bounded transactions,
    /// concurrently with writers. Costs one get for each index that is built already.
    ///
    /// # Errors
    /// The errors of [`Attached::build`].
    pub fn build(&self, store: &impl Store) -> Result<Vec<Progress>> {
        let indexes = self.indexes.iter().map(|one| one.index.build(store));
        let texts = self.texts.iter().map(|(_, index)| index.build(store));
        indexes.chain(texts).collect()
    }
}

/// Reads.
impl<K: RecordKey> Collection<K> {
    /// The table of the documents, for reads and for other derived data. Write through the
    /// collection, which checks the depth of documents.
    pub fn table(&self) -> &Table<K, Value, Json> {
        &self.table
    }

    /// The document of a key. Costs one get.
    ///
    /// # Errors
    /// An error with the key if the stored bytes are not JSON; any error of the store.
    pub fn get(&self, reader: &impl Reader, key: &K) -> Result<Option<Value>> {
        self.table.get(reader, key)
    }

    /// A query of the index that begins with these paths.
    ///
    /// # Errors
    /// [`JsonError::BadPath`]; [`JsonError::NoIndex`].
    pub fn find<'p>(&self, paths: impl IntoIterator<Item = &'p str>) -> Result<JsonQuery<'_, K>> {
        self.query(&Definition::new(None, paths)?)
    }

    /// A query of the nested index on these elements that begins with these paths. It finds
    /// documents in which one element meets all conditions.
    ///
    /// # Errors
    /// [`JsonError::BadPath`]; [`JsonError::NoIndex`].
    pub fn find_nested<'p>(
        &self,
        elements: &str,
        paths: impl IntoIterator<Item = &'p str>,
    ) -> Result<JsonQuery<'_, K>> {
        self.query(&Definition::new(Some(elements), paths)?)
    }

    fn query(&self, wanted: &Definition) -> Result<JsonQuery<'_, K>> {
        let found = self.indexes.iter().find(|one| one.definition.begins_with(wanted));
        let index = found.ok_or_else(|| JsonError::NoIndex {
            paths: wanted.text(),
            known: self.index_names().collect::<Vec<_>>().join("; "),
        })?;
        Ok(JsonQuery::new(index))
    }

    /// The [text index](Collection::with_text) with this name.
    pub fn text(&self, name: &str) -> Option<&Attached<TextIndex<K, Value>, Json>> {
        self.texts.iter().find(|(other, _)| other == name).map(|(_, index)| index)
    }

    /// Reports every inconsistency between the documents and the indexes.
    ///
    /// # Errors
    /// The errors of [`Attached::check`].
    pub fn check(&self, reader: &impl Reader) -> Result<Vec<Inconsistency>> {
        let indexes = self.indexes.iter().map(|one| one.index.check(reader));
        let texts = self.texts.iter().map(|(_, index)| index.check(reader));
        Ok(indexes.chain(texts).collect::<Result<Vec<_>>>()?.concat())
    }

    /// Repairs all indexes, in bounded transactions, concurrently with other writers.
    ///
    /// # Errors
    /// The errors of [`Attached::repair`].
    pub fn repair(&self, store: &impl Store) -> Result<Progress> {
        self.repair_with(store, &RepairOptions::default(), |_| ControlFlow::Continue(()))
    }

    /// [`repair`](Collection::repair) with options. Calls `progress` after each transaction and
    /// stops if `progress` breaks.
    ///
    /// # Errors
    /// The errors of [`repair`](Collection::repair).
    pub fn repair_with<S: Store>(
        &self,
        store: &S,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let mut stages = Stages::new(options, progress);
        for one in &self.indexes {
            stages.run(|options, progress| one.index.repair_with(store, options, progress))?;
        }
        for (_, index) in &self.texts {
            stages.run(|options, progress| index.repair_with(store, options, progress))?;
        }
        stages.end()
    }

    /// The paths of each index as text, without text indexes.
    ///
    /// ```
    /// use keyloom::Memory;
    /// use keyloom_documents::json::Collection;
    /// use keyloom_tables::Schema;
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "shop")?;
    /// let orders = Collection::<u32>::open(&schema, "orders")?;
    /// let orders = orders.with_index(&schema, ["city", "items[].sku"])?;
    /// assert_eq!(orders.index_names().collect::<Vec<_>>(), ["city, items[].sku"]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn index_names(&self) -> impl Iterator<Item = String> {
        self.indexes.iter().map(|one| one.definition.text())
    }
}
