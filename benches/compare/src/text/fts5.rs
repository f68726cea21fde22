//! The full-text index of SQLite.

use std::path::Path;

use rusqlite::{Connection, Result, params};

use super::{Asked, Corpus, Hits, Kind};

const BEST: &str =
    "SELECT rowid, -bm25(texts) FROM texts WHERE texts MATCH ?1 ORDER BY rank LIMIT ?2";

/// An FTS5 table with positions, in a file with a write-ahead log and a sync per commit.
#[derive(Debug)]
pub struct Fts5 {
    sqlite: Connection,
}

impl Fts5 {
    /// Creates the table.
    ///
    /// # Errors
    /// Any error of SQLite.
    pub fn create(path: &Path) -> Result<Self> {
        let sqlite = Connection::open(path)?;
        sqlite.pragma_update(None, "journal_mode", "WAL")?;
        sqlite.pragma_update(None, "synchronous", "FULL")?;
        sqlite.pragma_update(None, "cache_size", -1_000_000)?;
        sqlite.pragma_update(None, "mmap_size", 16_i64 << 30)?;
        sqlite.execute_batch(
            "CREATE VIRTUAL TABLE texts USING fts5 (body, tokenize = 'unicode61 remove_diacritics 0')",
        )?;
        Ok(Self { sqlite })
    }

    /// Loads all documents in one transaction.
    ///
    /// # Errors
    /// Any error of SQLite.
    pub fn load(&mut self, corpus: &Corpus) -> Result<()> {
        let transaction = self.sqlite.transaction()?;
        {
            let sql = "INSERT INTO texts (rowid, body) VALUES (?1, ?2)";
            let mut insert = transaction.prepare(sql)?;
            for (id, text) in corpus.documents() {
                insert.execute(params![id, text])?;
            }
        }
        transaction.commit()
    }

    /// Merges all segments of the index into one.
    ///
    /// # Errors
    /// Any error of SQLite.
    pub fn merge(&self) -> Result<()> {
        self.sqlite.execute_batch("INSERT INTO texts (texts) VALUES ('optimize')")?;
        self.sqlite.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
    }

    /// The best documents.
    ///
    /// # Errors
    /// Any error of SQLite.
    pub fn top(&self, asked: &Asked, limit: usize) -> Result<Hits> {
        let words = match asked.kind {
            Kind::Any => asked.words.join(" OR "),
            Kind::All => asked.words.join(" AND "),
            Kind::Phrase => format!("\"{}\"", asked.words.join(" ")),
            Kind::Prefix => format!("{}*", asked.words.concat()),
            // FTS5 has no fuzzy terms.
            Kind::Fuzzy => return Ok(Vec::new()),
        };
        let mut query = self.sqlite.prepare_cached(BEST)?;
        let hits =
            query.query_map(params![words, limit as i64], |row| Ok((row.get(0)?, row.get(1)?)))?;
        hits.collect()
    }

    /// Replaces a document, durably.
    ///
    /// # Errors
    /// Any error of SQLite.
    pub fn put(&self, id: u32, text: &str) -> Result<()> {
        let mut update =
            self.sqlite.prepare_cached("UPDATE texts SET body = ?2 WHERE rowid = ?1")?;
        update.execute(params![id, text]).map(drop)
    }

    /// The size of the index without the texts.
    ///
    /// # Errors
    /// Any error of SQLite.
    pub fn index_bytes(&self) -> Result<u64> {
        let sql =
            "SELECT sum(pgsize) FROM dbstat WHERE name LIKE 'texts%' AND name <> 'texts_content'";
        self.sqlite.query_row(sql, [], |row| Ok(row.get::<_, i64>(0)?.unsigned_abs()))
    }
}
