//! keyloom on LMDB: a table of texts with its index.

use std::path::Path;

use keyloom::{Lmdb, Result, Store, Subspace};
use keyloom_patterns::Table;
use keyloom_text::{Analyzer, Query, Search, TextIndex};

use super::{Asked, Corpus, Hits, Kind};

/// A table of texts and an index with positions, in one store that is synced at each commit.
#[derive(Debug)]
pub struct Own {
    store: Lmdb,
    table: Table<u32, String>,
    index: TextIndex<u32, String>,
}

impl Own {
    /// Creates the store.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn create(path: &Path) -> Result<Self> {
        let store = Lmdb::options().map_bytes(64 << 30).open(path)?;
        let index = TextIndex::with_keys_as_ids(&Subspace::new(&2)).field(
            "body",
            Analyzer::simple(),
            |_, text: &String, add| add(text),
        );
        let table = Table::new(&Subspace::new(&1)).with(&index);
        Ok(Self { store, table, index })
    }

    /// Loads all documents, `batch` of them in one transaction.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn load(&self, corpus: &Corpus, batch: usize) -> Result<()> {
        let mut documents = corpus.documents().map(|(id, text)| (id, text.to_owned()));
        loop {
            let some: Vec<(u32, String)> = documents.by_ref().take(batch).collect();
            if some.is_empty() {
                return Ok(());
            }
            self.store.transact(|txn| self.table.put_many(txn, &some))?;
        }
    }

    /// Loads texts whose ids are their numbers.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn put_all(&self, texts: &[String]) -> Result<()> {
        let all = || (0..).zip(texts.iter().cloned());
        self.store.transact(|txn| self.table.put_many(txn, all()))
    }

    /// Replaces a document, durably.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn put(&self, id: u32, text: &String) -> Result<()> {
        self.store.transact(|txn| self.table.put(txn, &id, text))
    }

    /// The size in bytes of the pages in use.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn used_bytes(&self) -> Result<u64> {
        let statistics = self.store.statistics()?;
        let pages = statistics.leaf_pages + statistics.branch_pages + statistics.overflow_pages;
        Ok(pages * u64::from(statistics.page_bytes))
    }

    /// The size of the file, with its free pages.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn file_bytes(&self) -> Result<u64> {
        Ok(self.store.statistics()?.file_bytes)
    }

    /// The same records in a store of their own, without an index.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn records_only(path: &Path, corpus: &Corpus) -> Result<Self> {
        let mut own = Self::create(path)?;
        own.table = Table::new(own.table.space());
        own.load(corpus, 50_000)?;
        Ok(own)
    }

    /// The best documents.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn top(&self, asked: &Asked, limit: usize) -> Result<Hits> {
        let page = self.search(asked).limit(limit);
        let page = page.hits(&self.store.snapshot()?)?;
        Ok(page.items.into_iter().map(|hit| (hit.key, hit.score)).collect())
    }

    /// The number of documents that match.
    ///
    /// # Errors
    /// Any error of keyloom.
    pub fn count(&self, asked: &Asked) -> Result<u64> {
        self.search(asked).count(&self.store.snapshot()?)
    }

    fn search(&self, asked: &Asked) -> Search<'_, u32, String> {
        // Some prefixes of two letters match thousands of words.
        self.index.search(Self::query(asked)).max_terms(100_000)
    }

    fn query(asked: &Asked) -> Query {
        let terms = || asked.words.iter().map(|word| Query::term("body", word.as_str()));
        match asked.kind {
            Kind::Any if asked.words.len() == 1 => Query::term("body", asked.words.concat()),
            Kind::Any => Query::any_of(terms()),
            Kind::All => Query::all_of(terms()),
            Kind::Phrase => Query::phrase("body", asked.words.join(" ")),
            Kind::Prefix => Query::prefix("body", asked.words.concat()),
            Kind::Fuzzy => Query::fuzzy("body", asked.words.concat(), 2),
        }
    }
}
