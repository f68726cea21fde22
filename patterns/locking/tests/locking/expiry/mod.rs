//! Records that expire.

mod histories;
mod sweeps;

use keyloom::Store;
use keyloom_locking::Expiry;
use keyloom_tables::{Index, Schema, Table, entry};
use keyloom_testing::on_every_store;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Login {
    user: u8,
    until: Option<u64>,
}

struct Logins {
    table: Table<u32, Login>,
    expiry: Expiry<u32, Login>,
    by_user: keyloom_tables::Attached<Index<u32, Login, u8>>,
}

fn open(store: &impl Store) -> Logins {
    let schema = Schema::open(store, "web").unwrap();
    let table = schema.table::<u32, Login>("logins").unwrap();
    let expiry =
        Expiry::new(&schema, &table, "by_deadline", 1, |_, login: &Login| login.until).unwrap();
    let by_user = schema.index(&table, "by_user", 1, |_, login: &Login| entry(login.user)).unwrap();
    Logins { table, expiry, by_user }
}

impl Logins {
    fn put(&self, store: &impl Store, key: u32, until: Option<u64>) {
        let login = Login { user: (key % 7) as u8, until };
        store.transact(|txn| self.table.put(txn, &key, &login)).unwrap();
    }

    fn assert_sound(&self, store: &impl Store) {
        let snapshot = store.snapshot().unwrap();
        assert_eq!(self.expiry.index().check(&snapshot).unwrap(), []);
        assert_eq!(self.by_user.check(&snapshot).unwrap(), []);
    }
}

on_every_store! {
    histories::histories_agree_with_a_map,
    sweeps::sweeps_read_only_expired_records,
    sweeps::costs_are_those_of_the_documentation,
    sweeps::two_sweepers_remove_each_record_once,
    sweeps::sweeps_stop_and_resume,
    sweeps::touched_records_survive_a_concurrent_sweep,
    sweeps::damage_removes_no_live_record,
    sweeps::faults_leave_nothing_half_done,
}
