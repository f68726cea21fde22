//! The laws of derived data.

use std::collections::BTreeMap;

use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Memory, Reader, Result, Subspace};
use keyloom_tables::conformance::{Fidelity, Subject, With, check_maintained};
use keyloom_text::TextIndex;

use super::corpus::{FIELDS, Index, Post, tokens, with_fields};

/// Document counts by field and term.
type Counts = Vec<(String, i64)>;

const TERMS: [&str; 6] = ["a", "b", "c0", "c1", "c2", "z"];

fn record(n: u32, version: u32) -> (u32, Post) {
    let half = version / 2;
    let (title, body) = match version % 5 {
        4 => (String::new(), vec![]),
        _ => (format!("a c{}", (n + half) % 3), vec!["b a b".to_owned(), format!("c{}", half % 3)]),
    };
    // Versions 0 and 1 have the same texts.
    (n, Post { title, body, year: 2_000 + i64::from(n % 7) })
}

fn answers(index: &Index, reader: &impl Reader) -> Result<Counts> {
    let mut counts = Vec::new();
    for (field, name) in (0_u32..).zip(FIELDS) {
        for term in TERMS {
            let count = reader.counter(&index.space().pack(&(1, field, term)))?;
            counts.push((format!("{name} {term}"), count));
        }
        counts.push((name.to_owned(), reader.counter(&index.space().pack(&(4, field, 1)))?));
    }
    Ok(counts)
}

fn model(records: &BTreeMap<u32, Post>) -> Counts {
    let mut counts = Vec::new();
    for name in FIELDS {
        let all: Vec<_> = records.values().map(|post| tokens(post, name)).collect();
        for term in TERMS {
            let has = all.iter().filter(|tokens| tokens.iter().any(|(other, _)| other == term));
            counts.push((format!("{name} {term}"), has.count() as i64));
        }
        counts.push((name.to_owned(), all.iter().map(|tokens| tokens.len() as i64).sum()));
    }
    counts
}

macro_rules! subject {
    ($name:ident, $make:expr, $fidelity:ident) => {
        struct $name;

        impl Subject for $name {
            type Key = u32;
            type Value = Post;
            type Kind = Index;
            type Answers = Counts;

            const FIDELITY: Fidelity = Fidelity::$fidelity;

            fn make(&self, space: &Subspace) -> Result<Index> {
                let make: fn(&Subspace) -> Index = $make;
                Ok(with_fields(make(space)))
            }

            fn record(&self, n: u32, version: u32) -> (u32, Post) {
                record(n, version)
            }

            fn answers(&self, index: &Index, reader: &impl Reader) -> Result<Counts> {
                answers(index, reader)
            }

            fn model(&self, records: &BTreeMap<u32, Post>) -> Counts {
                model(records)
            }

            fn is_neutral(&self, value: &[u8]) -> bool {
                value == [0; 8]
            }
        }
    };
}

subject!(KeysAsIds, TextIndex::with_keys_as_ids, Bytes);
subject!(DenseIds, TextIndex::new, Answers);

#[test]
fn indexes_keep_the_laws_in_memory() {
    check_maintained(|| Ok(Memory::new()), &KeysAsIds);
    check_maintained(|| Ok(Memory::new()), &DenseIds);
}

#[test]
fn indexes_keep_the_laws_beside_other_transactions() {
    check_maintained(|| Ok(Memory::builder().optimistic(true).build()), &DenseIds);
}

#[test]
fn indexes_keep_the_laws_on_lmdb() {
    let make = || {
        let directory = tempfile::tempdir()?;
        let options = Lmdb::options().durability(Durability::MayLoseStore);
        Ok(With(options.open(directory.path())?, directory))
    };
    check_maintained(make, &KeysAsIds);
}
