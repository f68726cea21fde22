//! The same index as typical hand-written code: a key for each posting, and scores of all matches.

use std::collections::{BTreeMap, BTreeSet};

use keyloom::{Order, Reader, Result, Subspace, Writer};

/// A document with a term: its id, frequency, length and positions.
pub type Posting = (u32, f64, f64, Vec<u32>);

#[derive(Clone, Copy)]
pub enum Match {
    Any,
    All,
    Phrase,
}

pub struct ByHand {
    space: Subspace,
}

impl ByHand {
    pub fn new(space: Subspace) -> Self {
        Self { space }
    }

    /// Replaces the words of a document.
    pub fn put(
        &self,
        txn: &mut impl Writer,
        id: u32,
        old: Option<&str>,
        new: Option<&str>,
    ) -> Result<()> {
        let [old, new] = [old, new].map(Option::unwrap_or_default);
        let terms: BTreeSet<&str> = old.split_whitespace().chain(new.split_whitespace()).collect();
        let positions = |text: &str, term: &str| -> Vec<u32> {
            let all = (0..).zip(text.split_whitespace()).filter(|(_, word)| *word == term);
            all.map(|(position, _)| position).collect()
        };
        let count = |text: &str| text.split_whitespace().count();
        let len = count(new) as u32;
        for term in terms {
            let (before, after) = (positions(old, term), positions(new, term));
            let key = self.space.pack(&(0, term, id));
            match after.is_empty() {
                true => txn.delete(&key)?,
                false => {
                    let all = std::iter::once(len).chain(after.iter().copied());
                    let value: Vec<u8> = all.flat_map(u32::to_le_bytes).collect();
                    txn.put(&key, &value)?;
                }
            }
            let delta = i64::from(!after.is_empty()) - i64::from(!before.is_empty());
            txn.add(&self.space.pack(&(1, term)), delta)?;
        }
        let documents = i64::from(!new.is_empty()) - i64::from(!old.is_empty());
        txn.add(&self.space.pack(&(2, 0)), documents)?;
        txn.add(&self.space.pack(&(2, 1)), count(new) as i64 - count(old) as i64)
    }

    fn postings(&self, reader: &impl Reader, term: &str) -> Result<Vec<Posting>> {
        let list = self.space.child(&(0, term));
        let all = reader.range(list.range(), Order::Ascending)?.map(|entry| {
            let (key, value) = entry?;
            let mut numbers = value.chunks_exact(4).filter_map(<[u8]>::first_chunk);
            let len = numbers.next().map_or(0, |bytes| u32::from_le_bytes(*bytes));
            let positions: Vec<u32> = numbers.map(|bytes| u32::from_le_bytes(*bytes)).collect();
            let (id,) = list.unpack::<(u32,)>(&key)?;
            Ok((id, positions.len() as f64, f64::from(len), positions))
        });
        all.collect()
    }

    /// The ids and scores of the ten best documents.
    pub fn top(
        &self,
        reader: &impl Reader,
        terms: &[&str],
        matching: Match,
    ) -> Result<Vec<(u32, f64)>> {
        let count = |n: u8| reader.counter(&self.space.pack(&(2, n)));
        let (documents, tokens) = (count(0)? as f64, count(1)? as f64);
        let mut found = BTreeMap::<u32, (f64, Vec<Vec<u32>>)>::new();
        for term in terms {
            let with_term = reader.counter(&self.space.pack(&(1, *term)))? as f64;
            let idf = (1.0 + (documents - with_term + 0.5) / (with_term + 0.5)).ln();
            for (id, frequency, len, positions) in self.postings(reader, term)? {
                let norm = 1.2 * (0.25 + 0.75 * len * documents / tokens);
                let (score, all) = found.entry(id).or_default();
                *score += idf * frequency * 2.2 / (frequency + norm);
                all.push(positions);
            }
        }
        let is_phrase = |all: &[Vec<u32>]| {
            let mut starts = all.first().into_iter().flatten();
            starts.any(|start| (0..).zip(all).all(|(n, next)| next.contains(&(start + n))))
        };
        let mut best: Vec<(u32, f64)> = found
            .into_iter()
            .filter(|(_, (_, all))| match matching {
                Match::Any => true,
                Match::All => all.len() == terms.len(),
                Match::Phrase => all.len() == terms.len() && is_phrase(all),
            })
            .map(|(id, (score, _))| (id, score))
            .collect();
        best.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        best.truncate(10);
        Ok(best)
    }
}
