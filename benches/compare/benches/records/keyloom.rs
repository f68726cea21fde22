//! The records in a `Table` with two indexes, on LMDB.

use std::path::Path;

use keyloom::{Lmdb, Order, Store, Subspace};
use keyloom_patterns::{Index, Table, entry};

use super::{Peer, Sale};

pub struct Ours {
    pub store: Lmdb,
    pub sales: Table<u64, Sale>,
    pub by_customer: Index<u64, Sale, (u32, u64)>,
    pub by_state: Index<u64, Sale, (u16, u64)>,
}

impl Peer for Ours {
    fn open(directory: &Path) -> Self {
        let store = Lmdb::options().map_bytes(4 << 30).open(directory).unwrap();
        let space = Subspace::new(&1_u8);
        let by_customer = Index::new(&space.child(&2_u8), |_, sale: &Sale| {
            entry((sale.customer, sale.at)).covering(sale.cents)
        });
        let by_state =
            Index::new(&space.child(&3_u8), |_, sale: &Sale| entry((sale.state, sale.cents)));
        let sales = Table::new(&space.child(&4_u8)).with(&by_customer).with(&by_state);
        Self { store, sales, by_customer, by_state }
    }

    fn insert(&mut self, records: &[(u64, Sale)]) {
        let sales = &self.sales;
        self.store
            .transact(|txn| records.iter().try_for_each(|(id, sale)| sales.put(txn, id, sale)))
            .unwrap();
    }

    fn load(&mut self, records: &[(u64, Sale)]) {
        self.store.transact(|txn| self.sales.put_many(txn, records)).unwrap();
    }

    fn covered(&mut self, customer: u32) -> u64 {
        let snapshot = self.store.snapshot().unwrap();
        let found = self.by_customer.range(&snapshot, customer).unwrap();
        found.map(|found| found.unwrap().covered::<u64>().unwrap()).sum()
    }

    fn of_state(&mut self, state: u16) -> u64 {
        let snapshot = self.store.snapshot().unwrap();
        let found = self.by_state.range(&snapshot, state).unwrap();
        found.map(|found| found.unwrap().parts().unwrap().1).sum()
    }

    fn fetched(&mut self, customer: u32) -> u64 {
        let snapshot = self.store.snapshot().unwrap();
        let order = Order::Ascending;
        let page = self
            .by_customer
            .query()
            .prefix(customer)
            .order(order)
            .limit(1_000)
            .records(&snapshot, &self.sales)
            .unwrap();
        page.items.iter().map(|(_, sale)| sale.note.len() as u64).sum()
    }
}
