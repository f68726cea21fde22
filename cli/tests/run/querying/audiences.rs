//! Audiences, compared with a test of all users.

use super::contents::{User, users};
use super::{filled, objects, text};
use crate::support::{Directory, fine, run};

/// Whether a user fulfils the condition.
type IsOf = fn(&User) -> bool;

const CONDITIONS: [(&str, IsOf); 22] = [
    ("town=London", |user| is_in(user, "London")),
    ("town=London and level>=3", |user| is_in(user, "London") && user.2 >= 3),
    ("level < 2", |user| user.2 < 2),
    ("level<=2 AND level>1", |user| user.2 == 2),
    ("town=Rome or town=London and level=0", |user| {
        is_in(user, "Rome") || is_in(user, "London") && user.2 == 0
    }),
    ("(town=Rome or town=London) and level=0", |user| {
        (is_in(user, "Rome") || is_in(user, "London")) && user.2 == 0
    }),
    ("not town=London", |user| !is_in(user, "London")),
    ("not not (town=London)", |user| is_in(user, "London")),
    ("not (town=London or not level=3)", |user| !is_in(user, "London") && user.2 == 3),
    ("town=null", |user| user.0.is_none()),
    ("not town=null", |user| user.0.is_some()),
    ("town=Lon*", |user| user.0.as_ref().is_some_and(|town| town.starts_with("Lon"))),
    ("town=\"Lonesome \\\"x\\\"\"", |user| is_in(user, "Lonesome \"x\"")),
    ("town=\"Lonesome \"*", |user| is_in(user, "Lonesome \"x\"")),
    ("town>=Lonesome", |user| user.0.as_ref().is_some_and(|town| &**town >= "Lonesome")),
    ("town=and and town=\"and\"", |user| is_in(user, "and")),
    ("\"a \\\"site\\\", of values\"=b.org", |user| user.1.iter().any(|site| site == "b.org")),
    ("both=(3, \"Rome\")", |user| user.2 == 3 && is_in(user, "Rome")),
    ("age=-50", |user| user.3 == Some(-50)),
    ("age>=-50 and age<7", |user| user.3.is_some_and(|age| (-50..7).contains(&age))),
    ("age=null", |user| user.3.is_none()),
    ("age>100 or age<=-90", |user| user.3.is_some_and(|age| age > 100 || age <= -90)),
];

fn is_in(user: &User, town: &str) -> bool {
    user.0.as_deref() == Some(town)
}

/// The count that the query prints first, and the numbers of the users.
fn found(address: &str, index: &str, condition: &[&str]) -> (u64, Vec<usize>) {
    let all = objects(&[&[address, index], condition, &["-n", "1000"]].concat());
    let (count, rows) = all.split_first().unwrap();
    let number = |key: String| key.trim_end_matches([')', ',']).rsplit(' ').next().unwrap().parse();
    let numbers = rows.iter().map(|one| number(text(one, "key")).unwrap());
    (count["count"].as_u64().unwrap(), numbers.collect())
}

#[test]
fn conditions_find_the_users_that_fulfil_them() {
    let directory = Directory::new();
    let address = filled(&directory);
    let mut sizes = Vec::new();
    for (condition, is_of) in CONDITIONS {
        let expected: Vec<usize> =
            users().iter().enumerate().filter(|(_, user)| is_of(user)).map(|(n, _)| n).collect();
        assert!(!expected.is_empty() && expected.len() < users().len(), "{condition}");
        for index in ["users.sets", "guests.sets"] {
            let (count, numbers) = found(&address, index, &[condition]);
            assert_eq!(numbers, expected, "{index} {condition}");
            assert_eq!(count, expected.len() as u64, "{condition}");
        }
        sizes.push(expected.len());
    }
    sizes.sort_unstable();
    sizes.dedup();
    assert!(sizes.len() > 8, "the conditions differ: {sizes:?}");
    let all: Vec<usize> = (0..users().len()).collect();
    assert_eq!(found(&address, "users.sets", &[]), (300, all));
    assert_eq!(found(&address, "users.sets", &["town=Paris"]), (0, Vec::new()));
}

#[test]
fn an_audience_is_counted_before_its_first_records() {
    let directory = Directory::new();
    let address = filled(&directory);
    let london = users().iter().filter(|user| is_in(user, "London")).count();
    for limit in ["0", "2"] {
        let ran = run(&["query", &address, "guests.sets", "town=London", "-n", limit]);
        let lines: Vec<_> = ran.out.lines().collect();
        assert_eq!(lines[0], format!("{london} records"));
        assert_eq!(lines.len(), 1 + limit.parse::<usize>().unwrap());
        assert!(ran.err.contains(&format!("more than {limit} records")), "{}", ran.err);
    }
    let none = run(&["query", &address, "users.sets", "town=Paris"]);
    assert_eq!((none.out.as_str(), none.err.as_str()), ("0 records\n", ""));
    let one = fine(&["query", &address, "users.sets", "age=-50"]);
    assert!(one.starts_with("1 record\n(") && one.lines().count() == 2, "{one}");
    let nested = |levels: usize| format!("{}town=Rome{}", "(".repeat(levels), ")".repeat(levels));
    assert_eq!(found(&address, "users.sets", &[&nested(90)]).0, 60);
    let deep = run(&["query", &address, "users.sets", &nested(20_000)]);
    assert!(deep.code == 2 && deep.err.contains("nested too deeply"), "{}", deep.err);
}
