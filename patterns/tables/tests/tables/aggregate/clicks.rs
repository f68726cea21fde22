//! The example of the catalogue: which user visited which site, and how often.

use std::collections::{BTreeMap, BTreeSet};

use keyloom::key::Subspace;
use keyloom::{Metered, Order, Reader, Result, Store};
use keyloom_tables::{Grouping, Index, Scan, Table, entry};

use keyloom_testing::laws::clear;

pub fn the_click_stream_of_the_catalogue_is_answered_from_keys_alone(store: &(impl Store + Clone)) {
    clear(store);
    let space = Subspace::new("clicks");
    // The table is clustered by user; the index is in the opposite order.
    let by_site =
        Index::new(&space.child("by_site"), |(user, site, _): &(u16, String, u32), _: &()| {
            entry((site, user))
        });
    let clicks = Table::<(u16, String, u32), ()>::new(&space.child("visits")).with(&by_site);
    let visits: BTreeSet<(u16, String, u32)> = (0..4_000u32)
        .map(|second| (second, second.wrapping_mul(0x9E37_79B9) >> 7))
        .map(|(second, n)| ((n % 10) as u16, format!("site {}", n / 10 % 7), second))
        .collect();
    store.transact(|txn| clicks.put_many(txn, visits.iter().map(|v| (v.clone(), ())))).unwrap();
    let metered = Metered::new(store.clone());
    let snapshot = metered.snapshot().unwrap();

    // Distinct sites per user: a skip scan of (user, site), folded by user.
    let (by_user, by_both) = (Grouping::new(clicks.space(), 1), Grouping::new(clicks.space(), 2));
    let mut pairs = by_both.first_of_each(&snapshot, ..).unwrap();
    let folded = by_user.fold(pairs.by_ref(), 0u64, |sites, _| {
        *sites += 1;
        Ok(())
    });
    let sites: BTreeMap<u16, u64> = folded
        .map(|group| group.and_then(|(key, sites)| Ok((by_user.group(&key)?, sites))))
        .collect::<Result<_>>()
        .unwrap();
    let mut expected = BTreeMap::<u16, BTreeSet<&str>>::new();
    for (user, site, _) in &visits {
        expected.entry(*user).or_default().insert(site);
    }
    assert_eq!(sites, expected.iter().map(|(user, sites)| (*user, sites.len() as u64)).collect());
    assert!(pairs.explain().keys_scanned < visits.len() as u64, "{}", pairs.explain());

    // Visits per site: a fold over the index.
    let of_site = by_site.grouped_by(1);
    let entries = snapshot.range(by_site.space().range(), Order::Ascending).unwrap();
    let folded = of_site.fold(entries, 0u64, |visits, _| {
        *visits += 1;
        Ok(())
    });
    let counted: BTreeMap<String, u64> = folded
        .map(|group| group.and_then(|(key, visits)| Ok((of_site.group(&key)?, visits))))
        .collect::<Result<_>>()
        .unwrap();
    let mut expected = BTreeMap::<String, u64>::new();
    visits.iter().for_each(|(_, site, _)| *expected.entry(site.clone()).or_default() += 1);
    assert_eq!(counted, expected);

    // Distinct users per site: their number and their ids.
    let users = by_site.grouped_by(2).values::<_, (String, u16), _>(&snapshot, "site 3");
    let users: BTreeSet<u16> = users.unwrap().map(|pair| pair.unwrap().1).collect();
    let expected: BTreeSet<u16> =
        visits.iter().filter(|(_, site, _)| site == "site 3").map(|(user, ..)| *user).collect();
    assert_eq!(users, expected);
    assert_eq!(metered.cost().gets, 0, "no record is read");
}
