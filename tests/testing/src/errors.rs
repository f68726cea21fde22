//! Damages each key of a store, and checks the texts of errors.

use std::collections::BTreeSet;
use std::process::Command;

use keyloom::key::{Element, elements, pack};
use keyloom::{KeyRange, Order, Reader, Store, Writer};

type Pair = (Vec<u8>, Vec<u8>);

fn entries(store: &crate::AnyStore) -> Vec<Pair> {
    let snapshot = store.snapshot().unwrap();
    let all = snapshot.range(KeyRange::all(), Order::Ascending).unwrap();
    all.map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect()
}

fn restore(store: &crate::AnyStore, all: &[Pair]) {
    store
        .transact(|txn| {
            txn.delete_range(KeyRange::all())?;
            all.iter().try_for_each(|(key, value)| txn.put(key, value))
        })
        .unwrap();
}

/// Replacements of a value: empty, not a record, one byte less, one byte more, a newer format.
fn damages(value: &[u8]) -> Vec<Vec<u8>> {
    let shorter = value[..value.len().saturating_sub(1)].to_vec();
    let newer = value.iter().map(|byte| byte | 0x80).collect();
    vec![vec![], vec![0xFF; 3], shorter, [value, b"\0"].concat(), newer]
}

/// Damages each key of a store in turn, or puts another key beside it. Asserts that no text from
/// `texts_of` contains a number of a schema. The keys of the schema itself are left as they are;
/// the store is restored at the end. Returns the texts.
pub fn assert_names(
    store: &crate::AnyStore,
    mut texts_of: impl FnMut(&crate::AnyStore) -> Vec<String>,
) -> BTreeSet<String> {
    let all = entries(store);
    let numbers: BTreeSet<String> = all.iter().filter_map(|(key, _)| number(key)).collect();
    assert!(!numbers.is_empty(), "a schema assigns numbers");
    let mut texts: BTreeSet<String> = texts_of(store).into_iter().collect();
    restore(store, &all);
    for (key, value) in all.iter().filter(|(key, _)| number(key).is_some()) {
        let behind = [pack(&("x",)), pack(&(7, None::<u8>))];
        let beside = behind.iter().map(|more| ([key, &more[..]].concat(), value.clone()));
        let damaged = damages(value).into_iter().map(|value| (key.clone(), value));
        for (key, value) in damaged.chain(beside) {
            store.transact(|txn| txn.put(&key, &value)).unwrap();
            texts.extend(texts_of(store));
            restore(store, &all);
        }
    }
    for text in &texts {
        let shown = numbers.iter().find(|number| text.contains(*number));
        assert_eq!(shown, None, "{text}");
    }
    texts
}

/// The number that a schema has assigned, in the form in which it begins a printed key: `(-12,`.
fn number(key: &[u8]) -> Option<String> {
    match elements(key).ok()?.first()? {
        Element::Int(number) if *number < 0 => Some(format!("({number},")),
        _ => None,
    }
}

/// The texts of the errors among outcomes.
pub fn texts<T>(outcomes: impl IntoIterator<Item = keyloom::Result<T>>) -> Vec<String> {
    outcomes.into_iter().filter_map(|outcome| Some(outcome.err()?.to_string())).collect()
}

/// The texts of the findings of a check.
pub fn reported<T: ToString>(check: keyloom::Result<Vec<T>>) -> Vec<String> {
    match check {
        Ok(faults) => faults.iter().map(ToString::to_string).collect(),
        Err(error) => vec![error.to_string()],
    }
}

/// Runs the body of a test in a separate process, because names of data are registered per process,
/// and other tests declare other data. `test` is the name of the calling test.
pub fn alone(test: &str, body: impl FnOnce()) {
    const ALONE: &str = "KEYLOOM_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return body();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.args(["--exact", test, "--nocapture"]).env(ALONE, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// The variant name of an error, or of the nested error if there is one: `DiskFull`. `Debug` of an
/// error prints its message, so the names are listed here.
pub fn variant(error: &keyloom::Error) -> String {
    use keyloom::Error;
    let name = match error {
        Error::Storage(nested) => return first_word(nested),
        Error::Lmdb(nested) => return first_word(nested),
        Error::Server(nested) => return first_word(nested),
        Error::EmptyKey => "EmptyKey",
        Error::KeyTooLong { .. } => "KeyTooLong",
        Error::ValueTooLong { .. } => "ValueTooLong",
        Error::Key(_) => "Key",
        Error::Value { .. } => "Value",
        Error::At { .. } => "At",
        Error::NotACounter { .. } => "NotACounter",
        Error::ReadOnly => "ReadOnly",
        Error::NestedTransaction => "NestedTransaction",
        Error::InvalidArgument { .. } => "InvalidArgument",
        Error::NewerFormat { .. } => "NewerFormat",
        Error::TransactionTooLarge { .. } => "TransactionTooLarge",
        Error::WriterBusy { .. } => "WriterBusy",
        Error::TooOld { .. } => "TooOld",
        Error::Conflict { .. } => "Conflict",
        Error::RetriesExhausted { .. } => "RetriesExhausted",
        Error::CommitRefused { .. } => "CommitRefused",
        Error::OverBudget { .. } => "OverBudget",
        Error::CommitUnknown { .. } => "CommitUnknown",
        Error::Forked { .. } => "Forked",
        Error::Backend(_) => "Backend",
        Error::Other(_) => "Other",
        _ => panic!("the name of this variant is missing here: {error}"),
    };
    name.into()
}

fn first_word(nested: &impl std::fmt::Debug) -> String {
    let debug = format!("{nested:?}");
    debug.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().into()
}

#[test]
fn a_nested_variant_is_named() {
    use keyloom::{Error, LmdbError};
    assert_eq!(variant(&Error::ReadOnly), "ReadOnly");
    let nested = Error::from(LmdbError::ReadersFull { max_readers: 7 });
    assert_eq!(variant(&nested), "ReadersFull");
    assert_eq!(variant(&Error::EmptyKey.at(b"x")), "At");
}
