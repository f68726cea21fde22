//! The paragraphs of "Alice's Adventures in Wonderland" by their words, and large cities by
//! misspelt names.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Instant;

use flate2::read::MultiGzDecoder;
use keyloom::{Budget, Budgeted, Error, Result, Store, Subspace, Writer};
use keyloom_patterns::bitmaps::one;
use keyloom_patterns::text::analysis::Tokenizer;
use keyloom_patterns::text::{Analyzer, Hit, Query, QueryParser, RecordHit, TextIndex};
use keyloom_patterns::{Attached, BatchSize, Table};
use serde::{Deserialize, Serialize};

use crate::cities::{self, City};
use crate::options::Options;
use crate::report::{ask, grouped, is_there, say};
use crate::{About, Step, Tour, TourResult, TourStore};

pub const ABOUT: About = About {
    name: "full-text search: relevance, phrases, proximity",
    title: "Search texts by relevance",
    chapter: "book/src/text.md",
    layout: "(paragraphs.by_text, 2, field, term, last id) -> postings",
    data: &[
        "paragraphs",
        "paragraphs.by_text",
        "city_names",
        "city_names.by_words",
        "remarks",
        "remarks.by_words",
    ],
    shown: "rabbits in waistcoats",
};

/// The number of records per transaction.
pub const BATCH: usize = 500;
/// Cities with fewer inhabitants are left out.
const INHABITANTS: u64 = 50_000;
/// The number of printed characters of a paragraph.
const SHOWN: usize = 90;

/// Remarks of readers, in French.
const REMARKS: [&str; 3] =
    ["L'oiseau est un flamant rose !", "Encore un \u{1f375}, dit le Lapin", "J'aime le Chapelier"];

type Snapshot<'s> = <TourStore as Store>::Snapshot<'s>;

#[derive(Clone, Serialize, Deserialize)]
struct Paragraph {
    chapter: String,
    text: String,
}

pub struct FullText {
    paragraphs: Table<u32, Paragraph>,
    by_text: Attached<TextIndex<u32, Paragraph>>,
    names: Table<u32, String>,
    by_name: Attached<TextIndex<u32, String>>,
    remarks: Table<u32, String>,
    by_remark: Attached<TextIndex<u32, String>>,
    loaded: Subspace,
}

impl FullText {
    pub fn new(tour: &Tour<'_>) -> Result<Self> {
        let paragraphs = tour.schema.table("paragraphs")?;
        let by_text = tour.schema.derive(&paragraphs, "by_text", 1, |space| {
            Ok(TextIndex::with_keys_as_ids(space)
                .field("text", Analyzer::english(), |_id, paragraph: &Paragraph, add| {
                    add(&paragraph.text);
                })
                .values("chapter", |_, paragraph| one(&paragraph.chapter)))
        })?;
        let names = tour.schema.table("city_names")?;
        let by_name = tour.schema.derive(&names, "by_words", 1, |space| {
            Ok(TextIndex::with_keys_as_ids(space).field(
                "name",
                Analyzer::names(),
                |_id, name: &String, add| add(name),
            ))
        })?;
        let remarks = tour.schema.table("remarks")?;
        let by_remark = tour.schema.derive(&remarks, "by_words", 1, |space| {
            let analyzer = Analyzer::new("remarks", Tokenizer::words_and_emoji()).lower_case();
            Ok(TextIndex::with_keys_as_ids(space).field(
                "text",
                analyzer.elision(["d", "j", "l", "qu", "s"]),
                |_id, remark: &String, add| add(remark),
            ))
        })?;
        let loaded = Subspace::new(&("tour", "loaded"));
        Ok(Self { paragraphs, by_text, names, by_name, remarks, by_remark, loaded })
    }

    fn parse(query: &str) -> Result<Query> {
        Ok(QueryParser::new(["text"]).parse(query)?)
    }

    /// The number of paragraphs that match a query, and the best paragraphs with the words marked.
    fn best(&self, snapshot: &Snapshot<'_>, query: &str) -> Result<(Vec<String>, ())> {
        let (index, query) = (self.by_text.at(snapshot)?, Self::parse(query)?);
        let highlighter = index.highlighter("text", &query)?;
        let highlighter = highlighter.fragments(1).fragment_chars(SHOWN).tags("*", "*");
        let highlighter = highlighter.escape_html(false);
        let search = index.search(query);
        let mut lines = vec![format!("{} paragraphs", search.count(snapshot)?)];
        let found = search.limit(3).records(snapshot, &self.paragraphs)?.items;
        lines.extend(found.iter().map(|RecordHit { key, value, score }| {
            let marked = highlighter.highlight(&value.text);
            let marked = marked.first().map_or("", |fragment| &fragment.text);
            format!("{score:.2}  {key}, {}: {marked}", value.chapter)
        }));
        Ok((lines, ()))
    }

    /// The cities whose names have words that differ from these in at most one letter.
    fn cities_like(&self, snapshot: &Snapshot<'_>, name: &str) -> Result<(Vec<String>, ())> {
        let words = name.split(' ').map(|word| Query::fuzzy("name", word, 1));
        let search = self.by_name.at(snapshot)?.search(Query::all_of(words)).limit(3);
        let found = search.records(snapshot, &self.names)?.items;
        Ok((found.iter().map(|hit| format!("{:.2}  {}", hit.score, hit.value)).collect(), ()))
    }
}

/// The cities with at least `INHABITANTS` inhabitants.
pub fn large_cities(data: &Path) -> TourResult<Vec<(u32, City)>> {
    let is_large = |city: &TourResult<(u32, City)>| {
        city.as_ref().map_or(true, |(_, city)| city.population >= INHABITANTS)
    };
    cities::read(data)?.filter(is_large).collect()
}

/// The paragraphs of the book, each with the title of its chapter.
fn read(data: &Path) -> TourResult<Vec<(u32, Paragraph)>> {
    let path = data.join("alice.txt.gz");
    let damaged = |what: &dyn std::fmt::Display| format!("{}: {what}", path.display());
    let file = File::open(&path).map_err(|error| damaged(&error))?;
    let mut book = String::new();
    MultiGzDecoder::new(file).read_to_string(&mut book).map_err(|error| damaged(&error))?;
    let mut paragraphs = Vec::new();
    // The table of contents names the chapters too, but not at the beginning of a line.
    for chapter in book.split("\nCHAPTER ").skip(1) {
        let (heading, text) = chapter.split_once("\n\n").unwrap_or((chapter, ""));
        let Some((_, title)) = heading.split_once('\n') else { continue };
        let (text, _) = text.split_once("\nTHE END").unwrap_or((text, ""));
        let of_chapter = text.split("\n\n").filter(|text| text.contains(char::is_alphabetic));
        paragraphs.extend(of_chapter.map(|text| Paragraph {
            chapter: title.trim().to_owned(),
            text: text.split_whitespace().collect::<Vec<_>>().join(" "),
        }));
    }
    match paragraphs.is_empty() {
        true => Err(damaged(&"the file is damaged: no chapters").into()),
        false => Ok((1..).zip(paragraphs).collect()),
    }
}

impl Step for FullText {
    fn load(&self, store: &TourStore, options: &Options) -> TourResult {
        let loaded = self.loaded.pack("texts");
        if is_there(store, &loaded)? {
            say!("texts      in the store already");
            return Ok(());
        }
        let started = Instant::now();
        let paragraphs = read(&options.data)?;
        let names = large_cities(&options.data)?.into_iter().map(|(id, city)| (id, city.name));
        let names: Vec<_> = names.collect();
        let mut size = BatchSize::new(BATCH);
        size.transact_all(store, &paragraphs, |txn, part| self.paragraphs.put_many(txn, part))?;
        size.transact_all(store, &names, |txn, part| self.names.put_many(txn, part))?;
        store.transact(|txn| {
            self.remarks.put_many(txn, (1..).zip(REMARKS.map(str::to_owned)))?;
            txn.put(&loaded, b"")
        })?;
        let [paragraphs, names] = [paragraphs.len(), names.len()].map(|n| grouped(n as u64));
        let seconds = started.elapsed().as_secs_f64();
        say!("texts      {paragraphs} paragraphs and {names} names of cities, in {seconds:.2} s");
        Ok(())
    }

    fn ask(&self, store: &TourStore) -> TourResult {
        for (question, query) in [
            ("Which paragraphs say most about rabbits in waistcoats?", "rabbits waistcoats"),
            ("Where is a head in danger? (phrase)", r#""off with her head""#),
            ("Where are the Hatter and tea close together? (proximity)", "NEAR(Hatter tea)~5"),
        ] {
            ask(store, &format!("{question}  {query}"), |snapshot| self.best(snapshot, query))?;
        }
        ask(store, "In which chapters does the Queen shout? (facets of a result)", |snapshot| {
            let index = self.by_text.at(snapshot)?;
            let search = index.search(Self::parse("queen AND shouted")?);
            let rows = search.facets::<String>(snapshot, "chapter", 3)?.into_iter();
            Ok((rows.map(|(chapter, count)| format!("{chapter}: {count}")).collect(), ()))
        })?;
        ask(store, "Why is the best paragraph on rabbits the best? (explanation)", |snapshot| {
            let search = self.by_text.at(snapshot)?.search(Self::parse("rabbit")?).limit(1);
            let Some(Hit { key, .. }) = search.hits(snapshot)?.items.into_iter().next() else {
                return Ok((Vec::new(), ()));
            };
            let why = search.explain_score(snapshot, &key)?;
            let why = why.map(|why| why.to_string()).unwrap_or_default();
            Ok((why.lines().map(str::to_owned).collect(), ()))
        })?;
        for name in ["sao paolo", "Wroclav"] {
            let question = format!("Which city is {name:?}? (a wrong letter, accents folded)");
            ask(store, &question, |snapshot| self.cities_like(snapshot, name))?;
        }
        ask(
            store,
            "Which cities have Los in their names, from A to Z? (another order)",
            |snapshot| {
                let search = self.by_name.at(snapshot)?.search(Query::term("name", "los")).limit(3);
                let page =
                    search.records_sorted_by(snapshot, &self.names, |_, name, _| name.clone())?;
                Ok((page.items.iter().map(|hit| hit.value.clone()).collect(), ()))
            },
        )?;
        ask(
            store,
            "Which paragraphs have a word in -ing? (refused: more than 100 reads)",
            |snapshot| {
                let reader = Budgeted::new(snapshot, Budget::new().reads(100));
                let search = self.by_text.at(&reader)?.search(Self::parse("*ing")?);
                let refused = search.count(&reader).err().ok_or("it was not refused");
                let refused = refused.map_err(Error::other)?.to_string();
                Ok((vec![refused.split("; ").next().unwrap_or_default().to_owned()], ()))
            },
        )?;
        self.ask_remarks(store)
    }
}

impl FullText {
    fn ask_remarks(&self, store: &TourStore) -> TourResult {
        for (question, word) in [
            ("Which remark is about a bird? (l'oiseau, with its article elided)", "oiseau"),
            ("Which remark is about tea? (an emoji is a word)", "\u{1f375}"),
        ] {
            ask(store, question, |snapshot| {
                let search = self.by_remark.at(snapshot)?.search(Query::term("text", word));
                let found = search.records(snapshot, &self.remarks)?.items;
                Ok((found.iter().map(|hit| hit.value.clone()).collect(), ()))
            })?;
        }
        Ok(())
    }
}
