//! The costs of document changes.

use keyloom::{Metered, Store};
use keyloom_documents::{Documents, Nested};
use keyloom_tables::Schema;
use keyloom_testing::laws::{clear, counts, writing};

use super::blog::{Blog, Reply, comment, post};

/// A post with `many` comments.
fn commented(many: usize) -> super::blog::Post {
    let all = (0..many).map(|n| comment("ann", &format!("text {n}"), 20 + n as i64, 3, 20140901));
    post("Nest eggs", &["cash"], all.collect())
}

pub fn one_changed_element_is_one_record_written(store: &(impl Store + Clone)) {
    clear(store);
    let store = Metered::new(store.clone());
    let blog = Blog::declare(&store).unwrap();
    let mut first = commented(40);
    store.transact(|txn| blog.posts.put(txn, &1, &first)).unwrap();

    // The keys that a transaction writes in the table of comments.
    let records = |work: &dyn Fn()| {
        let before = keyloom_testing::laws::dump_all(&store);
        let (_, cost) = store.measure(|_| work());
        let after = keyloom_testing::laws::dump_all(&store);
        let table = blog.comments.documents().table().space();
        let differ = after
            .keys()
            .chain(before.keys())
            .filter(|key| table.contains(key) && after.get(*key) != before.get(*key));
        (differ.collect::<std::collections::BTreeSet<_>>().len(), counts(cost)[3])
    };
    // The same document: no key is written.
    let same = first.clone();
    let work = || store.transact(|txn| blog.posts.put(txn, &1, &same)).unwrap();
    assert_eq!(records(&work), (0, 0));

    // A changed number of stars writes the record, and in the index the column and the bit slices
    // of the integer. 3 is 0b011, and 4 is 0b100: three slices, which all exist in this chunk.
    first.comments[7].stars = Some(4);
    let put = first.clone();
    let work = || store.transact(|txn| blog.posts.put(txn, &1, &put)).unwrap();
    let (changed, written) = records(&work);
    assert_eq!((changed, written), (1, 5));

    // The same change through the element alone.
    first.comments[7].stars = Some(3);
    let element = first.comments[7].clone();
    let work = || store.transact(|txn| blog.comments.replace(txn, &1, 7, &element)).unwrap();
    assert_eq!(records(&work), (1, 5));

    // Removing an element from the middle, or appending one, writes one record.
    let removed = first.comments.remove(12);
    let put = first.clone();
    let work = || store.transact(|txn| blog.posts.put(txn, &1, &put)).unwrap();
    assert_eq!(records(&work).0, 1);
    let work = || {
        store.transact(|txn| blog.comments.push(txn, &1, &removed)).unwrap();
    };
    assert_eq!(records(&work).0, 1);
}

/// Reading many documents takes as many round trips as reading one, and the lists of the index are
/// written once.
pub fn many_documents_are_put_together(store: &(impl Store + Clone)) {
    let put = |posts: &[(u32, super::blog::Post)], at_once: usize| {
        clear(store);
        let store = Metered::new(store.clone());
        let blog = Blog::declare(&store).unwrap();
        let (_, cost) = store.measure(|store| {
            let all = |txn: &mut keyloom::DynWriter<'_>| {
                posts.chunks(at_once).try_for_each(|some| blog.posts.put_many(txn, some))
            };
            store.transact(|txn| all(&mut keyloom::DynWriter::new(txn))).unwrap();
        });
        let snapshot = store.snapshot().unwrap();
        let (keys, wanted): (Vec<u32>, Vec<_>) =
            posts.iter().map(|(key, post)| (*key, Some(post.clone()))).unzip();
        let (found, read) = store.measure(|_| blog.posts.get_many(&snapshot, keys.iter()).unwrap());
        assert_eq!(found, wanted);
        (cost, read)
    };
    let posts: Vec<_> = (0..40).map(|key| (key, commented(3))).collect();
    let (one, _) = put(&posts[..1], 1);
    let (each, _) = put(&posts, 1);
    let (together, read) = put(&posts, posts.len());
    assert!(each.round_trips > 20 * one.round_trips, "{each}, one {one}");
    assert!(together.round_trips <= one.round_trips + 4, "{together}, one {one}");
    assert!(2 * together.keys_written < each.keys_written, "{together}, each {each}");
    // The records, the comments, the replies.
    assert!(read.round_trips <= 3 && read.gets <= 40 + 3 && read.ranges == 40 + 120, "{read}");
}

/// The index of the elements has no fields, so it changes only with the list.
pub fn changes_of_elements_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    clear(store);
    let store = Metered::new(store.clone());
    let schema = Schema::open(&store, "lists").unwrap();
    let lists = Documents::<u32, Vec<u64>>::declare(&schema, "lists", 1, |index| index).unwrap();
    let numbers =
        Nested::declare(&schema, &lists, "numbers", 1, |list| list, |list| list, |index| index)
            .unwrap();
    let first: Vec<u64> = (0..40).collect();
    store.transact(|txn| lists.put(txn, &1, &first)).unwrap();

    // The reads: whether the element exists, its old value, and for the write the old record and
    // the entry of the table in the schema.
    let cost = writing(&store, |txn| numbers.replace(txn, &1, 7, &1_000));
    assert_eq!(cost, [4, 0, 4, 1]);
    // The reads: the document, all elements, and the same for each changed element; the schema
    // once.
    let mut all = numbers.elements(&store.snapshot().unwrap(), &1).unwrap();
    all[7].1 = 7;
    all[30].1 = 7;
    let list: Vec<u64> = all.into_iter().map(|(_, number)| number).collect();
    let cost = writing(&store, |txn| lists.put(txn, &1, &list));
    // One more get: the entry of the documents' table, which must exist although the table is not
    // written.
    assert_eq!(cost, [1 + 1 + 2 + 1, 1, 1 + 1 + 40 + 2 + 1, 2]);
    let snapshot = store.snapshot().unwrap();
    let (read, cost) = store.measure(|_| lists.get(&snapshot, &1));
    // The record, and the entries of both tables in the schema.
    assert_eq!((read.unwrap(), counts(cost)), (Some(list), [3, 1, 43, 0]));
}

/// The nested elements of all elements are read together.
#[test]
fn nested_elements_are_read_in_one_round_trip_per_path() {
    let store = Metered::new(keyloom_testing::memory());
    let blog = Blog::declare(&store).unwrap();
    let round_trips = |comments: usize, replies: usize| {
        let mut post = commented(comments);
        let reply = |n: usize| Reply { by: format!("name {n}"), votes: 3 };
        post.comments[comments / 2].replies = (0..replies).map(reply).collect();
        post.comments[0].replies = (0..2).map(reply).collect();
        store.transact(|txn| blog.posts.put(txn, &1, &post)).unwrap();
        let (found, cost) = store.measure(|store| {
            let snapshot = store.snapshot().unwrap();
            blog.posts.get(&snapshot, &1).unwrap()
        });
        assert_eq!(found, Some(post));
        cost.round_trips
    };
    // The post, its comments, and all their replies.
    assert_eq!(round_trips(2, 1), 3);
    assert_eq!(round_trips(40, 3), 3);
    // The comments of one post are one range. A page contains up to 256 entries of each of 256
    // ranges: the replies of 300 comments need two pages, and the rest of 300 replies needs one
    // more.
    assert_eq!(round_trips(300, 3), 4);
    assert_eq!(round_trips(3, 300), 4);
}
