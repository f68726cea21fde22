//! A generated collection with judgements of relevance.

use std::collections::HashMap;

use fastrand::Rng;

use super::Hits;
use super::corpus::{VOCABULARY, word};

/// The number of words that belong to a topic.
const TOPIC_WORDS: usize = 30;
/// The percentage of topic words in a text, for each grade from 1 on.
const SHARES: [u8; 3] = [8, 16, 30];

/// A query with the relevant documents.
#[derive(Clone, Debug)]
pub struct Topic {
    /// The words of the query.
    pub words: Vec<String>,
    /// The documents that are relevant, graded from 1 to 3.
    pub grades: HashMap<u32, u8>,
}

/// Texts, some of which are about topics.
///
/// A text of grade `g` takes a share of its words from its topic and the rest from the whole
/// vocabulary. A query consists of three words of its topic. So a relevant text may lack these
/// words and an irrelevant text may contain them: no ranking is perfect. The lengths differ by a
/// factor of 20.
#[derive(Clone, Debug, Default)]
pub struct Collection {
    /// The texts by id.
    pub texts: Vec<String>,
    /// The topics.
    pub topics: Vec<Topic>,
}

impl Collection {
    /// Generates a collection. The same seed gives the same collection.
    pub fn generate(seed: u64, documents: u32, topics: usize) -> Self {
        let mut random = Rng::with_seed(seed);
        let words: Vec<Vec<u32>> = (0..topics)
            .map(|_| (0..TOPIC_WORDS).map(|_| rank(&mut random, 20_000) + 30).collect())
            .collect();
        let query = |random: &mut Rng, words: &Vec<u32>| {
            (0..3).filter_map(|_| random.choice(words)).map(|rank| word(*rank)).collect()
        };
        let mut all = Self::default();
        for words in &words {
            let words = query(&mut random, words);
            all.topics.push(Topic { words, grades: HashMap::new() });
        }
        for id in 0..documents {
            // A tenth of the texts have a topic.
            let about = random.usize(0..topics * 10);
            let grade = random.usize(0..SHARES.len());
            let share = SHARES.get(grade).copied().unwrap_or(0);
            if let Some(topic) = all.topics.get_mut(about) {
                topic.grades.insert(id, grade as u8 + 1);
            }
            all.texts.push(text(&mut random, words.get(about), share));
        }
        all
    }
}

/// A rank below `below`, by Zipf's law.
fn rank(random: &mut Rng, below: u32) -> u32 {
    (f64::from(below + 1).powf(random.f64()) - 1.0) as u32
}

fn text(random: &mut Rng, topic: Option<&Vec<u32>>, share: u8) -> String {
    let many = 20.0 * 20_f64.powf(random.f64());
    let mut text = String::new();
    for _ in 0..many as usize {
        let of_topic = topic.filter(|_| random.u8(0..100) < share);
        // The first words of a topic are its most frequent words.
        let of_topic =
            of_topic.and_then(|words| words.get(rank(random, TOPIC_WORDS as u32) as usize));
        let rank = of_topic.copied().unwrap_or_else(|| rank(random, VOCABULARY));
        text.push_str(&word(rank));
        text.push(' ');
    }
    text
}

/// The normalized discounted cumulative gain of the first ten hits, with the gain 2^grade - 1.
pub fn ndcg(hits: &Hits, topic: &Topic) -> f64 {
    let gain = |grade: u8| f64::from(1_u32 << grade) - 1.0;
    let sum = |grades: &mut dyn Iterator<Item = u8>| {
        let discount = (2_u32..).map(|rank| f64::from(rank).log2());
        grades.take(10).zip(discount).map(|(grade, by)| gain(grade) / by).sum::<f64>()
    };
    let grade = |(doc, _): &(u32, f64)| topic.grades.get(doc).copied().unwrap_or(0);
    let mut best: Vec<u8> = topic.grades.values().copied().collect();
    best.sort_unstable_by(|a, b| b.cmp(a));
    let best = sum(&mut best.into_iter());
    if best > 0.0 { sum(&mut hits.iter().map(grade)) / best } else { 0.0 }
}
