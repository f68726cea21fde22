//! Every join, compared with nested loops.

use std::sync::Arc;

use keyloom::{Desc, Error, Order, Reader, Result, Store};
use keyloom_tables::in_order;
use keyloom_tables::join::{BuildSide, Joins, KeySet, Lookup};

use crate::join::fixture::{Chat, Data, Message, data};
use keyloom_testing::ids::number;
use keyloom_testing::laws::property;

type Row = (u32, Message);

fn all<T>(rows: impl Iterator<Item = Result<T>>) -> Vec<T> {
    rows.collect::<Result<Vec<_>>>().unwrap()
}

/// The messages with the names of their authors, by nested loops.
fn messages_with_names(data: &Data, outer: bool) -> Vec<(Row, Option<String>)> {
    let mut rows = Vec::new();
    for (id, message) in &data.messages {
        let mut matched = false;
        for (user, name) in &data.users {
            if message.author == Some(*user) {
                rows.push(((*id, message.clone()), Some(name.clone())));
                matched = true;
            }
        }
        if outer && !matched {
            rows.push(((*id, message.clone()), None));
        }
    }
    rows
}

/// The users with the ids of their messages, by nested loops.
fn users_with_messages(data: &Data, outer: bool) -> Vec<(u16, Option<u32>)> {
    let mut rows = Vec::new();
    for user in data.users.keys() {
        let of_user = data.messages.iter().filter(|(_, message)| message.author == Some(*user));
        let ids: Vec<_> = of_user.map(|(id, _)| (*user, Some(*id))).collect();
        match ids.is_empty() && outer {
            true => rows.push((*user, None)),
            false => rows.extend(ids),
        }
    }
    rows
}

pub fn every_join_finds_what_nested_loops_find(store: &(impl Store + Clone)) {
    let chat = Chat::new();
    property((data(), 1..40usize, 0..20usize), |(data, batch, remember)| {
        chat.fill(store, &data);
        let snapshot = store.snapshot().unwrap();
        by_key_of_the_right(&chat, &snapshot, &data, batch, remember);
        in_the_order_of_both(&chat, &snapshot, &data);
        through_a_set(&chat, &snapshot, &data);
        through_links(&chat, &snapshot, &data);
    });
}

fn by_key_of_the_right(
    chat: &Chat,
    reader: &impl Reader,
    data: &Data,
    batch: usize,
    remember: usize,
) {
    let author = |(_, message): &Row| message.author;
    let named = |rows: Vec<(Row, Arc<String>)>| -> Vec<_> {
        rows.into_iter().map(|(row, name)| (row, Some(name.to_string()))).collect()
    };
    let named_or_not = |rows: Vec<(Row, Option<Arc<String>>)>| -> Vec<_> {
        rows.into_iter().map(|(row, name)| (row, name.map(|name| name.to_string()))).collect()
    };
    let messages = || chat.messages.range(reader, ..).unwrap();
    let (inner, outer) = (messages_with_names(data, false), messages_with_names(data, true));

    assert_eq!(named(all(messages().lookup_join(reader, &chat.users, author))), inner);
    let lookup = Lookup::new(&chat.users).batch(batch).remember(remember);
    assert_eq!(named(all(messages().lookup_join(reader, lookup.clone(), author))), inner);
    assert_eq!(named_or_not(all(messages().left_lookup_join(reader, lookup, author))), outer);

    let side = BuildSide::read(chat.users.range(reader, ..).unwrap(), 20);
    let side = side.unwrap();
    assert_eq!(named(all(messages().hash_join(&side, author))), inner);
    assert_eq!(named_or_not(all(messages().left_hash_join(&side, author))), outer);
}

/// Users with their messages: by a merge of ranges, by a range per user, and by a hash join with
/// repeated keys.
fn in_the_order_of_both(chat: &Chat, reader: &impl Reader, data: &Data) {
    for order in [Order::Ascending, Order::Descending] {
        let users = || chat.users.range(reader, in_order(.., order)).unwrap();
        let messages = || {
            chat.by_author.range(reader, in_order(.., order)).unwrap().map(|found| {
                let found = found?;
                Ok((found.parts()?, found.record_key()?))
            })
        };
        let ordered = |mut rows: Vec<(u16, Option<u32>)>| {
            if order == Order::Descending {
                rows.reverse();
            }
            rows
        };
        let (inner, outer) =
            (ordered(users_with_messages(data, false)), ordered(users_with_messages(data, true)));
        let key = |id: u16| match order {
            Order::Ascending => (Some(id), None),
            Order::Descending => (None, Some(Desc(id))),
        };
        let user = |(id, _): &(u16, String)| key(*id);
        let author = |(author, _): &(u16, u32)| key(*author);
        let merged = all(users().left_merge_join(messages(), user, author));
        let merged: Vec<_> =
            merged.into_iter().map(|((id, _), found)| (id, found.map(|(_, id)| id))).collect();
        assert_eq!(merged, outer);
        let merged = all(users().merge_join(messages(), user, author));
        let merged: Vec<_> =
            merged.into_iter().map(|((id, _), (_, message))| (id, Some(message))).collect();
        assert_eq!(merged, inner);

        let range_of = |(id, _): &(u16, String)| chat.by_author.range(reader, in_order(*id, order));
        let looped = all(users().nested_loop_join(range_of));
        let looped: Vec<_> = looped
            .into_iter()
            .map(|((id, _), found)| (id, Some(found.record_key().unwrap())))
            .collect();
        assert_eq!(looped, inner);
        let looped = all(users().left_nested_loop_join(range_of));
        let looped: Vec<_> = looped
            .into_iter()
            .map(|((id, _), found)| (id, found.map(|found| found.record_key().unwrap())))
            .collect();
        assert_eq!(looped, outer);

        let side = BuildSide::read(messages(), 40).unwrap();
        assert_eq!(side.len(), data.messages.values().filter(|m| m.author.is_some()).count());
        let hashed = all(users().left_hash_join(&side, |(id, _)| *id));
        let hashed: Vec<_> =
            hashed.into_iter().map(|((id, _), message)| (id, message.map(|id| *id))).collect();
        assert_eq!(hashed, outer);
    }
    with_duplicates_on_both_sides(chat, reader, data);
}

/// Pairs of messages of one author; keys repeat on both sides.
fn with_duplicates_on_both_sides(chat: &Chat, reader: &impl Reader, data: &Data) {
    let messages = || {
        chat.by_author.range(reader, ..).unwrap().map(|found| {
            let found = found?;
            Ok((found.parts()?, found.record_key()?))
        })
    };
    let author = |(author, _): &(u16, u32)| *author;
    let pairs = all(messages().merge_join(messages(), author, author));
    let mut sorted: Vec<(u16, u32)> =
        data.messages.iter().filter_map(|(id, m)| Some((m.author?, *id))).collect();
    sorted.sort_unstable();
    let mut expected = Vec::new();
    for left in &sorted {
        for right in &sorted {
            if left.0 == right.0 {
                expected.push((*left, *right));
            }
        }
    }
    assert_eq!(pairs, expected);
}

fn through_a_set(chat: &Chat, reader: &impl Reader, data: &Data) {
    let johns = chat.by_name.range(reader, "John").unwrap();
    let johns = KeySet::read(johns.map(|found| found?.record_key()), 12).unwrap();
    let author = |(_, message): &Row| message.author;
    let messages = || chat.messages.range(reader, ..).unwrap();
    let is_of_john = |message: &Message| {
        data.users.iter().any(|(id, name)| message.author == Some(*id) && name == "John")
    };
    let expected = |of_john: bool| -> Vec<Row> {
        let wanted = data.messages.iter().filter(|(_, m)| is_of_john(m) == of_john);
        wanted.map(|(id, message)| (*id, message.clone())).collect()
    };
    assert_eq!(all(messages().semi_join(&johns, author)), expected(true));
    assert_eq!(all(messages().anti_join(&johns, author)), expected(false));
}

fn through_links(chat: &Chat, reader: &impl Reader, data: &Data) {
    for group in ["", "go", "go\0", "o", "g"] {
        let members = chat.members.rights_of(reader, &group.into()).unwrap();
        let found = all(members.lookup_join(reader, &chat.users, |user| *user));
        let found: Vec<_> = found.into_iter().map(|(id, name)| (id, name.to_string())).collect();
        let mut expected = Vec::new();
        for (of, member) in &data.members {
            for (id, name) in &data.users {
                if of == group && member == id {
                    expected.push((*id, name.clone()));
                }
            }
        }
        assert_eq!(found, expected);
    }
    for user in (0..12).map(|n| number(n) as u16) {
        let groups = all(chat.members.lefts_of(reader, &user).unwrap());
        let of_user = data.members.iter().filter(|(_, member)| *member == user);
        assert_eq!(groups, of_user.map(|(group, _)| group.clone()).collect::<Vec<_>>());
    }
}

#[test]
fn a_merge_join_of_what_is_not_in_order_is_refused() {
    let rows = |keys: [u16; 3]| keys.into_iter().map(Ok::<_, Error>);
    let refusal = |mut joined: Box<dyn Iterator<Item = Result<(u16, u16)>>>| {
        let error = joined.find_map(Result::err).expect("an error");
        assert!(joined.next().is_none(), "a join that failed is at its end");
        error.to_string()
    };
    let (left, right) = ([1, 2, 9], [1, 3, 2]);
    let up = |one, other| Box::new(rows(one).merge_join(rows(other), |key| *key, |key| *key));
    let text = refusal(up(left, right));
    assert!(text.contains("right side") && text.contains("(2,) comes after"), "{text}");
    assert!(refusal(up(right, left)).contains("left side"));
    let (left, right) = ([9, 2, 0], [3, 1, 2]);
    let by = |key: &u16| Desc(*key);
    let down = |one, other| Box::new(rows(one).merge_join(rows(other), by, by));
    assert!(refusal(down(left, right)).contains("right side"));
    assert!(refusal(down(right, left)).contains("left side"));
}

#[test]
fn a_side_that_is_too_large_for_memory_is_refused_with_a_remedy() {
    let rows = || (0..11u16).map(|n| Ok((n, n)));
    assert_eq!(BuildSide::read(rows(), 11).unwrap().len(), 11);
    let error = BuildSide::read(rows(), 10).unwrap_err().to_string();
    assert!(error.contains("more than 10 rows") && error.contains("merge join"), "{error}");
    let keys = || (0..22u16).map(|n| Ok(n / 2));
    assert_eq!(KeySet::read(keys(), 11).unwrap().len(), 11, "each counts once");
    assert!(KeySet::read(keys(), 10).unwrap_err().to_string().contains("more than 10 rows"));
    assert!(KeySet::<u16>::read([], 0).unwrap().is_empty());
    assert!(BuildSide::<u16, u16>::read([], 0).unwrap().is_empty());
}
