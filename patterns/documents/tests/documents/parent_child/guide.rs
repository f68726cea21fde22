//! The answers of the chapter "Parent-Child Relationship" of the guide to Elasticsearch.

use keyloom::Store;
use keyloom_documents::parent_child::OnParentDelete;
use keyloom_documents::{Matches, ScoreMode};
use keyloom_text::Query;

use super::company::{guide, key};

fn sorted(mut keys: Vec<String>) -> Vec<String> {
    keys.sort_unstable();
    keys
}

pub fn the_guide_finds_branches_by_their_employees(store: &impl Store) {
    let company = guide(store, OnParentDelete::Refuse, OnParentDelete::Refuse);
    let snapshot = store.snapshot().unwrap();
    let index = company.employees.at(&snapshot).unwrap();
    let to_branches =
        |found: &_, mode| company.employees.to_parents(&snapshot, found, mode).unwrap();

    // Born in or after 1980.
    let young = index.records().integers_of("born").unwrap().ge(19800101);
    let young = Matches::of_ids(index, &young, 1.0, &snapshot).unwrap();
    let found = to_branches(&young, ScoreMode::None).keys(&snapshot).unwrap();
    assert_eq!(sorted(found), ["london", "paris"]);

    // The best match of "Alice Smith" in each branch.
    let query = Query::any_of([Query::term("name", "Alice"), Query::term("name", "Smith")]);
    let smiths = company.employees.matches(&snapshot, query).unwrap();
    let found = to_branches(&smiths, ScoreMode::Maximum).top(&snapshot, 0, 10).unwrap();
    let keys: Vec<&str> = found.iter().map(|hit| &*hit.key).collect();
    assert_eq!(keys, ["london", "liverpool"]);
    assert!(found[0].score > found[1].score);

    // At least two employees; at most one.
    let all = company.employees.matches(&snapshot, Query::All).unwrap();
    let with = |number: std::ops::RangeInclusive<u64>| {
        let found =
            company.employees.to_parents_with(&snapshot, &all, ScoreMode::None, number).unwrap();
        sorted(found.keys(&snapshot).unwrap())
    };
    assert_eq!(with(2..=u64::MAX), ["london"]);
    assert_eq!(with(1..=1), ["liverpool", "paris"]);
    let none = company.employees.to_parents_with(&snapshot, &all, ScoreMode::None, ..=1);
    let none = none.unwrap_err().to_string();
    assert!(none.contains("begin at 1"), "{none}");

    // A query of the branches and one of their employees.
    let branches = company.branches.matches(&snapshot, Query::term("name", "central")).unwrap();
    let both = branches.and(&to_branches(&smiths, ScoreMode::Sum)).unwrap();
    assert_eq!(both.keys(&snapshot).unwrap(), ["liverpool"]);
}

pub fn the_guide_finds_employees_by_their_branch(store: &impl Store) {
    let company = guide(store, OnParentDelete::Refuse, OnParentDelete::Refuse);
    let snapshot = store.snapshot().unwrap();
    let branches = company.branches.at(&snapshot).unwrap();
    let employees = company.employees.at(&snapshot).unwrap();
    let of_country = |country: &str| {
        let term = branches.records().term("country", country).unwrap();
        let found = Matches::of_ids(branches, &term, 3.0, &snapshot).unwrap();
        company.employees.to_children(&snapshot, &found).unwrap()
    };
    let british = of_country("uk");
    let keys = [key("london", 1), key("london", 2), key("liverpool", 3)];
    assert_eq!(british.keys(&snapshot).unwrap(), keys);
    assert!(british.scores().iter().all(|(_, score)| *score == 3.0));

    // The hobbies of the employees , by country.
    let hobbies = |country: &str| {
        let report = employees.records().report(of_country(country).filter());
        report.breakdown::<String>(&snapshot, "hobby").unwrap().rows
    };
    let row = |hobby: &str, count| (hobby.to_owned(), count);
    assert_eq!(hobbies("uk"), [row("diving", 1), row("hiking", 2)]);
    assert_eq!(hobbies("france"), [row("horses", 1)]);

    // The countries of the branches, by the hobbies of their employees: from children to parents.
    let hikers = employees.records().term("hobby", "hiking").unwrap();
    let hikers = Matches::of_ids(employees, &hikers, 1.0, &snapshot).unwrap();
    let found = company.employees.to_parents(&snapshot, &hikers, ScoreMode::None).unwrap();
    let report = branches.records().report(found.filter());
    assert_eq!(report.breakdown::<String>(&snapshot, "country").unwrap().rows, [row("uk", 2)]);

    // The employees of one branch.
    let of_london = company.employees.of_parent(&"london".to_owned()).unwrap();
    let search = employees.search(Query::term("name", "smith")).filter(of_london);
    let hits = search.hits(&snapshot).unwrap().items;
    assert_eq!(hits.iter().map(|hit| &hit.key).collect::<Vec<_>>(), [&key("london", 1)]);
    assert_eq!(
        company.employees.keys_of(&snapshot, &"london".to_owned()).unwrap(),
        [key("london", 1), key("london", 2)]
    );
}

pub fn the_guide_finds_countries_by_grandchildren(store: &impl Store) {
    let company = guide(store, OnParentDelete::Refuse, OnParentDelete::Refuse);
    let snapshot = store.snapshot().unwrap();
    let employees = company.employees.at(&snapshot).unwrap();
    let hikers = employees.records().term("hobby", "hiking").unwrap();
    let hikers = Matches::of_ids(employees, &hikers, 1.0, &snapshot).unwrap();
    let branches = company.employees.to_parents(&snapshot, &hikers, ScoreMode::Sum).unwrap();
    let countries = company.branches.to_parents(&snapshot, &branches, ScoreMode::Sum).unwrap();
    let found = countries.top(&snapshot, 0, 10).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((&*found[0].key, found[0].score), ("uk", 2.0));
}
