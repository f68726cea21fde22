//! An index of the paragraphs of a book.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use keyloom::{Memory, Order, Reader, Result, Store, Subspace};
use keyloom_patterns::Table;
use keyloom_patterns::text::{Analyzer, TextIndex};

use crate::Drawn;

/// The index, and the store that it is in.
pub struct Paragraphs {
    pub store: Memory,
    pub index: TextIndex<u32, String>,
}

impl Paragraphs {
    /// Puts all paragraphs of the book, whose keys are their numbers.
    pub fn read() -> Drawn<Self> {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/alice.txt.gz");
        let mut book = String::new();
        MultiGzDecoder::new(File::open(file)?).read_to_string(&mut book)?;
        let (_, text) = book.split_once("\nCHAPTER I.\n").ok_or("the book has no first chapter")?;
        let paragraphs = text.split("\n\n").map(str::trim);
        let has_letters = |paragraph: &&str| paragraph.contains(char::is_alphabetic);
        let paragraphs = (0..).zip(paragraphs.filter(has_letters).map(str::to_owned));
        let index = TextIndex::with_keys_as_ids(&Subspace::new("text")).field(
            "body",
            Analyzer::names(),
            |_id: &u32, body: &String, add| add(body),
        );
        let table = Table::<u32, String>::new(&Subspace::new("paragraphs")).with(&index);
        let store = Memory::new();
        store.transact(|txn| table.put_many(txn, paragraphs.clone()))?;
        Ok(Self { store, index })
    }

    /// The blocks of a term: the last id of each, and its bytes.
    pub fn blocks(&self, term: &str) -> Result<Vec<(u32, Vec<u8>)>> {
        let list = self.index.space().child(&(2, 0, term));
        let snapshot = self.store.snapshot()?;
        let all = snapshot.range(list.range(), Order::Ascending)?;
        let blocks = all.map(|entry| {
            let (key, value) = entry?;
            Ok((list.unpack::<(u32,)>(key)?.0, value.to_vec()))
        });
        blocks.collect()
    }

    /// The paragraphs, and all their tokens.
    pub fn totals(&self) -> Result<[f64; 2]> {
        let snapshot = self.store.snapshot()?;
        let count = |n: u8| snapshot.counter(&self.index.space().pack(&(4, 0, n)));
        Ok([count(0)? as f64, count(1)? as f64])
    }
}
