//! Key enums whose variants have other numbers in the next version of a program.

use std::collections::BTreeMap;
use std::fmt::Debug;

use keyloom::{Result, Store};
use keyloom_patterns::parts::{Parts, PrefixOf};
use keyloom_patterns::table::RecordKey;
use keyloom_patterns::{Attached, Index, Key, Schema, SchemaError, Table, entry};
use keyloom_testing::laws::{clear, dump_all};

use crate::misuse::schema_error;

/// A version of the enum; the variants are in the order of their numbers.
trait Genre: RecordKey + Parts<Owned = Self> + PrefixOf<Self> + Copy + Debug {
    const ALL: &[(u32, &str, Self)];
}

macro_rules! version {
    ($($module:ident: $($number:literal $name:ident)+;)+) => {$(
        mod $module {
            use super::Key;

            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Key)]
            pub enum Genre {
                $(#[key($number)] $name,)+
            }

            impl super::Genre for Genre {
                const ALL: &[(u32, &str, Self)] = &[$(($number, stringify!($name), Self::$name)),+];
            }
        }
    )+};
}

version! {
    first: 0 Novel 1 Poem;
    more: 0 Novel 1 Poem 2 Play;
    between: 0 Novel 1 Poem 7 Essay;
    fewer: 1 Poem;
    exchanged: 0 Poem 1 Novel;
    moved: 0 Novel 2 Poem;
    renamed: 0 Fiction 1 Poem;
    replaced: 0 Novel 1 Play;
}

type Books<G> = (Table<(G, u32), u32>, Attached<Index<(G, u32), u32, G>>);

fn open<G: Genre>(store: &impl Store) -> Result<Books<G>> {
    let schema = Schema::open(store, "library")?;
    let books = schema.table("books")?;
    let by_genre = schema.index(&books, "by_genre", 1, |key: &(G, u32), _| entry(key.0))?;
    Ok((books, by_genre))
}

/// One program has written; another program opens the store.
fn try_pair<A: Genre, B: Genre>(store: &(impl Store + Clone)) -> bool {
    clear(store);
    let (books, _) = open::<A>(store).unwrap();
    let all = A::ALL.iter().map(|(number, _, genre)| ((*genre, *number), *number));
    store.transact(|txn| books.put_many(txn, all.clone())).unwrap();
    let before = dump_all(store);
    // Computed from the tables of the enums, not from their shapes.
    let agree = A::ALL.iter().all(|(number, name, _)| {
        B::ALL.iter().all(|(n, other, _)| (n == number) == (other == name))
    });
    let opened = open::<B>(store);
    if !agree {
        assert!(matches!(schema_error(opened), SchemaError::Contradiction { .. }));
        assert_eq!(dump_all(store), before);
        return false;
    }
    let (books, by_genre) = opened.unwrap();
    let names: BTreeMap<u32, &str> =
        A::ALL.iter().map(|(number, name, _)| (*number, *name)).collect();
    for (number, name, genre) in B::ALL {
        let snapshot = store.snapshot().unwrap();
        let found = books.get(&snapshot, &(*genre, *number)).unwrap();
        assert_eq!(found, names.get(number).map(|_| *number));
        assert!(names.get(number).is_none_or(|written| written == name));
        let entries = by_genre.at(&snapshot).unwrap().range(&snapshot, *genre);
        assert_eq!(entries.unwrap().count(), usize::from(found.is_some()));
    }
    both_write::<A, B>(store);
    true
}

/// Programs of both versions write in turns, also after reopening.
fn both_write<A: Genre, B: Genre>(store: &impl Store) {
    for round in 10..13 {
        let (books, _) = open::<A>(store).unwrap();
        let (others, by_genre) = open::<B>(store).unwrap();
        for (_, _, genre) in A::ALL {
            store.transact(|txn| books.put(txn, &(*genre, round), &round)).unwrap();
        }
        for (_, _, genre) in B::ALL {
            store.transact(|txn| others.put(txn, &(*genre, round + 10), &round)).unwrap();
        }
        let knows_all = A::ALL.iter().all(|(n, ..)| B::ALL.iter().any(|(other, ..)| n == other));
        let found = by_genre.check(&store.snapshot().unwrap()).unwrap();
        // A key that the program cannot read is reported, not skipped.
        assert_eq!(found.is_empty(), knows_all);
    }
}

/// A variant number has one meaning in all programs that use a store.
pub fn variants_of_keys_keep_their_numbers(store: &(impl Store + Clone)) {
    let accepted = [
        try_pair::<first::Genre, first::Genre>(store),
        try_pair::<first::Genre, more::Genre>(store),
        try_pair::<more::Genre, first::Genre>(store),
        try_pair::<more::Genre, between::Genre>(store),
        try_pair::<fewer::Genre, more::Genre>(store),
        try_pair::<between::Genre, fewer::Genre>(store),
    ];
    assert_eq!(accepted, [true; 6]);
    let accepted = [
        try_pair::<first::Genre, exchanged::Genre>(store),
        try_pair::<first::Genre, moved::Genre>(store),
        try_pair::<more::Genre, moved::Genre>(store),
        try_pair::<first::Genre, renamed::Genre>(store),
        try_pair::<first::Genre, replaced::Genre>(store),
        try_pair::<fewer::Genre, exchanged::Genre>(store),
        try_pair::<moved::Genre, first::Genre>(store),
    ];
    assert_eq!(accepted, [false; 7]);
}

/// A variant that one program adds is binding for the others, also for programs that were opened
/// before.
pub fn a_number_that_was_added_is_not_given_to_another_variant(store: &(impl Store + Clone)) {
    clear(store);
    open::<first::Genre>(store).unwrap();
    let schema = Schema::open(store, "library").unwrap();
    open::<more::Genre>(store).unwrap();
    let late = schema.table::<(extended::Genre, u32), u32>("books");
    assert!(matches!(schema_error(late), SchemaError::Contradiction { .. }));

    // A rename looks like a swap. All records decode, so the table is adopted; the index needs a
    // higher version.
    let schema = Schema::open(store, "library").unwrap();
    let books = schema.adopt_table::<(renamed::Genre, u32), u32>("books").unwrap();
    let by_genre = |version| {
        schema.index(&books, "by_genre", version, |key: &(renamed::Genre, u32), _| entry(key.0))
    };
    assert!(matches!(schema_error(by_genre(1)), SchemaError::Contradiction { .. }));
    by_genre(2).unwrap().build(store).unwrap();
    store.transact(|txn| books.put(txn, &(renamed::Genre::Fiction, 1), &1)).unwrap();
}

version! {
    extended: 0 Novel 1 Poem 2 Song;
}

mod with_fields {
    use super::Key;

    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Key)]
    pub enum Genre {
        #[key(0)]
        Novel,
        #[key(1)]
        Poem,
        #[key(2)]
        Play(u32),
    }
}

/// A variant without fields is encoded as an integer in a tuple; a variant with fields is a tuple
/// itself.
pub fn a_first_variant_with_fields_is_another_key(store: &(impl Store + Clone)) {
    clear(store);
    let (books, _) = open::<first::Genre>(store).unwrap();
    store.transact(|txn| books.put(txn, &(first::Genre::Novel, 1), &1)).unwrap();
    let before = dump_all(store);
    let schema = Schema::open(store, "library").unwrap();
    let refused = schema.table::<(with_fields::Genre, u32), u32>("books");
    assert!(matches!(schema_error(refused), SchemaError::Contradiction { .. }));
    assert_eq!(dump_all(store), before);
    let bytes = |key: &dyn keyloom::Pack| keyloom::pack(key);
    assert_ne!(bytes(&(first::Genre::Novel, 1)), bytes(&(with_fields::Genre::Novel, 1)));
}

/// Both programs declare a new version before either of them has built it.
pub fn builds_of_programs_with_other_variants_join(store: &(impl Store + Clone)) {
    fn declare<S: Store, G: Genre>(
        store: &S,
    ) -> (Schema<'_, S>, Books<G>, Attached<Index<u32, u32, G>>) {
        let schema = Schema::open(store, "library").unwrap();
        let books = schema.table("books").unwrap();
        let by_genre =
            schema.index(&books, "by_genre", 1, |key: &(G, u32), _| entry(key.0)).unwrap();
        let loans = schema.table::<u32, u32>("loans").unwrap();
        let at = |n: &u32| G::ALL[*n as usize % G::ALL.len()].2;
        let by_loan = schema.index(&loans, "by_genre", 2, move |_, n| entry(at(n))).unwrap();
        (schema, (books, by_genre), by_loan)
    }
    clear(store);
    let old = Schema::open(store, "library").unwrap();
    let loans = old.table::<u32, u32>("loans").unwrap();
    old.index(&loans, "by_genre", 1, |_, n: &u32| entry(*n)).unwrap();
    store.transact(|txn| loans.put_many(txn, (0..20).map(|n| (n, n % 2)))).unwrap();
    let (one, _, by_one) = declare::<_, more::Genre>(store);
    let (two, _, by_two) = declare::<_, between::Genre>(store);
    for _ in 0..3 {
        assert!(one.apply().unwrap().finished && two.apply().unwrap().finished);
    }
    let snapshot = store.snapshot().unwrap();
    assert_eq!(by_one.at(&snapshot).unwrap().count(&snapshot, ..).unwrap(), 20);
    assert_eq!(by_two.at(&snapshot).unwrap().count(&snapshot, ..).unwrap(), 20);
    assert!(one.plan().unwrap().is_done() && two.plan().unwrap().is_done());
}
