//! tantivy, with one indexing thread.

use std::path::Path;

use tantivy::collector::{Count, TopDocs};
use tantivy::query::{BooleanQuery, FuzzyTermQuery, Occur, PhraseQuery, Query, TermQuery};
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, STORED, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::{LowerCaser, SimpleTokenizer, TextAnalyzer};
use tantivy::{Index, IndexReader, IndexWriter, ReloadPolicy, Result, TantivyDocument, Term};

use super::{Asked, Corpus, Hits, Kind};

/// Memory for the documents of a segment before it is written.
const MEMORY_BYTES: usize = 1 << 30;

/// An index with positions and lengths, and the texts in its document store.
pub struct Tantivy {
    index: Index,
    writer: IndexWriter<TantivyDocument>,
    reader: IndexReader,
    id: Field,
    body: Field,
}

impl Tantivy {
    /// Creates the index in a new directory.
    ///
    /// # Errors
    /// Any error of tantivy.
    pub fn create(path: &Path) -> Result<Self> {
        std::fs::create_dir(path)?;
        let mut schema = Schema::builder();
        let indexing = TextFieldIndexing::default()
            .set_tokenizer("lower")
            .set_index_option(IndexRecordOption::WithFreqsAndPositions);
        let text = TextOptions::default().set_indexing_options(indexing) | STORED;
        let (id, body) =
            (schema.add_u64_field("id", INDEXED | FAST), schema.add_text_field("body", text));
        let index = Index::create_in_dir(path, schema.build())?;
        let lower = TextAnalyzer::builder(SimpleTokenizer::default()).filter(LowerCaser).build();
        index.tokenizers().register("lower", lower);
        let writer = index.writer_with_num_threads(1, MEMORY_BYTES)?;
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        Ok(Self { index, writer, reader, id, body })
    }

    fn add(&self, id: u32, text: &str) -> Result<()> {
        let mut document = TantivyDocument::new();
        document.add_u64(self.id, id.into());
        document.add_text(self.body, text);
        self.writer.add_document(document).map(drop)
    }

    fn commit(&mut self) -> Result<()> {
        self.writer.commit()?;
        self.reader.reload()
    }

    /// Loads all documents in one commit.
    ///
    /// # Errors
    /// Any error of tantivy.
    pub fn load(&mut self, corpus: &Corpus) -> Result<()> {
        for (id, text) in corpus.documents() {
            self.add(id, text)?;
        }
        self.commit()
    }

    /// Loads texts whose ids are their numbers.
    ///
    /// # Errors
    /// Any error of tantivy.
    pub fn put_all(&mut self, texts: &[String]) -> Result<()> {
        for (id, text) in (0..).zip(texts) {
            self.add(id, text)?;
        }
        self.commit()
    }

    /// Merges all segments into one.
    ///
    /// # Errors
    /// Any error of tantivy.
    pub fn merge(&mut self) -> Result<()> {
        let segments = self.index.searchable_segment_ids()?;
        if segments.len() > 1 {
            self.writer.merge(&segments).wait()?;
        }
        self.writer.garbage_collect_files().wait()?;
        self.reader.reload()
    }

    /// Replaces a document, durably, and makes it visible.
    ///
    /// # Errors
    /// Any error of tantivy.
    pub fn put(&mut self, id: u32, text: &str) -> Result<()> {
        self.writer.delete_term(Term::from_field_u64(self.id, id.into()));
        self.add(id, text)?;
        self.commit()
    }

    fn query(&self, asked: &Asked) -> Box<dyn Query> {
        let terms = asked.words.iter().map(|word| Term::from_field_text(self.body, word));
        match asked.kind {
            Kind::Phrase => return Box::new(PhraseQuery::new(terms.collect())),
            Kind::Prefix | Kind::Fuzzy => {
                let word = Term::from_field_text(self.body, &asked.words.concat());
                return Box::new(match asked.kind {
                    Kind::Prefix => FuzzyTermQuery::new_prefix(word, 0, true),
                    _ => FuzzyTermQuery::new(word, 2, true),
                });
            }
            Kind::Any | Kind::All => {}
        }
        let occur = if asked.kind == Kind::All { Occur::Must } else { Occur::Should };
        let mut clauses: Vec<(Occur, Box<dyn Query>)> = terms
            .map(|term| -> Box<dyn Query> {
                Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))
            })
            .map(|query| (occur, query))
            .collect();
        match (clauses.len(), clauses.pop()) {
            (1, Some((_, only))) => only,
            (_, last) => {
                clauses.extend(last);
                Box::new(BooleanQuery::new(clauses))
            }
        }
    }

    /// The best documents.
    ///
    /// # Errors
    /// Any error of tantivy.
    pub fn top(&self, asked: &Asked, limit: usize) -> Result<Hits> {
        let searcher = self.reader.searcher();
        let best = TopDocs::with_limit(limit).order_by_score();
        let found = searcher.search(&*self.query(asked), &best)?;
        let hit = |(score, address): (f32, tantivy::DocAddress)| {
            let ids = searcher.segment_reader(address.segment_ord).fast_fields().u64("id")?;
            let id = ids.first(address.doc_id).unwrap_or_default();
            Ok((id as u32, f64::from(score)))
        };
        found.into_iter().map(hit).collect()
    }

    /// The number of documents that match.
    ///
    /// # Errors
    /// Any error of tantivy.
    pub fn count(&self, asked: &Asked) -> Result<usize> {
        self.reader.searcher().search(&*self.query(asked), &Count)
    }

    /// The number of segments.
    ///
    /// # Errors
    /// Any error of tantivy.
    pub fn segments(&self) -> Result<usize> {
        Ok(self.index.searchable_segment_ids()?.len())
    }

    /// The size of the index without the texts.
    ///
    /// # Errors
    /// Any error of tantivy.
    pub fn index_bytes(&self) -> Result<u64> {
        let usage = self.reader.searcher().space_usage()?;
        let store = usage.segments().iter().map(|segment| segment.store().total().get_bytes());
        Ok(usage.total().get_bytes() - store.sum::<u64>())
    }
}
