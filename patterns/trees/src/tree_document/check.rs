//! Check and repair of a stored document.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{KeyBuf, Order, Reader, Result, Snapshots, Store, Writer};
use keyloom_kit::{Inconsistency, Progress, Rule, in_batches};

use super::TreeDocument;
use super::encoding::decode;
use super::head::Head;
use crate::tree::{Stages, unless_newer};

impl<V, C: Codec<V>> TreeDocument<V, C> {
    pub(super) fn find_wrong(
        &self,
        reader: &impl Reader,
        mut found: impl FnMut(Inconsistency) -> ControlFlow<()>,
    ) -> Result<u64> {
        let mut keys = 0;
        let mut wrong = Vec::new();
        let head = self.find_wrong_keys(reader, &mut keys, &mut wrong)?;
        let is_whole = wrong.iter().all(|(_, rule)| is_beside(*rule));
        if let Some(head) = head.filter(|_| is_whole) {
            self.find_wrong_rows(reader, &head, &mut wrong)?;
        }
        // Collecting all faults first is cheap: there are few, and the document is in memory
        // anyway.
        let _ = wrong.into_iter().try_for_each(|(key, rule)| found(Inconsistency::new(key, rule)));
        Ok(keys)
    }

    /// Checks each key of the subspace.
    fn find_wrong_keys(
        &self,
        reader: &impl Reader,
        keys: &mut u64,
        wrong: &mut Vec<(KeyBuf, Rule)>,
    ) -> Result<Option<Head>> {
        let head_key = self.head_key();
        let stored = reader.get(&head_key)?;
        let head = stored.as_deref().map(|bytes| unless_newer(Head::decode(bytes))).transpose();
        let head = head.map_err(|error| error.at(&head_key))?;
        if head == Some(None) {
            wrong.push((head_key.clone(), Rule::Wrong));
        }
        let (is_there, head) = (head.is_some(), head.flatten());
        let mut has_pieces = false;
        let pieces = head.as_ref().map(|head| &head.pieces[..]).unwrap_or_default();
        let mut expected: BTreeMap<u64, usize> =
            pieces.iter().map(|piece| (piece.number, piece.bytes)).collect();
        if expected.len() < pieces.len() {
            wrong.push((head_key.clone(), Rule::Wrong));
        }
        let mut is_past_next = false;
        for entry in reader.range(self.space.range(), Order::Ascending)? {
            let (key, bytes) = entry?;
            *keys += 1;
            let rule = match self.space.unpack::<(&str, u64)>(&key) {
                Ok(("piece", number)) => {
                    has_pieces = true;
                    let is_next = head.as_ref().is_some_and(|head| number >= head.next);
                    is_past_next |=
                        is_next && (pieces.is_empty() || expected.contains_key(&number));
                    match expected.remove(&number) {
                        // Without a head it is unknown which pieces belong to the document.
                        _ if head.is_none() => continue,
                        Some(length) if length == bytes.len() => continue,
                        Some(_) => Rule::Wrong,
                        None => Rule::Dangling,
                    }
                }
                _ if *key == *head_key => continue,
                _ => Rule::Foreign,
            };
            wrong.push((KeyBuf::from_slice(&key), rule));
        }
        // The next new piece would overwrite a piece of the document.
        if is_past_next {
            wrong.push((head_key.clone(), Rule::Wrong));
        }
        // The head is written before the first piece, and is never deleted.
        if has_pieces && !is_there {
            wrong.push((head_key, Rule::Missing));
        }
        wrong.extend(expected.keys().map(|number| (self.piece_key(*number), Rule::Missing)));
        Ok(head)
    }

    /// Checks each row of the text.
    fn find_wrong_rows(
        &self,
        reader: &impl Reader,
        head: &Head,
        wrong: &mut Vec<(KeyBuf, Rule)>,
    ) -> Result<()> {
        // An error of the store is returned; it is not a fault of the document.
        let text = match head.pieces.is_empty() {
            true => head.text.clone(),
            false => self.text(reader, &head.pieces)?,
        };
        let rows = match decode(text) {
            Ok(rows) => rows,
            Err(broken) => {
                wrong.push((self.key_of(&head.pieces, broken.0), Rule::Wrong));
                return Ok(());
            }
        };
        let mut ids = HashSet::new();
        for (position, row) in rows.rows().iter().enumerate() {
            let key = || self.key_of(&head.pieces, row.at.start);
            // A key of the document holds more than this node, so the key is not foreign.
            let fault = rows.node::<V, C>(position).fault().map(|rule| match rule {
                Rule::Foreign => Rule::Wrong,
                rule => rule,
            });
            wrong.extend(fault.map(|rule| (key(), rule)));
            if !ids.insert(row.id) {
                wrong.push((key(), Rule::Wrong));
            }
        }
        Ok(())
    }

    /// Rewrites a damaged document from its readable rows, and removes the pieces that the head
    /// does not list.
    pub(super) fn repair_all<S: Store>(&self, store: &S, stages: &mut Stages<'_>) -> Result<()> {
        stages.run(|_, report| {
            let mut is_whole = true;
            self.find_wrong(&Snapshots::lasting(store), |fault| {
                is_whole = is_whole && is_beside(fault.rule);
                ControlFlow::Continue(())
            })?;
            let written = if is_whole { 0 } else { self.salvage(store)? };
            let done = Progress { written, ..Progress::complete() };
            let _ = report(&done);
            Ok(done)
        })?;
        stages.run(|options, report| {
            in_batches(store, options, report, |txn, most, done| {
                let keys = self.remove_some_dangling(txn, most)?;
                done.written += keys;
                done.finished = keys == 0;
                Ok(())
            })
        })
    }

    /// Removes pieces that the head does not list. Increments the version, so that a concurrent
    /// write in steps cannot list these pieces later.
    fn remove_some_dangling(&self, txn: &mut impl Writer, most: usize) -> Result<u64> {
        // If the head is lost, the pieces are all that remains of the document: keep them.
        let Some(head) = self.stored_head(txn)? else { return Ok(0) };
        let named: HashSet<u64> = head.pieces.iter().map(|piece| piece.number).collect();
        let mut dangling = Vec::new();
        for entry in txn.range(self.space.range_of(&"piece"), Order::Ascending)? {
            let (key, _) = entry?;
            let number = self.space.unpack::<(&str, u64)>(&key);
            if number.is_ok_and(|(_, number)| !named.contains(&number)) {
                dangling.push(KeyBuf::from_slice(&key));
            }
            if dangling.len() == most {
                break;
            }
        }
        if dangling.is_empty() {
            return Ok(0);
        }
        for key in &dangling {
            txn.delete(key)?;
        }
        let head = Head { version: head.version.saturating_add(1), ..head };
        txn.put(&self.head_key(), &head.encode())?;
        Ok(dangling.len() as u64 + 1)
    }
}

/// Whether a document with this fault can still be read.
fn is_beside(rule: Rule) -> bool {
    matches!(rule, Rule::Dangling | Rule::Foreign | Rule::Undecodable)
}
