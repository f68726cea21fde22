//! Maintenance of an index when records change.

use std::collections::BTreeMap;

use keyloom::{DynWriter, KeyBuf, MAX_KEY_BYTES, Reader, Result, Subspace, Writer};
use keyloom_bitmaps::dense_ids::Given;
use keyloom_kit::RecordKey;
use keyloom_kit::derived::{Derived, RecordChange, SortedWrites};

use super::edit::Edit;
use super::fetch::blocks;
use super::gather::{FieldTerms, Gathered, LENGTHS, Terms};
use super::lists::{ListChanges, PostingChange, grouped};
use super::{TextError, TextIndex, with_id};

/// The maximum number of characters of a term in an error.
const SHOWN_CHARS: usize = 60;

/// Additions to counters.
pub(super) type Deltas = BTreeMap<KeyBuf, i64>;

/// A record whose terms change.
pub(super) struct ChangedRecord<'g> {
    pub(super) doc: u32,
    pub(super) old: Option<&'g [FieldTerms]>,
    pub(super) new: Option<&'g [FieldTerms]>,
}

impl<K: RecordKey, V, G> TextIndex<K, V, G> {
    /// Returns [`TextError::TermTooLong`] if a term is too long for a key.
    pub(super) fn check_terms(&self, terms: &Terms) -> Result<()> {
        terms.all().try_for_each(|(scope, term)| {
            // The longest key of a list is that of a summary, which a list gets when it grows.
            let bytes = with_id(&self.spaces.list(scope, term).layer(1), u32::MAX).len();
            let is_short = bytes <= MAX_KEY_BYTES;
            if is_short { Ok(()) } else { Err(self.too_long(scope.field(), term, bytes)) }
        })
    }

    #[cold]
    fn too_long(&self, field: u32, term: &str, bytes: usize) -> keyloom::Error {
        let field = self.fields.get(field as usize).map_or("", |field| &field.name);
        let (index, field) = (self.space.named(), field.to_owned());
        let term = term.chars().take(SHOWN_CHARS).collect();
        TextError::TermTooLong { index, field, term, bytes, limit: MAX_KEY_BYTES }.into()
    }

    /// Collects the writes for changed records, in the order of their ids. Returns the additions to
    /// the counters.
    pub(super) fn turn(
        &self,
        reader: &impl Reader,
        terms: &Terms,
        records: &[ChangedRecord<'_>],
        writes: &mut SortedWrites,
    ) -> Result<Deltas> {
        let mut changes = Vec::new();
        for (record, number) in records.iter().zip(0..) {
            self.collect(record, number, &mut changes);
        }
        let lists =
            grouped(&mut changes, terms, &self.spaces, |field, term| self.detail(field, term));
        let stored = blocks(reader, &lists)?;
        let mut deltas = Deltas::new();
        // The length that each indexed field of a record had before the change, by record and scope
        // number.
        let mut lengths = BTreeMap::<(u32, u32), u32>::new();
        for (list, stored) in lists.iter().zip(stored) {
            let before = Edit::make(reader, list, stored, writes)?;
            let mut delta = 0;
            for (change, before) in list.changes.iter().zip(before) {
                delta += i64::from(change.new.is_some()) - i64::from(before.is_some());
                if let Some(len) = before {
                    lengths.insert((change.record, list.scope), len);
                }
            }
            if delta != 0
                && list.term != LENGTHS
                && let Some(scope) = terms.scope(list.scope)
            {
                deltas.insert(self.spaces.term(scope, list.term), delta);
            }
        }
        self.count_fields(&lists, terms, records, &lengths, &mut deltas);
        Ok(deltas)
    }

    fn collect<'g>(
        &self,
        record: &ChangedRecord<'g>,
        number: u32,
        changes: &mut Vec<PostingChange<'g>>,
    ) {
        static NONE: FieldTerms = FieldTerms::none();
        for n in 0..self.fields.len() {
            let of =
                |all: Option<&'g [FieldTerms]>| all.and_then(|all| all.get(n)).unwrap_or(&NONE);
            let (old, new) = (of(record.old), of(record.new));
            FieldTerms::differences(old, new, |term, posting| {
                let (doc, len) = (record.doc, new.len);
                changes.push(PostingChange { term, doc, record: number, len, new: posting });
            });
        }
    }

    /// Adds to the counters of documents and tokens of each field.
    fn count_fields(
        &self,
        lists: &[ListChanges<'_, '_>],
        terms: &Terms,
        records: &[ChangedRecord<'_>],
        lengths: &BTreeMap<(u32, u32), u32>,
        deltas: &mut Deltas,
    ) {
        let mut changed: Vec<(u32, u32)> = lists
            .iter()
            .flat_map(|list| list.changes.iter().map(|change| (change.record, list.scope)))
            .collect();
        changed.sort_unstable();
        changed.dedup();
        for (record, number) in changed {
            let Some(scope) = terms.scope(number) else { continue };
            let old = lengths.get(&(record, number)).copied();
            let new = records.get(record as usize).and_then(|record| record.new);
            let new = new.and_then(|all| all.get(scope.field() as usize));
            // A record that has moved to another group has no text in the old group.
            let new = new.filter(|terms| terms.scope == number).map_or(0, |terms| terms.len);
            let documents = i64::from(new > 0) - i64::from(old.is_some());
            *deltas.entry(self.spaces.documents(scope)).or_default() += documents;
            let tokens = i64::from(new) - i64::from(old.unwrap_or(0));
            *deltas.entry(self.spaces.tokens(scope)).or_default() += tokens;
        }
    }
}

pub(super) fn add_all(txn: &mut impl Writer, deltas: &Deltas) -> Result<()> {
    let changed = deltas.iter().filter(|(_, delta)| **delta != 0);
    changed.into_iter().try_for_each(|(key, delta)| txn.add(key, *delta))
}

impl<K: RecordKey, V, G> Derived<K, V> for TextIndex<K, V, G> {
    fn subspace(&self) -> Option<&Subspace> {
        Some(&self.space)
    }

    fn update(
        &self,
        txn: &mut DynWriter<'_>,
        changes: &[RecordChange<'_, K, V>],
        writes: &mut SortedWrites,
    ) -> Result<()> {
        self.check_groups()?;
        let mut terms = Terms::default();
        let gathered: Vec<Gathered> =
            changes.iter().map(|change| Gathered::of(self, change, &mut terms)).collect();
        self.check_terms(&terms)?;
        let is_changed = |n: usize| gathered.get(n).is_some_and(Gathered::is_changed);
        let given = self.records.follow(txn, changes, is_changed, writes)?;
        let turned = gathered.iter().zip(given).filter(|(gathered, _)| gathered.is_changed());
        let turned = turned.filter_map(|(gathered, given)| {
            // A record without an id was not in the index, whatever its old values were.
            let (id, was_there) = match given {
                Given::New(id) => (id, false),
                Given::Kept(id) | Given::Released(id) => (id, true),
                Given::Never => return None,
            };
            let old = gathered.old.as_deref().filter(|_| was_there);
            // Ids are less than 2^32, so the cast is lossless.
            Some(ChangedRecord { doc: id as u32, old, new: gathered.new.as_deref() })
        });
        let turned: Vec<_> = turned.collect();
        let deltas = self.turn(txn, &terms, &turned, writes)?;
        add_all(txn, &deltas)
    }

    fn validate(&self, changes: &[RecordChange<'_, K, V>]) -> Result<()> {
        self.check_groups()?;
        let mut terms = Terms::default();
        for change in changes {
            let new = RecordChange { old: None, ..*change };
            Gathered::of(self, &new, &mut terms);
        }
        self.check_terms(&terms)?;
        self.records.validate(changes)
    }
}
