//! Every query compared with nested loops over the documents.

use std::collections::{BTreeMap, BTreeSet};

use keyloom::{Result, Store, Writer};
use keyloom_documents::{Matches, ScoreMode};
use keyloom_testing::ids::text;
use keyloom_testing::laws::{clear, very_long_property};
use keyloom_text::Query;

use super::blog::{BlogOf, Comment, Post};
use super::fixture::{KEYS, Model, Step, history};

type Blog = BlogOf<String>;

/// Applies a step to the store, as far as its documents and elements exist.
fn make(blog: &Blog, txn: &mut impl Writer, step: &Step, model: &Model) -> Result<()> {
    let ordinal = |txn: &mut _, key: &String, n: usize| -> Result<Option<u32>> {
        Ok(blog.comments.elements(txn, key)?.get(n).map(|(ordinal, _)| *ordinal))
    };
    match step {
        Step::Put(key, post) => blog.posts.put(txn, key, post),
        Step::PutMany(posts) => blog.posts.put_many(txn, posts),
        Step::Delete(key) => {
            assert_eq!(blog.posts.delete(txn, key)?, model.contains_key(key));
            Ok(())
        }
        Step::Push(key, comment) if model.contains_key(key) => {
            blog.comments.push(txn, key, comment).map(drop)
        }
        Step::Replace(key, n, comment) => match ordinal(txn, key, *n)? {
            Some(ordinal) => blog.comments.replace(txn, key, ordinal, comment),
            None => Ok(()),
        },
        Step::Remove(key, n) => match ordinal(txn, key, *n)? {
            Some(ordinal) => blog.comments.remove(txn, key, ordinal).map(|is| assert!(is)),
            None => Ok(()),
        },
        Step::Rename(from, to) if model.contains_key(from) && !model.contains_key(to) => {
            blog.posts.rename(txn, from, to)
        }
        Step::Push(..) | Step::Rename(..) => Ok(()),
    }
}

fn follow(step: &Step, model: &mut Model) {
    match step.clone() {
        Step::Put(key, post) => drop(model.insert(key, post)),
        Step::PutMany(posts) => model.extend(posts),
        Step::Delete(key) => drop(model.remove(&key)),
        Step::Push(key, comment) => {
            model.entry(key).and_modify(|post| post.comments.push(comment));
        }
        Step::Replace(key, n, comment) => {
            if let Some(old) = model.get_mut(&key).and_then(|post| post.comments.get_mut(n)) {
                *old = comment;
            }
        }
        Step::Remove(key, n) => {
            if let Some(post) = model.get_mut(&key).filter(|post| n < post.comments.len()) {
                post.comments.remove(n);
            }
        }
        Step::Rename(from, to) if !model.contains_key(&to) => {
            if let Some(post) = model.remove(&from) {
                model.insert(to, post);
            }
        }
        Step::Rename(..) => {}
    }
}

/// Runs a history. Returns the documents that exist at its end.
fn run(blog: &Blog, store: &impl Store, steps: &[Step]) -> Model {
    let mut model = Model::new();
    for step in steps {
        store.transact(|txn| make(blog, txn, step, &model)).unwrap();
        follow(step, &mut model);
    }
    model
}

pub fn documents_are_read_as_they_were_put(store: &impl Store) {
    very_long_property(history(), |steps| {
        clear(store);
        let blog = Blog::declare(store).unwrap();
        let model = run(&blog, store, &steps);
        let snapshot = store.snapshot().unwrap();
        for key in (0..KEYS).map(text) {
            assert_eq!(blog.posts.get(&snapshot, &key).unwrap().as_ref(), model.get(&key));
            let elements = blog.comments.elements(&snapshot, &key).unwrap();
            let wanted = model.get(&key).map_or(0, |post| post.comments.len());
            assert_eq!(elements.len(), wanted, "no element without its document");
        }
        let keys: Vec<String> = (0..KEYS).rev().chain(0..2).map(text).collect();
        let wanted: Vec<Option<Post>> = keys.iter().map(|key| model.get(key).cloned()).collect();
        assert_eq!(blog.posts.get_many(&snapshot, &keys).unwrap(), wanted);
        assert_eq!(blog.faults(store), [""; 0]);
    });
}

/// The score of each post, computed from the scores of its comments by the definition of the modes.
fn combined(scores: &[f64], mode: ScoreMode) -> f64 {
    match mode {
        ScoreMode::None => 0.0,
        ScoreMode::Average => scores.iter().sum::<f64>() / scores.len() as f64,
        ScoreMode::Maximum => scores.iter().copied().fold(f64::MIN, f64::max),
        ScoreMode::Minimum => scores.iter().copied().fold(f64::MAX, f64::min),
        ScoreMode::Sum => scores.iter().sum(),
    }
}

const MODES: [ScoreMode; 5] =
    [ScoreMode::None, ScoreMode::Average, ScoreMode::Maximum, ScoreMode::Minimum, ScoreMode::Sum];

fn has_word(text: &str, word: &str) -> bool {
    text.split(' ').any(|one| one == word)
}

/// The posts with comments that match a predicate, and the positions of these comments.
fn expected<'m>(
    model: &'m Model,
    is_found: impl Fn(&Comment) -> bool,
) -> BTreeMap<String, Vec<(usize, &'m Comment)>> {
    let of = |post: &'m Post| -> Vec<(usize, &'m Comment)> {
        post.comments.iter().enumerate().filter(|(_, c)| is_found(c)).collect()
    };
    let all = model.iter().map(|(key, post)| (key.clone(), of(post)));
    all.filter(|(_, found)| !found.is_empty()).collect()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

pub fn queries_find_what_nested_loops_find(store: &impl Store) {
    very_long_property(history(), |steps| {
        clear(store);
        let blog = Blog::declare(store).unwrap();
        let model = run(&blog, store, &steps);
        for name in ["ann", "bob"] {
            elements_match_on_their_own(&blog, store, &model, name);
            elements_of_elements_match(&blog, store, &model, name);
        }
    });
}

fn elements_match_on_their_own(blog: &Blog, store: &impl Store, model: &Model, name: &str) {
    let snapshot = store.snapshot().unwrap();
    let index = blog.comments.at(&snapshot).unwrap();
    let old = index.records().integers_of("age").unwrap().gt(21);
    let search = index.search(Query::term("name", name)).filter(old);
    let found = Matches::of(index, &search, &snapshot).unwrap();
    let wanted = expected(model, |c| c.name == name && c.age > 21);

    // The scores of the single comments come from the index; the posts combine them.
    let keys = found.keys(&snapshot).unwrap();
    let mut scores = BTreeMap::<String, Vec<f64>>::new();
    for (key, (_, score)) in keys.iter().zip(found.scores()) {
        scores.entry(key.0.clone()).or_default().push(*score);
    }
    assert_eq!(scores.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
    for mode in MODES {
        for least in 1..3 {
            let posts = blog.comments.to_parents_with(&snapshot, &found, mode, least..=3).unwrap();
            let mut hits = posts.top(&snapshot, 0, 100).unwrap();
            assert!(hits.is_sorted_by(|a, b| a.score >= b.score));
            hits.sort_by(|a, b| a.key.cmp(&b.key));
            let number = |key: &String| wanted[key].len() as u64;
            let wanted: Vec<String> =
                wanted.keys().filter(|key| (least..=3).contains(&number(key))).cloned().collect();
            assert_eq!(hits.iter().map(|hit| hit.key.clone()).collect::<Vec<_>>(), wanted);
            assert!(hits.iter().all(|hit| close(hit.score, combined(&scores[&hit.key], mode))));
        }
    }
    for (key, comments) in &wanted {
        assert_eq!(scores[key].len(), comments.len());
        let hits = blog.comments.inner_hits(&snapshot, &search, key, 0, 10).unwrap();
        let values: BTreeSet<String> = hits.iter().map(|hit| format!("{:?}", hit.value)).collect();
        let stripped = |c: &Comment| Comment { replies: Vec::new(), ..c.clone() };
        let expected = comments.iter().map(|(_, c)| format!("{:?}", stripped(c))).collect();
        assert_eq!(values, expected);
        assert!(hits.is_sorted_by(|a, b| a.score >= b.score));
        let second = blog.comments.inner_hits(&snapshot, &search, key, 1, 1).unwrap();
        assert_eq!(second.first(), hits.get(1));
    }
    with_root_queries(blog, store, model, &found, name);
    sorted_and_counted(blog, store, model);
}

/// The nested query combined with a query on the posts: and, or, without.
fn with_root_queries(
    blog: &Blog,
    store: &impl Store,
    model: &Model,
    found: &Matches<(String, u32), Comment>,
    name: &str,
) {
    let snapshot = store.snapshot().unwrap();
    let nested: BTreeSet<String> =
        expected(model, |c| c.name == name && c.age > 21).into_keys().collect();
    let titled = model.iter().filter(|(_, post)| has_word(&post.title, "good"));
    let titled: BTreeSet<String> = titled.map(|(key, _)| key.clone()).collect();
    let index = blog.posts.text().at(&snapshot).unwrap();
    let good = Matches::of(index, &index.search(Query::term("title", "good")), &snapshot).unwrap();
    let posts = blog.comments.to_parents(&snapshot, found, ScoreMode::Sum).unwrap();
    let keys = |matches: Result<Matches<String, Post>>| {
        matches.unwrap().keys(&snapshot).unwrap().into_iter().collect::<BTreeSet<String>>()
    };
    assert_eq!(keys(good.and(&posts)), &titled & &nested);
    assert_eq!(keys(good.or(&posts)), &titled | &nested);
    assert_eq!(keys(good.without(&posts)), &titled - &nested);
    // The nested query as a filter of an ordinary search.
    let filtered = index.search(Query::term("title", "good")).filter(posts.filter());
    assert_eq!(filtered.count(&snapshot).unwrap(), (&titled & &nested).len() as u64);
    // From the posts back to all of their comments.
    let back = blog.comments.to_children(&snapshot, &posts).unwrap();
    let comments: usize = nested.iter().map(|key| model[key].comments.len()).sum();
    assert_eq!(back.len(), comments);
}

fn sorted_and_counted(blog: &Blog, store: &impl Store, model: &Model) {
    let snapshot = store.snapshot().unwrap();
    let index = blog.comments.at(&snapshot).unwrap();
    let all = Matches::of_ids(index, &index.records().all(), 0.0, &snapshot).unwrap();
    for mode in MODES {
        let stars = blog.comments.values_of_children(&snapshot, &all, "stars", mode).unwrap();
        let mut hits = stars.top(&snapshot, 0, 100).unwrap();
        hits.sort_by(|a, b| a.key.cmp(&b.key));
        let of = |post: &Post| -> Vec<f64> {
            post.comments.iter().filter_map(|c| c.stars).map(|stars| stars as f64).collect()
        };
        let wanted = model.iter().map(|(key, post)| (key.clone(), of(post)));
        let wanted: Vec<(String, Vec<f64>)> =
            wanted.filter(|(_, stars)| !stars.is_empty()).collect();
        assert_eq!(hits.len(), wanted.len());
        for (hit, (key, stars)) in hits.iter().zip(wanted) {
            assert_eq!(hit.key, key);
            assert!(close(hit.score, combined(&stars, mode)), "{mode:?}");
        }
    }
    let counts = blog.comments.counts::<i64>(&snapshot, &all, "month").unwrap();
    let counts: Vec<_> = counts.iter().map(|c| (c.value, c.children, c.parents)).collect();
    let comments: u64 = model.values().map(|post| post.comments.len() as u64).sum();
    let posts = model.values().filter(|post| !post.comments.is_empty()).count() as u64;
    assert_eq!(counts, if posts == 0 { vec![] } else { vec![(201409, comments, posts)] });
}

/// The posts with a comment of one name that has a reply of another name: two steps up.
fn elements_of_elements_match(blog: &Blog, store: &impl Store, model: &Model, name: &str) {
    let snapshot = store.snapshot().unwrap();
    let replies = blog.replies.matches(&snapshot, Query::term("by", name)).unwrap();
    let comments = blog.replies.to_parents(&snapshot, &replies, ScoreMode::Sum).unwrap();
    let of_ann = blog.comments.matches(&snapshot, Query::term("name", "ann")).unwrap();
    let both = comments.and(&of_ann).unwrap();
    let posts = blog.comments.to_parents(&snapshot, &both, ScoreMode::Maximum).unwrap();
    let wanted =
        expected(model, |c| c.name == "ann" && c.replies.iter().any(|reply| reply.by == name));
    let mut keys = posts.keys(&snapshot).unwrap();
    keys.sort_unstable();
    assert_eq!(keys, wanted.into_keys().collect::<Vec<_>>());
}
