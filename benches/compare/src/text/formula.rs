//! BM25 by its formula, over all documents.

use std::collections::BTreeMap;

use super::Hits;

const K1: f64 = 1.2;
const B: f64 = 0.75;

/// The document length that the scores use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lengths {
    /// The number of words.
    Exact,
    /// The number of words, rounded down to the values of one byte: Lucene's `SmallFloat`, which
    /// tantivy uses too. Exact up to 40. The average length is exact.
    Byte,
}

impl Lengths {
    fn of(self, words: usize) -> f64 {
        let rounded = match self {
            Self::Byte if words > 40 => {
                // From 40 on, four significant bits of the excess over 24.
                let above = words - 24;
                let shift = (usize::BITS - 4).saturating_sub(above.leading_zeros());
                (above >> shift << shift) + 24
            }
            _ => words,
        };
        rounded as f64
    }
}

/// The documents with any of the words, best first. Ties are in order of their ids.
pub fn naive(texts: &[String], words: &[&str], lengths: Lengths) -> Hits {
    let texts: Vec<Vec<String>> =
        texts.iter().map(|text| text.split_whitespace().map(str::to_lowercase).collect()).collect();
    let all = texts.len() as f64;
    let average = texts.iter().map(Vec::len).sum::<usize>() as f64 / all;
    let mut scores = BTreeMap::<u32, f64>::new();
    for word in words {
        let frequency =
            |text: &Vec<String>| text.iter().filter(|other| other == word).count() as f64;
        let with = texts.iter().filter(|text| frequency(text) > 0.0).count() as f64;
        let idf = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
        for (id, text) in (0..).zip(&texts) {
            let frequency = frequency(text);
            let norm = K1 * (1.0 - B + B * lengths.of(text.len()) / average);
            if frequency > 0.0 {
                *scores.entry(id).or_default() += idf * frequency * (K1 + 1.0) / (frequency + norm);
            }
        }
    }
    let mut hits: Hits = scores.into_iter().collect();
    hits.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    hits
}

#[cfg(test)]
mod tests {
    use super::Lengths;

    #[test]
    fn lengths_of_a_byte_are_those_of_its_table() {
        let table = [
            (40, 40),
            (41, 40),
            (42, 42),
            (57, 56),
            (61, 60),
            (63, 60),
            (64, 64),
            (95, 88),
            (96, 96),
            (150, 144),
            (199, 184),
            (311, 280),
            (312, 312),
            (663, 600),
            (12_312, 12_312),
        ];
        for (words, rounded) in table {
            assert_eq!(Lengths::Byte.of(words), f64::from(rounded), "{words}");
            assert_eq!(Lengths::Exact.of(words), words as f64);
        }
    }
}
