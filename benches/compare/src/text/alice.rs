//! The paragraphs of a book.

use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;

/// The paragraphs of "Alice's Adventures in Wonderland", without punctuation: tokenizers split
/// words with apostrophes differently.
///
/// # Errors
/// If the file of the tour's data cannot be read.
pub fn paragraphs() -> std::io::Result<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/alice.txt.gz");
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(path)?).read_to_string(&mut text)?;
    let words = |paragraph: &str| {
        let is_word = |word: &&str| !word.is_empty();
        let words = paragraph.split(|c: char| !c.is_alphanumeric()).filter(is_word);
        words.collect::<Vec<_>>().join(" ")
    };
    let text = text.replace("\r\n", "\n");
    Ok(text.split("\n\n").map(words).filter(|words| !words.is_empty()).collect())
}
