//! Faults, conflicts, orphans and bad input.

use keyloom::{DynWriter, Error, Result, Store, Writer};
use keyloom_documents::{DocumentError, Documents, Matches, Nested};
use keyloom_tables::{Rule, Schema};
use keyloom_testing::laws::{self, clear, dump_all, refused};
use keyloom_text::Query;

use super::blog::{Blog, Reply, comment, guide_posts};

/// Returns a function that restores the current entries of a store, since declarations take long.
pub fn restoring<S: Store>(store: &S) -> impl Fn(&S) + use<S> {
    let entries = dump_all(store);
    move |store| {
        let all = |txn: &mut DynWriter<'_>| entries.iter().try_for_each(|(k, v)| txn.put(k, v));
        store.transact(|txn| all(&mut DynWriter::new(txn))).unwrap();
    }
}

/// A list of words with an index of each word: small, because a fault test runs hundreds of times.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Words {
    words: Vec<String>,
}

struct Lists {
    lists: Documents<u32, Words>,
    words: Nested<u32, Words, String>,
}

fn words(all: &[&str]) -> Words {
    Words { words: all.iter().map(ToString::to_string).collect() }
}

impl Lists {
    /// Two lists in an empty store.
    fn put_in(store: &impl Store) -> Self {
        clear(store);
        let schema = Schema::open(store, "lists").unwrap();
        let lists = Documents::declare(&schema, "lists", 1, |index| index).unwrap();
        let words_of = Nested::declare(
            &schema,
            &lists,
            "words",
            1,
            |list: &Words| &list.words,
            |list| &mut list.words,
            |index| index.values("word", |_, word: &String| keyloom_bitmaps::one(word)),
        )
        .unwrap();
        store
            .transact(|txn| {
                lists.put(txn, &1, &words(&["a", "b", "c"]))?;
                lists.put(txn, &2, &words(&["d"]))
            })
            .unwrap();
        Self { lists, words: words_of }
    }

    fn change(&self, txn: &mut DynWriter<'_>) -> Result<()> {
        self.lists.put(txn, &1, &words(&["a", "x"]))?;
        self.words.push(txn, &1, &"y".to_owned())?;
        self.lists.delete(txn, &2).map(drop)
    }
}

pub fn a_fault_at_any_operation_leaves_no_document_half_done(store: &(impl Store + Clone)) {
    let lists = Lists::put_in(store);
    let prepare = restoring(store);
    let change = |txn: &mut DynWriter<'_>| lists.change(txn);
    laws::faults_leave_nothing_half_done(store, prepare, change, |store| {
        let snapshot = store.snapshot().unwrap();
        let mut found = lists.lists.text().check(&snapshot).unwrap();
        found.extend(lists.words.check(&snapshot).unwrap());
        found.iter().map(ToString::to_string).collect()
    });
}

pub fn a_conflict_at_any_operation_is_retried_to_the_same_end(store: &(impl Store + Clone)) {
    let lists = Lists::put_in(store);
    laws::conflicts_are_retried_to_the_same_end(store, restoring(store), |txn| lists.change(txn));
    let snapshot = store.snapshot().unwrap();
    assert_eq!(lists.lists.get(&snapshot, &1).unwrap(), Some(words(&["a", "x", "y"])));
}

pub fn orphans_are_reported_and_deleted(store: &impl Store) {
    clear(store);
    let blog = Blog::declare(store).unwrap();
    prepare_with(&blog, store);
    // A write through the table alone leaves the comments behind.
    store.transact(|txn| blog.posts.table().delete(txn, &1)).unwrap();
    let faults = blog.comments.check(&store.snapshot().unwrap()).unwrap();
    assert_eq!(faults.iter().map(|fault| fault.rule).collect::<Vec<_>>(), [Rule::NoParent; 2]);
    // A query does not find them.
    let snapshot = store.snapshot().unwrap();
    let john = blog.comments.matches(&snapshot, Query::term("name", "john")).unwrap();
    let posts = blog.comments.to_parents(&snapshot, &john, Default::default()).unwrap();
    assert_eq!((john.len(), posts.keys(&snapshot).unwrap()), (2, vec![2]));
    drop(snapshot);
    let progress = blog.comments.repair(store).unwrap();
    assert!(progress.finished && progress.removed == 2, "{progress:?}");
    assert_eq!(blog.faults(store), [""; 0]);
    let snapshot = store.snapshot().unwrap();
    assert_eq!(blog.comments.elements(&snapshot, &2).unwrap().len(), 2);
    assert_eq!(blog.comments.documents().table().count(&snapshot, ..).unwrap(), 2);
    assert_eq!(blog.replies.documents().table().count(&snapshot, ..).unwrap(), 0);
}

pub fn elements_within_records_become_records(store: &impl Store) {
    let lists = Lists::put_in(store);
    // A write by a program that does not declare the path.
    let inline = words(&["p", "q"]);
    store.transact(|txn| lists.lists.table().put(txn, &3, &inline)).unwrap();
    store.transact(|txn| lists.words.push(txn, &3, &"r".to_owned())).unwrap();
    let all = Some(words(&["p", "q", "r"]));
    let snapshot = store.snapshot().unwrap();
    assert_eq!(lists.lists.get(&snapshot, &3).unwrap(), all);
    let faults = lists.words.check(&snapshot).unwrap();
    assert_eq!(faults.iter().map(|fault| fault.rule).collect::<Vec<_>>(), [Rule::Wrong]);
    assert!(faults[0].to_string().contains("lists.words"), "{}", faults[0]);
    drop(snapshot);

    assert_eq!(lists.words.repair(store).unwrap().written, 1);
    let snapshot = store.snapshot().unwrap();
    assert_eq!(lists.lists.get(&snapshot, &3).unwrap(), all);
    assert_eq!(lists.lists.get(&snapshot, &1).unwrap(), Some(words(&["a", "b", "c"])));
    assert_eq!(lists.words.check(&snapshot).unwrap(), []);
    let index = lists.words.at(&snapshot).unwrap();
    let term = index.records().term("word", "q").unwrap();
    let found = Matches::of_ids(index, &term, 1.0, &snapshot).unwrap();
    assert_eq!(found.keys(&snapshot).unwrap(), [(3, 1)]);
}

fn prepare_with(blog: &Blog, store: &impl Store) {
    let mut posts = guide_posts();
    posts[0].1.comments[0].replies.push(Reply { by: "bob".to_owned(), votes: 1 });
    store
        .transact(|txn| posts.iter().try_for_each(|(id, post)| blog.posts.put(txn, id, post)))
        .unwrap();
}

fn document_error(error: &Error) -> &DocumentError {
    error.downcast_ref().unwrap_or_else(|| panic!("{error}"))
}

pub fn wrong_writes_and_paths_are_refused(store: &impl Store) {
    clear(store);
    let blog = Blog::declare(store).unwrap();
    prepare_with(&blog, store);
    let new = comment("Cy", "Too long", 41, 3, 20141102);
    let error = refused(store, |txn| blog.comments.push(txn, &9, &new).map(drop));
    let text = error.to_string();
    assert!(matches!(document_error(&error), DocumentError::NoDocument { .. }), "{text}");
    assert!(text.contains("posts.comments"), "{text}");
    let error = refused(store, |txn| blog.comments.replace(txn, &1, 7, &new));
    assert!(matches!(document_error(&error), DocumentError::NoRecord { .. }), "{error}");
    let error = refused(store, |txn| blog.posts.rename(txn, &1, &2));
    assert!(matches!(document_error(&error), DocumentError::Exists { .. }), "{error}");
    let error = refused(store, |txn| blog.posts.rename(txn, &8, &9));
    assert!(matches!(document_error(&error), DocumentError::NoRecord { .. }), "{error}");

    // A field that the elements do not have.
    let snapshot = store.snapshot().unwrap();
    let index = blog.comments.at(&snapshot).unwrap();
    let error = blog.comments.matches(&snapshot, Query::term("mood", "good")).unwrap_err();
    assert!(error.to_string().contains("no field \"mood\""), "{error}");
    let all = Matches::of_ids(index, &index.records().all(), 1.0, &snapshot).unwrap();
    let values = blog.comments.values_of_children(&snapshot, &all, "mood", Default::default());
    assert!(values.unwrap_err().to_string().contains("no field \"mood\""));
    let counts = blog.comments.counts::<u64>(&snapshot, &all, "age").unwrap_err();
    assert!(counts.to_string().contains("age"), "{counts}");
    let not_a_number = all.map_scores(|_| f64::NAN).top(&snapshot, 0, 1).unwrap_err();
    assert!(matches!(not_a_number, Error::InvalidArgument { .. }), "{not_a_number}");
}

#[test]
fn names_that_are_not_paths_are_refused() {
    let store = keyloom_testing::memory();
    let schema = Schema::open(&store, "blog").unwrap();
    let posts = Documents::<u32, Level>::declare(&schema, "posts", 1, |index| index).unwrap();
    for path in ["", ".", "a.b", "comments.", "a\0"] {
        let error = level(&schema, &posts, path).unwrap_err();
        assert!(matches!(document_error(&error), DocumentError::Path { .. }), "{error}");
        assert!(error.to_string().contains(&format!("{path:?}")), "{error}");
    }
    assert_eq!(schema.tables().unwrap().len(), 1);
}

#[test]
fn matches_of_another_index_are_refused() {
    let store = keyloom_testing::memory();
    let schema = Schema::open(&store, "two").unwrap();
    let all = ["a", "b"].map(|name| {
        let documents = Documents::<u32, u8>::declare(&schema, name, 1, |index| index).unwrap();
        let snapshot = store.snapshot().unwrap();
        let index = documents.text().at(&snapshot).unwrap().clone();
        Matches::of_ids(&index, &index.records().all(), 1.0, &snapshot).unwrap()
    });
    let error = all[0].and(&all[1]).unwrap_err();
    assert!(matches!(document_error(&error), DocumentError::OtherIndex { .. }), "{error}");
    assert!(all[0].or(&all[1]).is_err() && all[0].without(&all[1]).is_err());
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Level {
    below: Vec<Level>,
}

fn level<K: keyloom_tables::RecordKey + Clone>(
    schema: &Schema<'_, keyloom_testing::AnyStore>,
    above: &Documents<K, Level>,
    path: &str,
) -> Result<Nested<K, Level, Level>> {
    Nested::declare(schema, above, path, 1, |l| &l.below, |l| &mut l.below, |index| index)
}

#[test]
fn paths_beyond_the_greatest_depth_are_refused() {
    let store = keyloom_testing::memory();
    let schema = Schema::open(&store, "deep").unwrap();
    let root = Documents::<u32, Level>::declare(&schema, "root", 1, |index| index).unwrap();
    let one = level(&schema, &root, "below").unwrap();
    let two = level(&schema, one.documents(), "below").unwrap();
    let three = level(&schema, two.documents(), "below").unwrap();
    let four = level(&schema, three.documents(), "below").unwrap();
    let five = level(&schema, four.documents(), "below").unwrap();
    let six = level(&schema, five.documents(), "below").unwrap();
    let seven = level(&schema, six.documents(), "below").unwrap();
    let eight = level(&schema, seven.documents(), "below").unwrap();
    let error = level(&schema, eight.documents(), "below").unwrap_err();
    assert!(matches!(document_error(&error), DocumentError::TooDeep { limit: 8, .. }), "{error}");

    // A document of all levels is read as it was put, and deleted as a whole.
    let mut document = Level { below: Vec::new() };
    for _ in 0..8 {
        document = Level { below: vec![document.clone(), document] };
    }
    store.transact(|txn| root.put(txn, &1, &document)).unwrap();
    let snapshot = store.snapshot().unwrap();
    let read = root.get(&snapshot, &1).unwrap().unwrap();
    assert_eq!(format!("{read:?}"), format!("{document:?}"));
    assert_eq!(eight.documents().table().count(&snapshot, ..).unwrap(), 256);
    drop(snapshot);
    store.transact(|txn| root.delete(txn, &1)).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(eight.documents().table().count(&snapshot, ..).unwrap(), 0);
}
