//! Articles, searched through two indexes of their texts: one that assigns ids, and one whose keys
//! are ids.

mod answers;

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use keyloom::{DynWriter, Memory, Reader, Result, Subspace};
use keyloom_patterns::text::{Analyzer, Detail, TextIndex};
use keyloom_patterns::{Attached, Schema, Table, bitmaps};
use serde::{Deserialize, Serialize};

use super::numbered::Numbered;
use crate::Workload;

/// A record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Article {
    title: String,
    body: Vec<String>,
    year: Option<i64>,
}

type ByText = TextIndex<u16, Article>;

/// The table and its indexes.
#[derive(Clone)]
pub struct Articles {
    table: Table<u16, Article>,
    by_given_id: Attached<ByText>,
    by_key: Attached<ByText>,
}

/// One operation of the pattern.
#[derive(Clone, Debug)]
pub enum Change {
    Put(u16, Article),
    Delete(u16),
    PutMany(Vec<(u16, Article)>),
    DeleteMany(Vec<u16>),
    /// Puts articles with consecutive keys, enough to split a block of postings.
    Load {
        first: u16,
        count: u16,
    },
    /// Deletes articles with consecutive keys, so that blocks are merged.
    Clear {
        first: u16,
        count: u16,
    },
}

/// The expected data.
pub type Model = Numbered<u16, Article>;

/// Words as they are written, and their terms.
const WORDS: [(&str, &str); 8] = [
    ("the", "the"),
    ("The", "the"),
    ("rabbit", "rabbit"),
    ("RABBIT", "rabbit"),
    ("Café", "cafe"),
    ("cafe", "cafe"),
    ("hole", "hole"),
    ("a1", "a1"),
];
const TERMS: [&str; 5] = ["the", "rabbit", "cafe", "hole", "a1"];
const FIELDS: [&str; 3] = ["title", "body", "tags"];
/// More keys than a block has postings.
const KEYS: u16 = 200;
/// The first key that no operation uses. From here on, there is one key for each id.
const UNUSED_KEYS: u16 = 60_000;

/// A word that is longer than a term may be.
fn long_word() -> String {
    "long".repeat(75)
}

/// The terms of a text. A long word is a single term.
fn terms_of(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(' ').filter(|word| !word.is_empty());
    let known = |word| WORDS.iter().find(|(written, _)| *written == word);
    words.map(move |word| known(word).map_or(word, |(_, term)| term))
}

/// Declares fields with positions and with frequencies only.
fn declare(index: ByText) -> ByText {
    let title = |_: &u16, article: &Article, add: &mut dyn FnMut(&str)| add(&article.title);
    index
        .field("title", Analyzer::names(), title)
        .field("body", Analyzer::names(), |_, article, add| {
            article.body.iter().for_each(|text| add(text));
        })
        .field_with("tags", Detail::Frequencies, Analyzer::names(), title)
        .values("words", |_, article| bitmaps::one(article.title.split(' ').count()))
        .integers("year", |_, article| article.year)
}

impl Articles {
    pub fn new(schema: &Schema<'_, Memory>) -> Result<Self> {
        let table = schema.table("articles")?;
        let by_given_id =
            schema.derive(&table, "by_given_id", 1, |space| Ok(declare(TextIndex::new(space))))?;
        let by_key = schema
            .derive(&table, "by_key", 1, |space| Ok(declare(TextIndex::with_keys_as_ids(space))))?;
        Ok(Self { table, by_given_id, by_key })
    }

    fn text(rng: &mut Rng, most: usize) -> String {
        let mut words: Vec<&str> = (0..rng.usize(..most))
            .filter_map(|_| rng.choice(WORDS))
            .map(|(word, _)| word)
            .collect();
        let long = long_word();
        if rng.u8(..30) == 0 {
            words.push(&long);
        }
        words.join(" ")
    }

    fn article(rng: &mut Rng) -> Article {
        let title = Self::text(rng, 4);
        let body = (0..rng.usize(..3)).map(|_| Self::text(rng, 9)).collect();
        Article { title, body, year: rng.bool().then(|| rng.i64(1990..2030)) }
    }

    /// The article with a key in a load. The first word is the same in all articles.
    fn loaded(key: u16) -> Article {
        let word = |n: u16| WORDS.get(usize::from(n) % WORDS.len()).map_or("", |(word, _)| word);
        let body = format!("the {} the {}", word(key), word(key / 3));
        Article { title: word(key).to_owned(), body: vec![body], year: Some(key.into()) }
    }

    /// The changed records of an operation, and the keys of deleted ones, in key order.
    fn effect(operation: &Change) -> (BTreeMap<u16, Article>, BTreeSet<u16>) {
        let keys = |first: u16, count: u16| first..first.saturating_add(count);
        let (mut put, mut deleted) = (BTreeMap::new(), BTreeSet::new());
        match operation {
            Change::Put(key, article) => drop(put.insert(*key, article.clone())),
            Change::PutMany(articles) => put.extend(articles.iter().cloned()),
            Change::Load { first, count } => {
                put.extend(keys(*first, *count).map(|key| (key, Self::loaded(key))));
            }
            Change::Delete(key) => drop(deleted.insert(*key)),
            Change::DeleteMany(keys) => deleted.extend(keys),
            Change::Clear { first, count } => deleted.extend(keys(*first, *count)),
        }
        (put, deleted)
    }
}

impl Model {
    /// The number of documents and of tokens of a field, and the number of documents with each
    /// term.
    fn counts(&self, field: &str) -> Vec<i64> {
        let all: Vec<Vec<&str>> = self.records.values().map(|one| one.terms(field)).collect();
        let documents = all.iter().filter(|terms| !terms.is_empty()).count();
        let tokens = all.iter().map(Vec::len).sum::<usize>();
        let of_terms = TERMS.map(|term| all.iter().filter(|terms| terms.contains(&term)).count());
        [documents, tokens].into_iter().chain(of_terms).map(|count| count as i64).collect()
    }
}

impl Article {
    /// The terms of a field, in text order.
    fn terms(&self, field: &str) -> Vec<&str> {
        let texts = if field == "body" { &self.body } else { std::slice::from_ref(&self.title) };
        texts.iter().flat_map(|text| terms_of(text)).collect()
    }
}

/// Like [`Model::counts`], from the counters of an index.
fn counted(index: &ByText, txn: &DynWriter<'_>, field: u32) -> Result<Vec<i64>> {
    let space = index.space();
    let totals = [space.pack(&(4, field, 0)), space.pack(&(4, field, 1))];
    let of_terms = TERMS.map(|term| space.pack(&(1, field, term)));
    totals.iter().chain(&of_terms).map(|key| txn.counter(key)).collect()
}

impl Workload for Articles {
    type Operation = Change;
    type Model = Model;

    fn name(&self) -> &'static str {
        "articles"
    }

    fn records(&self) -> Vec<Subspace> {
        vec![self.table.space().clone()]
    }

    fn derived(&self) -> Vec<Subspace> {
        vec![self.by_given_id.space(), self.by_key.space()]
    }

    fn operation(&self, rng: &mut Rng) -> Change {
        let key = |rng: &mut Rng| rng.u16(..KEYS);
        let some = |rng: &mut Rng| 0..rng.usize(..8);
        match rng.u8(..30) {
            0..12 => Change::Put(key(rng), Self::article(rng)),
            12..20 => Change::Delete(key(rng)),
            20..24 => Change::PutMany(some(rng).map(|_| (key(rng), Self::article(rng))).collect()),
            24..26 => Change::DeleteMany(some(rng).map(|_| key(rng)).collect()),
            26..28 => Change::Load { first: rng.u16(..KEYS / 4), count: rng.u16(..KEYS) },
            _ => Change::Clear { first: key(rng), count: rng.u16(..KEYS / 2) },
        }
    }

    fn perform(&self, operation: &Change, txn: &mut DynWriter<'_>) -> Result<()> {
        match operation {
            Change::Put(key, article) => self.table.put(txn, key, article),
            Change::Delete(key) => self.table.delete(txn, key).map(drop),
            many => {
                let (put, deleted) = Self::effect(many);
                self.table.put_many(txn, put)?;
                self.table.delete_many(txn, &deleted).map(drop)
            }
        }
    }

    fn imitate(&self, operation: &Change, model: &mut Model) {
        // Ids are assigned in key order.
        let (put, deleted) = Self::effect(operation);
        put.into_iter().for_each(|(key, article)| model.put(key, article));
        deleted.iter().for_each(|key| drop(model.delete(key)));
    }

    fn check(&self, txn: &DynWriter<'_>) -> Result<Vec<String>> {
        let mut found = self.by_given_id.check(txn)?;
        found.extend(self.by_key.check(txn)?);
        Ok(super::reported(&found))
    }

    fn judge(&self, txn: &DynWriter<'_>, model: &Model) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        let records: BTreeMap<u16, Article> = self.table.range(txn, ..)?.collect::<Result<_>>()?;
        super::compare(&mut wrong, "the table", &records, &model.records);
        let (by_given_id, by_key) = (self.by_given_id.at(txn)?, self.by_key.at(txn)?);
        model.judge_ids(&mut wrong, by_given_id.records(), txn)?;
        for (number, field) in (0..).zip(FIELDS) {
            let wanted = model.counts(field);
            for index in [by_given_id, by_key] {
                let found = counted(index, txn, number)?;
                super::compare(&mut wrong, &format!("a count of {field}"), &found, &wanted);
            }
        }
        let of_given =
            answers::wanted(model, |key| model.ids.get(&key).copied().unwrap_or(u64::MAX));
        let of_keys = answers::wanted(model, u64::from);
        for (index, wanted) in [(by_given_id, of_given), (by_key, of_keys)] {
            super::compare(&mut wrong, "what is found", answers::found(index, txn)?, wanted);
        }
        Ok(wrong)
    }

    fn rebuild(&self, model: &Model, txn: &mut DynWriter<'_>) -> Result<()> {
        let unused = |id| UNUSED_KEYS + u16::try_from(id).unwrap_or(u16::MAX - UNUSED_KEYS);
        let empty = Article { title: String::new(), body: Vec::new(), year: None };
        model.rebuild(&self.table, txn, unused, &empty)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use keyloom::Store;

    use super::*;
    use crate::Mix;

    /// Otherwise no campaign would test the splitting of blocks.
    #[test]
    fn histories_divide_and_join_blocks_of_postings() {
        let store = Memory::new();
        let articles = Articles::new(&Schema::open(&store, "test").unwrap()).unwrap();
        let (mut most, mut joined) = (0, 0);
        for seed in Mix::history(1, 120) {
            let operation = Workload::operation(&articles, &mut Rng::with_seed(seed));
            store.transact(|txn| articles.perform(&operation, &mut DynWriter::new(txn))).unwrap();
            let snapshot = store.snapshot().unwrap();
            let list = articles.by_key.space().child(&(2, 1, "the"));
            let blocks = snapshot.count(list.range()).unwrap();
            joined += u32::from(blocks < most);
            most = most.max(blocks);
        }
        assert!(most > 1 && joined > 0, "{most} blocks, {joined} times fewer");
    }
}
