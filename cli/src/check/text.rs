//! Text indexes: their postings, the counters of the dictionary, and the ids of the documents. Only
//! the analyzer of the program knows which terms a record has.

use keyloom::key::{Element, List, elements, pack};
use keyloom::{AnySnapshot, Order, Reader, Store, Subspace};
use keyloom_bitmaps::{Bitmap, BitmapExpr};
use roaring::RoaringBitmap;

use super::{Findings, bitmaps};
use crate::block;
use crate::catalog::Part;
use crate::failure::Result;
use crate::indexed::Entry;
use crate::work::Work;

/// Checks the structure of a text index.
pub fn check(work: &mut Work<'_>, part: &Part, findings: &mut Findings<'_>) -> Result {
    let records = part.space.child(&0);
    bitmaps::check(work, part, &records, 0, findings)?;
    let all = Bitmap::new(&records.child("all"));
    let is_readable = all.check(&work.store.snapshot()?)?.is_empty();
    let index = Texts {
        part,
        terms: part.space.child(&1),
        blocks: part.space.child(&2),
        all: is_readable.then_some(all),
    };
    let first = bitmaps::STAGES as u32;
    index.dictionary(work, first, findings)?;
    index.lists(work, first + 1, findings)
}

struct Texts<'i> {
    part: &'i Part,
    terms: Subspace,
    blocks: Subspace,
    /// All ids of documents, if they are readable.
    all: Option<Bitmap>,
}

impl Texts<'_> {
    /// The counter of each term is the number of its postings, and each posting is of a document.
    fn dictionary(&self, work: &mut Work<'_>, stage: u32, findings: &mut Findings<'_>) -> Result {
        work.pages(stage, &self.terms.self_and_children(), |snapshot, entries| {
            for (key, value) in entries {
                let own = key.strip_prefix(self.terms.prefix()).unwrap_or_default();
                let list = Subspace::from_bytes(&[self.blocks.prefix(), own].concat());
                let count = self.list(snapshot, &list, findings)?;
                if <[u8; 8]>::try_from(*value).map(u64::from_le_bytes).ok() != Some(count) {
                    findings.add(self.part, key, &format!("the term has {count} postings"))?;
                }
            }
            Ok(findings.faults)
        })
    }

    /// Checks the blocks of a list, and returns the number of its postings.
    fn list(
        &self,
        snapshot: &AnySnapshot<'_>,
        list: &Subspace,
        findings: &mut Findings<'_>,
    ) -> Result<u64> {
        let (mut count, mut documents) = (0, RoaringBitmap::new());
        for entry in snapshot.range(list.range(), Order::Ascending)? {
            let (block, bytes) = entry?;
            match self.postings(list, (&block, &bytes)) {
                Some(postings) => {
                    count += postings.len() as u64;
                    documents.extend(postings.iter().map(|(id, _)| id));
                }
                None => findings.add(self.part, &block, "the postings are not readable")?,
            }
        }
        let strays = self.all.as_ref().map(|all| BitmapExpr::from(documents) - all);
        if let Some(id) = strays.map(|ids| ids.first(snapshot)).transpose()?.flatten() {
            findings.add(self.part, list.prefix(), &format!("no record has the id {id}"))?;
        }
        Ok(count)
    }

    fn postings(&self, list: &Subspace, (key, bytes): Entry<'_>) -> Option<Vec<(u32, u32)>> {
        let last = keyloom::key::unpack(key.strip_prefix(list.prefix())?).ok()?;
        block::postings(bytes, last)
    }

    /// Each block is of a term in the dictionary, or of the list of lengths.
    fn lists(&self, work: &mut Work<'_>, stage: u32, findings: &mut Findings<'_>) -> Result {
        work.pages(stage, &self.blocks.self_and_children(), |snapshot, entries| {
            let terms: Vec<_> = entries.iter().map(|(key, _)| self.term_of(key)).collect();
            let keys: Vec<_> = terms.iter().flatten().map(|(key, _)| key).collect();
            let mut found = snapshot.get_many(&keys)?.into_iter();
            for ((key, _), term) in entries.iter().zip(&terms) {
                let Some((_, is_of_lengths)) = term else {
                    findings.add(self.part, key, "it is not the key of a block")?;
                    continue;
                };
                if found.next().flatten().is_none() && !is_of_lengths {
                    findings.add(self.part, key, "the dictionary lacks the term")?;
                }
            }
            Ok(findings.faults)
        })
    }

    /// The key of the counter of a block's term, and whether the block is of the list of lengths,
    /// which has the empty term and no counter.
    fn term_of(&self, key: &[u8]) -> Option<(Vec<u8>, bool)> {
        let parts = elements(key.strip_prefix(self.blocks.prefix())?).ok()?;
        let (_, own) = parts.split_last()?;
        let Some(Element::Str(term)) = own.last() else { return None };
        Some(([self.terms.prefix(), &pack(&List(own))].concat(), term.is_empty()))
    }
}
