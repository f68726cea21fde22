//! The request that commits a transaction.

use std::collections::BTreeMap;

use bytes::Bytes;
use etcd_client::{
    Compare, CompareOp, DeleteOptions, GetOptions, Txn, TxnOp, TxnOpResponse, TxnResponse,
};

use super::Shared;
use super::keyspace::Keyspace;
use super::room::{MOST_NAMED, Room};
use super::validation::{Check, Reads, without};
use keyloom::backend::Span;
use keyloom::backend::shown_key;
use keyloom::{Error, KeyBuf, Result};
use keyloom_remote::Buffer;

/// The conditions of a commit's request, which the server checks.
pub(super) struct Checks {
    checks: Vec<Check>,
    names: bool,
    revision: i64,
}

impl Checks {
    /// The request that applies the writes in `buffer` if `reads`, which were made at `revision`,
    /// are unchanged.
    ///
    /// # Errors
    /// [`Error::TransactionTooLarge`].
    pub(super) fn request(
        shared: &Shared,
        buffer: Buffer,
        reads: Reads,
        revision: i64,
    ) -> Result<(Self, Txn)> {
        let (keys, room) = (&shared.keys, &shared.room);
        let mut writes = Writes { shared, operations: Vec::with_capacity(buffer.len()), bytes: 0 };
        writes.add_all(buffer);
        let layout = room.layout(writes.operations.len());
        let checks = reads.checks(layout.checks);
        // To find the changed key in a merged range, the whole range would have to be read again.
        let is_merged = checks.contains(&Check::NoDeletes);
        let names = !is_merged && checks.len() <= MOST_NAMED.min(layout.checks);
        let of_checks: usize = checks.iter().map(|check| check_bytes(keys, check)).sum();
        let bytes = Room::request(writes.bytes, of_checks * (1 + usize::from(names)));
        if bytes > room.max_request_bytes {
            let limit = room.max_request_bytes;
            return Err(Error::TransactionTooLarge { unit: "bytes", actual: bytes, limit });
        }
        let compares: Vec<Compare> =
            checks.iter().map(|check| compare(keys, check, revision)).collect();
        let mut request =
            Txn::new().when(compares).and_then(laid_out(writes.operations, &layout.levels));
        if names {
            let questions: Vec<TxnOp> =
                checks.iter().map(|check| question(keys, check, revision)).collect();
            request = request.or_else(questions);
        }
        Ok((Self { checks, names, revision }, request))
    }

    /// The conflict with another writer's commit, with the key if `answer` contains it.
    pub(super) fn conflict(&self, keys: &Keyspace, answer: &TxnResponse) -> Error {
        let named = self.named(keys, answer);
        Error::Conflict { what: named.unwrap_or_else(|| "a key that it had read".into()) }
    }

    fn named(&self, keys: &Keyspace, answer: &TxnResponse) -> Option<Box<str>> {
        let answers = answer.op_responses();
        if !self.names || answers.len() != self.checks.len() {
            return None;
        }
        self.checks.iter().zip(answers).find_map(|(check, answer)| {
            let TxnOpResponse::Get(mut found) = answer else { return None };
            let found = found.take_kvs().into_iter().next();
            let revision = found.as_ref().map_or(0, |found| found.mod_revision());
            match check {
                Check::Key(key, seen) if revision != *seen => {
                    Some(format!("key {}", shown_key(key)).into())
                }
                Check::Span(_) if revision > self.revision => {
                    let key = keys.inner(found?.into_key_value().0);
                    Some(format!("key {}, in a range that it had read", shown_key(&key)).into())
                }
                Check::NoDeletes if revision > self.revision => {
                    Some("a key that was deleted, perhaps one that it had read".into())
                }
                _ => None,
            }
        })
    }
}

/// The operations of a commit, and their length.
struct Writes<'s> {
    shared: &'s Shared,
    operations: Vec<TxnOp>,
    bytes: usize,
}

impl Writes<'_> {
    fn add_all(&mut self, buffer: Buffer) {
        let (cleared, keys) = buffer.into_parts();
        let deletes = !cleared.is_empty() || keys.values().any(Option::is_none);
        if deletes {
            self.put(self.shared.keys.mark(), Vec::new());
        }
        let puts: BTreeMap<&KeyBuf, &Bytes> =
            keys.iter().filter_map(|(key, value)| Some((key, value.as_ref()?))).collect();
        let gone = |key: &KeyBuf| cleared.contains(key);
        let single: Vec<KeyBuf> = keys
            .iter()
            .filter(|(key, value)| value.is_none() && !gone(key))
            .map(|(key, _)| key.clone())
            .collect();
        for span in cleared.into_spans() {
            // etcd refuses a transaction with two operations on the same key.
            let within = puts.range(span.start.clone()..).map(|(key, _)| *key);
            let within = within.take_while(|key| span.contains(key));
            without(&span, within).iter().for_each(|piece| self.delete_span(piece));
        }
        single.iter().for_each(|key| self.delete(key));
        drop(puts);
        for (key, value) in keys {
            if let Some(value) = value {
                self.put(self.shared.keys.outer(&key), value.into());
            }
        }
    }

    fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.bytes += Room::operation(&[key.len(), value.len()]);
        self.operations.push(TxnOp::put(key, value, None));
    }

    fn delete(&mut self, key: &[u8]) {
        let key = self.shared.keys.outer(key);
        self.bytes += Room::operation(&[key.len()]);
        self.operations.push(TxnOp::delete(key, None));
    }

    fn delete_span(&mut self, span: &Span) {
        let (start, end) = self.shared.keys.bounds(span);
        self.bytes += Room::operation(&[start.len(), end.len()]);
        let options = DeleteOptions::new().with_range(end);
        self.operations.push(TxnOp::delete(start, Some(options)));
    }
}

/// `operations`, nested as `levels` require. The first operation stays at the top. The caller
/// passes a put as the first one, because the server checks its quota only if there is a put at the
/// top.
fn laid_out(mut operations: Vec<TxnOp>, levels: &[usize]) -> Vec<TxnOp> {
    if levels.len() < 2 || operations.is_empty() {
        return operations;
    }
    let rest = operations.split_off(1);
    operations.extend(nested(rest, levels));
    operations
}

/// `operations` in nested transactions, each with at most as many operations as its level allows.
fn nested(operations: Vec<TxnOp>, levels: &[usize]) -> Vec<TxnOp> {
    let [_, below @ ..] = levels else { return operations };
    if below.is_empty() {
        return operations;
    }
    let each = below.iter().product::<usize>().max(1);
    let mut nests = Vec::with_capacity(operations.len().div_ceil(each));
    let mut operations = operations.into_iter();
    loop {
        let part: Vec<TxnOp> = operations.by_ref().take(each).collect();
        if part.is_empty() {
            return nests;
        }
        nests.push(TxnOp::txn(Txn::new().and_then(nested(part, below))));
    }
}

fn check_bytes(keys: &Keyspace, check: &Check) -> usize {
    match check {
        Check::Key(key, _) => Room::check(&[keys.prefix_bytes() + key.len()]),
        Check::Span(span) => {
            let (start, end) = keys.bounds(span);
            Room::check(&[start.len(), end.len()])
        }
        Check::NoDeletes => Room::check(&[keys.mark().len()]),
    }
}

fn compare(keys: &Keyspace, check: &Check, revision: i64) -> Compare {
    let unchanged = |key| Compare::mod_revision(key, CompareOp::Less, revision + 1);
    match check {
        Check::Key(key, seen) => Compare::mod_revision(keys.outer(key), CompareOp::Equal, *seen),
        Check::Span(span) => {
            let (start, end) = keys.bounds(span);
            unchanged(start).with_range(end)
        }
        Check::NoDeletes => unchanged(keys.mark()),
    }
}

/// The read that shows whether `check` failed.
fn question(keys: &Keyspace, check: &Check, revision: i64) -> TxnOp {
    let options = GetOptions::new().with_keys_only();
    match check {
        Check::Key(key, _) => TxnOp::get(keys.outer(key), Some(options)),
        Check::Span(span) => {
            let (start, end) = keys.bounds(span);
            let newer = options.with_min_mod_revision(revision + 1).with_limit(1);
            TxnOp::get(start, Some(newer.with_range(end)))
        }
        Check::NoDeletes => TxnOp::get(keys.mark(), Some(options)),
    }
}
