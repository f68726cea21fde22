//! Generated texts.

use fastrand::Rng;

/// The number of distinct words.
pub const VOCABULARY: u32 = 200_000;

const CONSONANTS: &[u8; 14] = b"bdfghklmnprstv";
const VOWELS: &[u8; 5] = b"aeiou";
const SYLLABLES: u32 = (CONSONANTS.len() * VOWELS.len()) as u32;

/// Documents of 50 to 150 words, 100 on average. The word of rank `n`, counted from 1, is chosen
/// with a probability of about 1/n, as in Zipf's law.
///
/// The lengths differ because BM25 ignores lengths that are all equal.
#[derive(Debug)]
pub struct Corpus {
    seed: u64,
    words: Vec<String>,
    texts: String,
    ends: Vec<usize>,
}

impl Corpus {
    /// Generates documents. The same seed gives the same documents.
    pub fn generate(seed: u64, documents: u32) -> Self {
        let words: Vec<String> = (0..VOCABULARY).map(word).collect();
        let (mut texts, mut ends) = (String::new(), Vec::new());
        for id in 0..documents {
            write_text(&mut random(seed, id, 0), &words, &mut texts);
            ends.push(texts.len());
        }
        Self { seed, words, texts, ends }
    }

    /// The number of documents.
    pub fn len(&self) -> u32 {
        self.ends.len() as u32
    }

    /// Whether there are no documents.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The text of a document; empty if there is no such document.
    pub fn text(&self, id: u32) -> &str {
        let end_of = |id: Option<u32>| id.and_then(|id| self.ends.get(id as usize)).copied();
        let (from, to) = (end_of(id.checked_sub(1)).unwrap_or(0), end_of(Some(id)));
        self.texts.get(from..to.unwrap_or(from)).unwrap_or_default()
    }

    /// All documents with their ids.
    pub fn documents(&self) -> impl Iterator<Item = (u32, &str)> {
        (0..self.len()).map(|id| (id, self.text(id)))
    }

    /// The text of a document after `version` changes.
    pub fn changed_text(&self, id: u32, version: u32) -> String {
        let mut text = String::new();
        write_text(&mut random(self.seed, id, version), &self.words, &mut text);
        text
    }
}

fn random(seed: u64, id: u32, version: u32) -> Rng {
    Rng::with_seed(
        seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64::from(version) << 32 ^ u64::from(id),
    )
}

fn write_text(random: &mut Rng, words: &[String], out: &mut String) {
    for n in 0..random.usize(50..=150) {
        if n > 0 {
            out.push(' ');
        }
        let rank = f64::from(VOCABULARY + 1).powf(random.f64()) as usize - 1;
        out.push_str(words.get(rank).map_or("", String::as_str));
    }
}

/// The word of a rank: one syllable for the most frequent words, then two, then three.
pub fn word(rank: u32) -> String {
    let (mut syllables, mut first, mut many) = (1, 0, SYLLABLES);
    while rank >= first + many {
        first += many;
        many *= SYLLABLES;
        syllables += 1;
    }
    // Words with neighbouring ranks are far apart in alphabetical order.
    let mut rest = ((u64::from(rank - first) * 1_000_003) % u64::from(many)) as u32;
    let mut word = String::new();
    for _ in 0..syllables {
        let syllable = (rest % SYLLABLES) as usize;
        rest /= SYLLABLES;
        let letters =
            [CONSONANTS.get(syllable / VOWELS.len()), VOWELS.get(syllable % VOWELS.len())];
        word.extend(letters.into_iter().flatten().map(|letter| char::from(*letter)));
    }
    word
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{VOCABULARY, word};

    #[test]
    fn words_of_the_vocabulary_are_distinct() {
        let words: HashSet<String> = (0..VOCABULARY).map(word).collect();
        assert_eq!(words.len(), VOCABULARY as usize);
    }
}
