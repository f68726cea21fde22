//! Six posts with an index of their texts, for the chapter on full-text search.

use keyloom::{Memory, Result, Store};
use keyloom_patterns::bitmaps::one;
use keyloom_patterns::text::{Analyzer, Detail, Query, QueryParser, TextIndex};
use keyloom_patterns::{Attached, Schema, Table};
use serde::{Deserialize, Serialize};

/// A post.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Post {
    /// The title of a chapter of a book.
    pub title: String,
    /// Some sentences.
    pub body: String,
    /// What it is about.
    pub tags: Vec<String>,
}

/// The posts by number, and the index of their texts.
pub struct Posts {
    /// The records.
    pub table: Table<u32, Post>,
    /// The index.
    pub text: Attached<TextIndex<u32, Post>>,
}

const POSTS: [(u32, &str, &[&str], &str); 6] = [
    (
        1,
        "Down the Rabbit-Hole",
        &["animals"],
        "Alice was tired of sitting by her sister. Suddenly a White Rabbit with pink eyes ran by.",
    ),
    (
        2,
        "The Pool of Tears",
        &["animals", "clothes"],
        "The Rabbit returned, splendidly dressed, with a pair of white gloves and a large fan.",
    ),
    (3, "Pig and Pepper", &["animals"], "The Cat only grinned when it saw Alice."),
    (
        4,
        "A Mad Tea-Party",
        &["animals", "tea"],
        "The Hatter was having tea. A Dormouse was sitting between him and the March Hare.",
    ),
    (
        5,
        "The Queen’s Croquet-Ground",
        &["court"],
        "The Queen turned crimson with fury and screamed: Off with her head!",
    ),
    (
        6,
        "Alice’s Evidence",
        &["animals", "court"],
        "The White Rabbit put on his spectacles. “Where shall I begin?” he asked the King.",
    ),
];

/// A store with the posts, and more fields than the first example of the chapter declares.
///
/// # Errors
/// None in practice: errors of a store in memory.
pub fn open() -> Result<(Memory, Posts)> {
    let store = Memory::new();
    let schema = Schema::open(&store, "blog")?;
    let table = schema.table::<u32, Post>("posts")?;
    let text = schema.derive(&table, "text", 1, |space| {
        Ok(TextIndex::new(space)
            .field("title", Analyzer::english(), |_id, post: &Post, add| add(&post.title))
            .field("body", Analyzer::english(), |_, post, add| add(&post.body))
            // Whole words, for suggestions.
            .field_with("words", Detail::Frequencies, Analyzer::simple(), |_, post, add| {
                add(&post.body);
            })
            .values("tag", |_, post| post.tags.iter().collect())
            .values("title", |_, post| one(&post.title)))
    })?;
    let posts = POSTS.map(|(id, title, tags, body)| {
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        (id, Post { title: title.to_owned(), body: body.to_owned(), tags })
    });
    store.transact(|txn| table.put_many(txn, &posts))?;
    Ok((store, Posts { table, text }))
}

impl Posts {
    /// The ids of the posts that match a query, in ascending order.
    ///
    /// # Errors
    /// An invalid query.
    pub fn matching(&self, store: &Memory, query: impl Into<Query>) -> Result<Vec<u32>> {
        let snapshot = store.snapshot()?;
        let page = self.text.at(&snapshot)?.search(query).limit(100).hits(&snapshot)?;
        let mut ids: Vec<u32> = page.items.into_iter().map(|hit| hit.key).collect();
        ids.sort_unstable();
        Ok(ids)
    }

    /// As [`matching`](Posts::matching), with a query in the query language.
    ///
    /// # Errors
    /// A query that does not parse.
    pub fn parsed(&self, store: &Memory, query: &str) -> Result<Vec<u32>> {
        self.matching(store, QueryParser::new(["body"]).parse(query)?)
    }
}
