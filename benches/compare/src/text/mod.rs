//! Full-text search: texts, and the indexes that are compared on them.
//!
//! All indexes have the same terms: words in lower case, without stemming or stop words. All of
//! them store the texts beside the index, return the ten best documents by BM25 with k1 = 1.2 and
//! b = 0.75, and work on one thread.

mod alice;
mod corpus;
mod formula;
mod fts5;
mod own;
#[cfg(feature = "tantivy")]
mod tantivy;
mod topics;

pub use self::alice::paragraphs;
pub use self::corpus::{Corpus, VOCABULARY, word};
pub use self::formula::{Lengths, naive};
pub use self::fts5::Fts5;
pub use self::own::Own;
#[cfg(feature = "tantivy")]
pub use self::tantivy::Tantivy;
pub use self::topics::{Collection, Topic, ndcg};

/// A document with its score, the best first.
pub type Hits = Vec<(u32, f64)>;

/// The operator that combines the words of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Documents with any of the words.
    Any,
    /// Documents with all of the words.
    All,
    /// Documents that contain the words as a phrase.
    Phrase,
    /// Documents with a word that begins with this one.
    Prefix,
    /// Documents with a word within two edits of this one.
    Fuzzy,
}

/// A query that every index can answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The operator that combines the words.
    pub kind: Kind,
    /// The words, in lower case.
    pub words: Vec<String>,
}

impl Asked {
    /// A query for words of a vocabulary, by their ranks.
    pub fn ranks(kind: Kind, ranks: &[u32]) -> Self {
        Self { kind, words: ranks.iter().map(|rank| word(*rank)).collect() }
    }
}

/// Compares two lists of hits, with a relative tolerance of `tolerance` for scores. The scores must
/// agree rank by rank, and a document in only one list must be as good as the last ones.
///
/// # Errors
/// A description of the first difference.
pub fn same_hits(ours: &[(u32, f64)], theirs: &[(u32, f64)], tolerance: f64) -> Result<(), String> {
    if ours.len() != theirs.len() {
        return Err(format!("{} hits instead of {}", ours.len(), theirs.len()));
    }
    let is_near = |a: f64, b: f64| (a - b).abs() <= tolerance * a.abs().max(b.abs());
    for (rank, (our, their)) in ours.iter().zip(theirs).enumerate() {
        if !is_near(our.1, their.1) {
            return Err(format!("at rank {rank}: {our:?} instead of {their:?}"));
        }
    }
    let Some(worst) = theirs.last() else { return Ok(()) };
    for (doc, score) in ours {
        let other = theirs.iter().find(|(other, _)| other == doc).map(|(_, score)| *score);
        if !is_near(*score, other.unwrap_or(worst.1)) {
            return Err(format!("document {doc} has {score} instead of {other:?}"));
        }
    }
    Ok(())
}
