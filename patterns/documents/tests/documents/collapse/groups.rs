//! Groups of random posts, against loops over all hits.

use std::collections::{BTreeMap, BTreeSet};

use keyloom::{Error, Order, Reader, Store};
use keyloom_bitmaps::InvertedIndexError;
use keyloom_documents::collapse::{Collapse, Group, GroupCounts, InnerHits};
use keyloom_tables::Continuation;
use keyloom_testing::laws;
use keyloom_text::Hit;
use proptest::prelude::*;

use super::fixture::{By, Post, an_order, by_date, grouped, hits, keys, posts, search};
use super::fixture::{some_posts, stored};

fn all_pages(collapse: &Collapse<'_, u32, Post>, reader: &impl Reader) -> Vec<Group<u32>> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = collapse.clone().after(after).page(reader).unwrap();
        all.extend(page.items);
        let Some(next) = page.next else { return all };
        after = Some(Continuation::from_bytes(next.as_bytes()));
    }
}

fn author(group: &Group<u32>) -> Option<String> {
    group.value().unwrap()
}

fn slice(hits: &[Hit<u32>], offset: usize, size: usize) -> Vec<u32> {
    keys(hits).into_iter().skip(offset).take(size).collect()
}

pub fn groups_are_those_of_their_definition(store: &impl Store) {
    let inner = (0_usize..4, 0_usize..3, prop::option::of(any::<bool>()));
    let options = (an_order(), inner, 1_usize..7, any::<bool>());
    laws::very_long_property((some_posts(), options), |(all, options)| {
        let (by, (size, offset, inner_order), limit, keeps_missing) = options;
        let (index, snapshot);
        index = stored(store, &all);
        snapshot = store.snapshot().unwrap();
        let search = search(&index, by);
        let mut wanted = grouped(&hits(&search, &snapshot), |key| all[key as usize].author.clone());
        let mut inner = InnerHits::first(size).offset(offset).count();
        let order = inner_order.map(|is_up| match is_up {
            true => Order::Ascending,
            false => Order::Descending,
        });
        if let Some(order) = order {
            inner = inner.sort_by("date", order);
        }
        let mut collapse = Collapse::new(search, "author").inner(inner);
        if !keeps_missing {
            collapse = collapse.without_missing();
            wanted.retain(|(author, _)| author.is_some());
        }
        let found = collapse.clone().groups(1_000).page(&snapshot).unwrap();
        assert_eq!(found.next, None);
        assert_eq!(found.items.len(), wanted.len());
        for (group, (value, hits)) in found.items.iter().zip(&wanted) {
            assert_eq!(author(group), *value);
            assert_eq!(group.best, hits[0]);
            assert_eq!(group.count, Some(hits.len() as u64));
            let inner = order.map_or(hits.clone(), |order| by_date(&all, hits, order));
            assert_eq!(keys(&group.hits), slice(&inner, offset, size), "{by:?}, {order:?}");
        }
        assert_eq!(all_pages(&collapse.groups(limit), &snapshot), found.items, "pages of {limit}");
    });
}

pub fn second_level_groups_are_groups_of_each_group(store: &impl Store) {
    let options = (an_order(), prop::option::of(any::<bool>()), 1_usize..4);
    laws::very_long_property((some_posts(), options), |(all, (by, inner_order, many))| {
        let index = stored(store, &all);
        let snapshot = store.snapshot().unwrap();
        let search = search(&index, by);
        let wanted = grouped(&hits(&search, &snapshot), |key| all[key as usize].author.clone());
        let order = inner_order.map(|is_up| match is_up {
            true => Order::Ascending,
            false => Order::Descending,
        });
        let mut inner = InnerHits::default().groups("country", many, InnerHits::first(2));
        if let Some(order) = order {
            inner = inner.sort_by("date", order);
        }
        let page = Collapse::new(search, "author").groups(5).inner(inner).page(&snapshot).unwrap();
        assert_eq!(page.items.len(), wanted.len().min(5));
        for (group, (_, hits)) in page.items.iter().zip(&wanted) {
            let inner = order.map_or(hits.clone(), |order| by_date(&all, hits, order));
            let wanted = grouped(&inner, |key| Some(all[key as usize].country));
            assert_eq!(group.hits, []);
            assert_eq!(group.groups.len(), wanted.len().min(many));
            for (found, (country, hits)) in group.groups.iter().zip(&wanted) {
                assert_eq!(found.value::<u8>().unwrap(), *country);
                assert_eq!(found.best.key, hits[0].key);
                assert_eq!(keys(&found.hits), slice(hits, 0, 2));
            }
        }
    });
}

pub fn counts_are_exact(store: &impl Store) {
    laws::very_long_property((some_posts(), any::<bool>()), |(all, keeps_missing)| {
        let index = stored(store, &all);
        let snapshot = store.snapshot().unwrap();
        let mut hits = hits(&search(&index, By::Score), &snapshot);
        let mut collapse = Collapse::new(search(&index, By::Score), "author");
        let author = |key: u32| all[key as usize].author.clone();
        if !keeps_missing {
            hits.retain(|hit| author(hit.key).is_some());
            collapse = collapse.without_missing();
        }
        let (records, groups) = (hits.len() as u64, grouped(&hits, author).len() as u64);
        assert_eq!(collapse.counts(&snapshot).unwrap(), GroupCounts { records, groups });
        let mut authors = BTreeMap::<u8, BTreeSet<Option<String>>>::new();
        for hit in &hits {
            authors.entry(all[hit.key as usize].country).or_default().insert(author(hit.key));
        }
        let mut wanted: Vec<(u8, u64)> =
            authors.into_iter().map(|(country, authors)| (country, authors.len() as u64)).collect();
        wanted.sort_by_key(|(country, count)| (std::cmp::Reverse(*count), *country));
        wanted.truncate(2);
        assert_eq!(collapse.facet_groups::<u8>(&snapshot, "country", 2).unwrap(), wanted);
    });
}

/// Groups with more than 1/8 of all records are read in two steps: first the best hits, then more
/// hits of the groups that have too few of them.
pub fn large_and_small_groups_have_their_best_hits(store: &impl Store) {
    let writer = |n: u32| match n {
        n if n % 50 == 0 => "rare",
        n if n % 3 == 0 => "often",
        _ => "most",
    };
    let post = |n: u32| Post {
        author: Some(writer(n).to_owned()),
        country: 0,
        // The rare author writes long posts, whose scores are low.
        body: ["a c"]
            .repeat(1 + (n * 7 % 13) as usize + if n.is_multiple_of(50) { 9 } else { 0 })
            .join(" "),
        date: None,
    };
    let all: Vec<Post> = (0..1_200).map(post).collect();
    let index = stored(store, &all);
    let snapshot = store.snapshot().unwrap();
    let search = search(&index, By::Score);
    let wanted = grouped(&hits(&search, &snapshot), |key| all[key as usize].author.clone());
    assert_eq!(wanted.len(), 3);
    for size in [3, 20, 500] {
        let collapse = Collapse::new(search.clone(), "author").inner(InnerHits::first(size));
        let page = collapse.page(&snapshot).unwrap();
        for (group, (value, hits)) in page.items.iter().zip(&wanted) {
            assert_eq!((author(group), keys(&group.hits)), (value.clone(), slice(hits, 0, size)));
        }
    }
}

/// Groups that do not change are on exactly one page, whatever is written between the pages.
pub fn pages_of_groups_are_stable_while_others_write(store: &impl Store) {
    let post = |author: u32, words: usize| Post {
        author: Some(format!("author {author}")),
        country: 0,
        body: ["a"].repeat(words).join(" "),
        date: None,
    };
    let all: Vec<Post> = (0..60).map(|n| post(n % 12, 1 + (n as usize * 7) % 11)).collect();
    let index = stored(store, &all);
    let table = posts(&index);
    let collapse = Collapse::new(search(&index, By::Score), "author").groups(2);
    let authors = |groups: &[Group<u32>]| groups.iter().map(author).collect::<Vec<_>>();
    let before = authors(&all_pages(&collapse, &store.snapshot().unwrap()));
    assert_eq!(before.len(), 12);
    let (mut seen, mut after) = (Vec::new(), None);
    for n in 0.. {
        let page = collapse.clone().after(after).page(&store.snapshot().unwrap()).unwrap();
        seen.extend(authors(&page.items));
        after = page.next;
        if after.is_none() {
            break;
        }
        // Other authors' posts change every statistic and come before and after the position.
        let new = |m: u32| (100 + n * 10 + m, post(50 + n, 1 + m as usize * 5));
        store.transact(|txn| table.put_many(txn, (0..4).map(new))).unwrap();
    }
    seen.retain(|author| before.contains(author));
    assert_eq!(seen, before);
}

pub fn wrong_collapses_are_errors_with_a_remedy(store: &impl Store) {
    let post = Post { author: None, country: 1, body: "a b".to_owned(), date: None };
    let index = stored(store, &[post.clone(), post]);
    let snapshot = store.snapshot().unwrap();
    let by = |field: &str| Collapse::new(search(&index, By::Score), field);
    let unknown = by("auhtor").page(&snapshot).unwrap_err();
    let error = unknown.downcast_ref::<InvertedIndexError>();
    assert!(matches!(error, Some(InvertedIndexError::UnknownField { .. })), "{unknown}");
    let integers = by("date").page(&snapshot).unwrap_err();
    let error = integers.downcast_ref::<InvertedIndexError>();
    assert!(matches!(error, Some(InvertedIndexError::OtherKind { .. })), "{integers}");
    // The error is the same if no record has several values.
    let second = by("author").inner(InnerHits::default().groups("words", 1, InnerHits::first(1)));
    for refused in [
        by("words").page(&snapshot).map(drop),
        by("words").counts(&snapshot).map(drop),
        by("words").facet_groups::<u8>(&snapshot, "country", 1).map(drop),
        second.page(&snapshot).map(drop),
    ] {
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("\"words\"") && error.contains("`single_value`"), "{error}");
    }
    let inner = InnerHits::first(1).sort_by("dtae", Order::Ascending);
    assert!(by("author").inner(inner).page(&snapshot).is_err());
    assert_eq!(by("author").groups(0).page(&snapshot).unwrap().items, []);

    let next = by("country").groups(1).page(&snapshot).unwrap().next.unwrap();
    let refused = |collapse: Collapse<'_, u32, Post>, next: Continuation| {
        let error = collapse.after(next).page(&snapshot).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
    };
    refused(by("author"), next.clone());
    refused(by("country").without_missing(), next.clone());
    let other = search(&index, By::Key);
    refused(Collapse::new(other, "country"), next.clone());
    refused(by("country"), Continuation::from_bytes(b""));
    refused(by("country"), Continuation::from_bytes(&next.as_bytes()[..5]));
    let newer = [&[9][..], &next.as_bytes()[1..]].concat();
    let newer = by("country").after(Continuation::from_bytes(&newer)).page(&snapshot);
    assert!(matches!(newer, Err(Error::NewerFormat { .. })));
}
