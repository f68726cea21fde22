//! Random histories, compared with a map.

use std::collections::BTreeMap;

use keyloom::{AnyStore, Order, Store};
use keyloom_tables::in_order;
use keyloom_testing::ids::number;

use super::{Login, open};

/// Random puts, touches and sweeps, compared with a map that forgets by a full scan.
pub fn histories_agree_with_a_map(store: &AnyStore) {
    for seed in 0..20 {
        keyloom_testing::laws::clear(store);
        let logins = open(store);
        let mut rng = fastrand::Rng::with_seed(seed);
        let (mut model, mut now) = (BTreeMap::<u32, Login>::new(), 1_000_u64);
        let is_live = |login: &Login, now: u64| login.until.is_none_or(|until| until > now);
        for _ in 0..60 {
            let key = number(rng.u64(..20)) as u32;
            match rng.u8(..8) {
                0..4 => {
                    let until = (rng.u8(..4) > 0).then(|| now + rng.u64(..200));
                    logins.put(store, key, until);
                    model.insert(key, Login { user: (key % 7) as u8, until });
                }
                4 => {
                    let until = now + rng.u64(..100);
                    let touched = store.transact(|txn| {
                        logins.expiry.touch(txn, &key, now, |login| login.until = Some(until))
                    });
                    let live = model.get_mut(&key).filter(|login| is_live(login, now));
                    assert_eq!(touched.unwrap(), live.is_some());
                    live.into_iter().for_each(|login| login.until = Some(until));
                }
                5 => now += rng.u64(..100),
                _ => {
                    let removed = logins.expiry.sweep(store, now).unwrap().removed;
                    let before = model.len();
                    model.retain(|_, login| is_live(login, now));
                    assert_eq!(removed as usize, before - model.len());
                }
            }
            let live: Vec<_> = model.iter().filter(|(_, login)| is_live(login, now)).collect();
            let snapshot = store.snapshot().unwrap();
            let expiry = &logins.expiry;
            for order in [Order::Ascending, Order::Descending] {
                let found = expiry.live(&snapshot, in_order(.., order), now).unwrap();
                let mut found: Vec<_> = found.map(Result::unwrap).collect();
                if order == Order::Descending {
                    found.reverse();
                }
                assert!(found.iter().map(|(k, v)| (k, v)).eq(live.iter().copied()));
            }
            let keys: Vec<u32> = (0..20).map(|n| number(n) as u32).collect();
            let many = expiry.get_many(&snapshot, &keys, now).unwrap();
            for (key, found) in keys.iter().zip(many) {
                let wanted = model.get(key).filter(|login| is_live(login, now)).cloned();
                assert_eq!(found, wanted);
                assert_eq!(expiry.get(&snapshot, key, now).unwrap(), wanted);
            }
            let expired = model.len() - live.len();
            assert_eq!(expiry.count_live(&snapshot, now).unwrap() as usize, live.len());
            assert_eq!(expiry.count_expired(&snapshot, now).unwrap() as usize, expired);
            let next = model.values().filter_map(|login| login.until).min();
            assert_eq!(expiry.next_deadline(&snapshot).unwrap(), next);
        }
        logins.assert_sound(store);
    }
}
