//! The reads of a page of groups.

use keyloom::{Metered, Store};
use keyloom_documents::collapse::{Collapse, InnerHits};
use keyloom_text::Query;

use super::fixture::{Post, stored};

fn reads(authors: u32) -> [u64; 3] {
    let post = |n: u32| Post {
        author: Some(format!("author {}", n.wrapping_mul(2_654_435_761) % authors)),
        country: 0,
        body: ["a"].repeat(1 + (n as usize * 31) % 23).join(" "),
        date: None,
    };
    let store = Metered::new(keyloom_testing::memory());
    let index = stored(&store, &(0..20_000).map(post).collect::<Vec<_>>());
    let search = || index.search(Query::term("body", "a")).limit(10);
    let plain = store.measure(|store| search().hits(&store.snapshot().unwrap()).unwrap()).1;
    let collapse = |inner: InnerHits| {
        let collapse = Collapse::new(search(), "author").inner(inner);
        let (page, cost) = store.measure(|store| collapse.page(&store.snapshot().unwrap()));
        assert_eq!(page.unwrap().items.len(), 10);
        cost.keys_read
    };
    [plain.keys_read, collapse(InnerHits::default()), collapse(InnerHits::first(3))]
}

/// All 20,000 posts match, in 157 blocks.
#[test]
fn a_page_of_groups_reads_a_part_of_the_matches() {
    // Many authors: the first page has ten groups, and each group is a search in four posts.
    let [plain, groups, hits] = reads(5_000);
    assert!(groups <= plain + 40, "{groups} keys, {plain} without groups");
    assert!(hits <= groups + 10 * 17, "{hits} keys, {groups} without inner hits");
    // Few authors: the first pages have most of the hits.
    let [plain, groups, hits] = reads(20);
    assert!(groups <= 4 * plain, "{groups} keys, {plain} without groups");
    assert!(hits <= 6 * plain, "{hits} keys, {groups} without inner hits");
}

/// Most of the best matches have no author: after 1,024 of them, the search leaves them out.
#[test]
fn matches_without_a_value_are_not_read_one_by_one() {
    let post = |n: u32| Post {
        author: (n >= 19_900).then(|| format!("author {}", n % 20)),
        country: 0,
        body: if n < 19_900 { "a a a".to_owned() } else { "a b c d e f".to_owned() },
        date: None,
    };
    let store = Metered::new(keyloom_testing::memory());
    let index = stored(&store, &(0..20_000).map(post).collect::<Vec<_>>());
    let search = index.search(Query::term("body", "a")).limit(10);
    let collapse = Collapse::new(search, "author").without_missing();
    let (page, cost) = store.measure(|store| collapse.page(&store.snapshot().unwrap()));
    assert_eq!(page.unwrap().items.len(), 10);
    assert!(cost.gets + cost.ranges < 300, "{cost}");
}
