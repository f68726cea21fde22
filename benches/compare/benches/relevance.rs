//! The quality of the ranking, compared with tantivy: nDCG@10 on a generated collection with
//! judgements.
//!
//! ```text
//! cargo bench -p keyloom-compare --features tantivy --bench relevance
//! ```

#![allow(missing_docs, clippy::unwrap_used)]

use keyloom_compare::text::{Asked, Collection, Hits, Kind, Own, Tantivy, ndcg};

const SEEDS: [u64; 3] = [1, 2, 3];

fn main() {
    println!("nDCG@10, the mean of 200 topics on 20,000 texts of 20 to 400 words");
    for seed in SEEDS {
        let collection = Collection::generate(seed, 20_000, 200);
        let directory = tempfile::tempdir().unwrap();
        let own = Own::create(&directory.path().join("own")).unwrap();
        let mut tantivy = Tantivy::create(&directory.path().join("tantivy")).unwrap();
        own.put_all(&collection.texts).unwrap();
        tantivy.put_all(&collection.texts).unwrap();
        let of_own = mean(&collection, |asked| own.top(asked, 10).unwrap());
        let of_tantivy = mean(&collection, |asked| tantivy.top(asked, 10).unwrap());
        let difference = of_own - of_tantivy;
        println!(
            "    seed {seed}: keyloom {of_own:.4}, tantivy {of_tantivy:.4}, difference {difference:+.4}"
        );
        assert!(difference.abs() <= 0.01, "the rankings have different quality");
        assert!((0.2..0.95).contains(&of_own), "the collection is too easy or too difficult");
    }
}

fn mean(collection: &Collection, top: impl Fn(&Asked) -> Hits) -> f64 {
    let of_topic = collection.topics.iter().map(|topic| {
        let asked = Asked { kind: Kind::Any, words: topic.words.clone() };
        ndcg(&top(&asked), topic)
    });
    of_topic.sum::<f64>() / collection.topics.len() as f64
}
