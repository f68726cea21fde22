//! Operations: a table and its indexes behave like a `BTreeMap`, in transactions that may be rolled
//! back.

use std::collections::BTreeMap;

use arbitrary::{Arbitrary, Result, Unstructured};
use keyloom::{Desc, DynWriter, Error, Memory, Store, Subspace};
use keyloom_patterns::derived::{RecordChange, SortedWrites};
use keyloom_patterns::{
    AnyParts, Derived, DerivedEntries, Index, Table, in_order, starting_with, within,
};

use crate::records::{Id, Town, Towns, few, id, order, sorted};

type Model = BTreeMap<Id, Town>;

#[derive(Debug, Arbitrary)]
enum Change {
    Put(#[arbitrary(with = id)] Id, Town),
    PutMany(#[arbitrary(with = many)] Vec<(Id, Town)>),
    Delete(#[arbitrary(with = id)] Id),
    DeleteMany(#[arbitrary(with = ids)] Vec<Id>),
}

#[derive(Debug, Arbitrary)]
enum Question {
    Get(#[arbitrary(with = ids)] Vec<Id>),
    Range {
        of: Option<u8>,
        descending: bool,
    },
    Between {
        #[arbitrary(with = id)]
        from: Id,
        #[arbitrary(with = id)]
        to: Id,
    },
    Pages {
        of: Option<u8>,
        descending: bool,
        limit: u8,
    },
    Names {
        #[arbitrary(with = few)]
        country: u8,
        beginning: String,
        descending: bool,
    },
    Sizes {
        from: u16,
        to: u16,
    },
    Tag(#[arbitrary(with = few)] u8),
}

#[derive(Debug, Arbitrary)]
enum Step {
    Transaction { changes: Vec<Change>, give_up: bool },
    Ask(Question),
}

fn many(input: &mut Unstructured<'_>) -> Result<Vec<(Id, Town)>> {
    let count = few(input)?;
    (0..count).map(|_| Ok((id(input)?, input.arbitrary()?))).collect()
}

fn ids(input: &mut Unstructured<'_>) -> Result<Vec<Id>> {
    let count = few(input)?;
    (0..count).map(|_| id(input)).collect()
}

pub(crate) fn operations(data: &[u8]) {
    let towns = Towns::new();
    check(data, &towns);
}

/// The control: an index that does not remove the entries of old records.
pub(crate) fn with_an_index_that_forgets(data: &[u8]) {
    #[derive(Clone)]
    struct Forgets(Index<Id, Town, AnyParts>);
    impl Derived<Id, Town> for Forgets {
        fn subspace(&self) -> Option<&Subspace> {
            Some(self.0.space())
        }

        fn update(
            &self,
            txn: &mut DynWriter<'_>,
            changes: &[RecordChange<'_, Id, Town>],
            writes: &mut SortedWrites,
        ) -> keyloom::Result<()> {
            let changes: Vec<_> =
                changes.iter().map(|change| RecordChange { old: None, ..*change }).collect();
            self.0.maintain(txn, &changes, writes)
        }
    }
    let towns = Towns::bare();
    let table = towns.table.with(&Forgets(towns.by_name.untyped()));
    let table = table.with(&towns.by_size).with(&towns.by_tag);
    check(data, &Towns { table, ..towns });
}

fn check(data: &[u8], towns: &Towns) {
    let Ok(steps) = Vec::<Step>::arbitrary(&mut Unstructured::new(data)) else { return };
    let store = Memory::new();
    let mut model = Model::new();
    for step in steps {
        match step {
            Step::Transaction { changes, give_up } => {
                let mut changed = model.clone();
                let outcome = store.transact(|txn| {
                    changed = model.clone();
                    for change in &changes {
                        make(change, &towns.table, txn, &mut changed)?;
                    }
                    if give_up { Err(Error::other("given up")) } else { Ok(()) }
                });
                match outcome {
                    Ok(()) => model = changed,
                    // A name may be too long for a key.
                    Err(Error::KeyTooLong { .. }) => {}
                    Err(error) => assert!(give_up, "{error}"),
                }
            }
            Step::Ask(question) => answer(&question, towns, &store, &model),
        }
    }
    assert_eq!(towns.faults(&store), []);
    answer(&Question::Range { of: None, descending: false }, towns, &store, &model);
}

fn make(
    change: &Change,
    table: &Table<Id, Town>,
    txn: &mut impl keyloom::Writer,
    model: &mut Model,
) -> keyloom::Result<()> {
    match change {
        Change::Put(id, town) => {
            table.put(txn, id, town)?;
            model.insert(*id, town.clone());
        }
        Change::PutMany(towns) => {
            table.put_many(txn, towns)?;
            model.extend(towns.iter().cloned());
        }
        Change::Delete(id) => {
            assert_eq!(table.delete(txn, id)?, model.remove(id).is_some());
        }
        Change::DeleteMany(ids) => {
            let removed = ids.iter().filter(|id| model.remove(id).is_some()).count();
            assert_eq!(table.delete_many(txn, ids)?, removed);
        }
    }
    Ok(())
}

fn answer(question: &Question, towns: &Towns, store: &Memory, model: &Model) {
    let snapshot = store.snapshot().unwrap();
    let records = || model.iter().map(|(id, town)| (*id, town.clone()));
    match question {
        Question::Get(ids) => {
            let expected: Vec<_> = ids.iter().map(|id| model.get(id).cloned()).collect();
            assert_eq!(towns.table.get_many(&snapshot, ids).unwrap(), expected);
            for (id, expected) in ids.iter().zip(&expected) {
                assert_eq!(&towns.table.get(&snapshot, id).unwrap(), expected);
            }
        }
        Question::Range { of, descending } => {
            let order = order(*descending);
            let mut expected: Vec<_> =
                records().filter(|((first, _), _)| of.is_none_or(|of| *first == of)).collect();
            if *descending {
                expected.reverse();
            }
            let found: keyloom::Result<Vec<_>> = match of {
                Some(of) => towns.table.range(&snapshot, in_order(*of, order)).unwrap().collect(),
                None => towns.table.range(&snapshot, in_order(.., order)).unwrap().collect(),
            };
            assert_eq!(found.unwrap(), expected);
        }
        Question::Between { from, to } => {
            let inside = |id: &Id| from <= id && id < to;
            let expected = model.keys().filter(|id| inside(id)).count();
            let found = towns.table.count(&snapshot, within(*from..*to)).unwrap();
            assert_eq!(found as usize, expected);
            let expected = model.keys().filter(|(first, _)| *first <= to.0).count();
            assert_eq!(towns.table.count(&snapshot, within(..=to.0)).unwrap() as usize, expected);
        }
        Question::Pages { of, descending, limit } => {
            let order = order(*descending);
            let mut expected: Vec<_> =
                records().filter(|((first, _), _)| of.is_none_or(|of| *first == of)).collect();
            if *descending {
                expected.reverse();
            }
            let mut walked = vec![];
            let mut next = None;
            loop {
                let limit = usize::from(limit % 8) + 1;
                let page = match of {
                    Some(of) => {
                        towns.table.page(&snapshot, in_order(*of, order), limit, next.as_ref())
                    }
                    None => towns.table.page(&snapshot, in_order(.., order), limit, next.as_ref()),
                }
                .unwrap();
                assert!(page.items.len() <= limit);
                walked.extend(page.items);
                next = page.next;
                if next.is_none() {
                    break;
                }
            }
            assert_eq!(walked, expected);
        }
        Question::Names { country, beginning, descending } => {
            let order = order(*descending);
            let chosen = records()
                .filter(|(_, t)| t.country == *country && t.name.starts_with(beginning.as_str()));
            let expected = sorted(chosen.map(|(id, t)| (t.name, id)).collect(), order);
            let select = starting_with((*country, beginning));
            let found: Vec<(String, Id)> = towns
                .by_name
                .range(&snapshot, in_order(select, order))
                .unwrap()
                .map(|found| {
                    let found = found.unwrap();
                    let (_, name) = found.owned_parts().unwrap();
                    (name, found.record_key().unwrap())
                })
                .collect();
            assert_eq!(found, expected);
        }
        Question::Sizes { from, to } => {
            let chosen = records().filter(|(_, t)| t.size != 0 && *from <= t.size && t.size <= *to);
            let mut expected: Vec<_> = chosen.map(|(id, t)| (Desc(t.size), id)).collect();
            expected.sort();
            // The larger size comes first, because the part is descending.
            let select = within(Desc(*to)..=Desc(*from));
            let page =
                towns.by_size.query().select(select).records(&snapshot, &towns.table).unwrap();
            let found: Vec<_> =
                page.items.into_iter().map(|(id, town)| (Desc(town.size), id)).collect();
            assert_eq!(found, expected);
        }
        Question::Tag(tag) => {
            let expected = model.values().filter(|town| town.tags.contains(tag)).count();
            assert_eq!(towns.by_tag.count(&snapshot, *tag).unwrap() as usize, expected);
        }
    }
}
