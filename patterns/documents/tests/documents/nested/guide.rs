//! The answers of the chapter "Nested Objects" of the guide to Elasticsearch.

use keyloom::{Order, Reader, Result, Store};
use keyloom_documents::{Counts, Documents, Matches, ScoreMode};
use keyloom_tables::Schema;
use keyloom_testing::laws::clear;
use keyloom_text::{Analyzer, Query};

use super::blog::{Blog, Comment, Post, guide_posts};

fn blog(store: &impl Store) -> Blog {
    clear(store);
    let blog = Blog::declare(store).unwrap();
    store
        .transact(|txn| {
            guide_posts().iter().try_for_each(|(id, post)| blog.posts.put(txn, id, post))
        })
        .unwrap();
    blog
}

/// The comments with this word in the name and this age.
fn comments_of(
    blog: &Blog,
    reader: &impl Reader,
    name: &str,
    age: i64,
) -> Result<Matches<(u32, u32), Comment>> {
    let index = blog.comments.at(reader)?;
    let aged = index.records().integers_of("age")?.eq(age);
    Matches::of(index, &index.search(Query::term("name", name)).filter(aged), reader)
}

#[test]
fn flat_fields_match_across_elements() {
    let store = keyloom_testing::memory();
    let schema = Schema::open(&store, "flat").unwrap();
    let posts = Documents::<u32, Post>::declare(&schema, "posts", 1, |index| {
        let name = |_: &u32, post: &Post, add: &mut dyn FnMut(&str)| {
            post.comments.iter().for_each(|c| add(&c.name));
        };
        index
            .field("name", Analyzer::names(), name)
            .values("age", |_, post: &Post| post.comments.iter().map(|c| c.age).collect())
    })
    .unwrap();
    store
        .transact(|txn| guide_posts().iter().try_for_each(|(id, post)| posts.put(txn, id, post)))
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    let index = posts.text().at(&snapshot).unwrap();
    // Alice is 31, but another comment of the same post is by a person of 28.
    let aged = index.records().term("age", 28).unwrap();
    let found = index.search(Query::term("name", "alice")).filter(aged).hits(&snapshot).unwrap();
    assert_eq!(found.items[0].key, 1);
}

pub fn the_guide_finds_comments_on_their_own(store: &impl Store) {
    let blog = blog(store);
    let snapshot = store.snapshot().unwrap();
    assert_eq!(comments_of(&blog, &snapshot, "alice", 28).unwrap().len(), 0);
    let john = comments_of(&blog, &snapshot, "john", 28).unwrap();
    let posts = blog.comments.to_parents(&snapshot, &john, ScoreMode::Maximum).unwrap();
    assert_eq!(posts.keys(&snapshot).unwrap(), [1, 2]);

    // The title contains "eggs", and a comment is by John, aged 28.
    let index = blog.posts.text().at(&snapshot).unwrap();
    let eggs = Matches::of(index, &index.search(Query::term("title", "eggs")), &snapshot).unwrap();
    let found = eggs.and(&posts).unwrap().top(&snapshot, 0, 10).unwrap();
    assert_eq!(found.iter().map(|hit| hit.key).collect::<Vec<_>>(), [1]);
    assert_eq!(found[0].score, eggs.scores()[0].1 + posts.scores()[0].1);

    // The inner hits of this query.
    let search = blog.comments.at(&snapshot).unwrap().search(Query::term("name", "john"));
    let hits = blog.comments.inner_hits(&snapshot, &search, &1, 0, 3).unwrap();
    assert_eq!(hits.iter().map(|hit| hit.key).collect::<Vec<_>>(), [(1, 0)]);
    assert_eq!(hits[0].value, guide_posts()[0].1.comments[0]);
    assert!(blog.comments.inner_hits(&snapshot, &search, &1, 1, 3).unwrap().is_empty());
}

pub fn the_guide_sorts_posts_by_their_comments(store: &impl Store) {
    let blog = blog(store);
    let snapshot = store.snapshot().unwrap();
    // The posts with comments in October 2014, sorted by the lowest number of stars of these
    // comments.
    let index = blog.comments.at(&snapshot).unwrap();
    let october = index.records().integers_of("date").unwrap().between(20141001..20141101);
    let october = Matches::of_ids(index, &october, 0.0, &snapshot).unwrap();
    let posts = blog.comments.to_parents(&snapshot, &october, ScoreMode::None).unwrap();
    let by = |mode, sign: f64| {
        let stars = blog.comments.values_of_children(&snapshot, &october, "stars", mode).unwrap();
        let sorted = posts.scored_by(&stars, f64::NEG_INFINITY).unwrap();
        let sorted = sorted.map_scores(|stars| sign * stars).top(&snapshot, 0, 10).unwrap();
        sorted.into_iter().map(|hit| (hit.key, sign * hit.score)).collect::<Vec<_>>()
    };
    assert_eq!(by(ScoreMode::Minimum, -1.0), [(2, 1.0), (1, 5.0)]);
    assert_eq!(by(ScoreMode::Maximum, 1.0), [(1, 5.0), (2, 2.0)]);
    assert_eq!(by(ScoreMode::Average, 1.0), [(1, 5.0), (2, 1.5)]);
    assert_eq!(by(ScoreMode::Sum, -1.0), [(2, 3.0), (1, 5.0)]);
    // The comments of one post, sorted by their stars.
    let by_stars = index.search(Query::All).sort_by("stars", Order::Ascending);
    let hits = blog.comments.inner_hits(&snapshot, &by_stars, &2, 0, 9).unwrap();
    assert_eq!(hits.iter().map(|hit| hit.key.1).collect::<Vec<_>>(), [0, 1]);
}

pub fn the_guide_counts_comments_and_their_posts(store: &impl Store) {
    let blog = blog(store);
    let snapshot = store.snapshot().unwrap();
    let index = blog.comments.at(&snapshot).unwrap();
    let all = Matches::of_ids(index, &index.records().all(), 0.0, &snapshot).unwrap();
    assert_eq!(all.len(), 4);

    // The average stars by month.
    let report = index.records().report(all.filter());
    let months = report.sums::<u64>(&snapshot, "month", "stars").unwrap().rows;
    let months = months.into_iter().map(|(month, sum)| (month, sum.count, sum.sum));
    assert_eq!(months.collect::<Vec<_>>(), [(201409, 1, 4), (201410, 3, 8)]);

    // The tags of the posts, by the age of the commenters.
    let ages = blog.comments.counts::<u64>(&snapshot, &all, "decade").unwrap();
    let wanted = [(20, 2, 2), (30, 1, 1), (40, 1, 1)];
    let wanted = wanted.map(|(value, children, parents)| Counts { value, children, parents });
    assert_eq!(ages, wanted);
    let tags_of = |decade: u64| {
        let aged = index.records().term("decade", decade).unwrap();
        let aged = Matches::of_ids(index, &aged, 0.0, &snapshot).unwrap();
        let posts = blog.comments.to_parents(&snapshot, &aged, ScoreMode::None).unwrap();
        let records = blog.posts.text().at(&snapshot).unwrap().records();
        records.report(posts.filter()).breakdown::<String>(&snapshot, "tags").unwrap().rows
    };
    let row = |tag: &str, count| (tag.to_owned(), count);
    assert_eq!(tags_of(20), [row("cash", 1), row("equities", 1), row("shares", 2)]);
    assert_eq!(tags_of(30), [row("cash", 1), row("shares", 1)]);
    assert_eq!(tags_of(40), [row("equities", 1), row("shares", 1)]);
}
