//! The same keys and values, written by hand on raw heed.

use std::path::Path;

use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, RoPrefix, RoTxn, RwTxn, WithoutTls};
use keyloom::value::{Codec, Postcard};
use keyloom::{KeyBuf, pack, unpack};
use keyloom_compare::peers::raw_lmdb;

use super::{Peer, Sale};

/// One database with the keys and values that keyloom writes; the difference is the overhead of the
/// patterns.
pub struct ByHand {
    env: Env<WithoutTls>,
    database: Database<'static, Bytes, Bytes>,
}

const BY_CUSTOMER: (u8, u8) = (1, 2);
const BY_STATE: (u8, u8) = (1, 3);
const SALES: (u8, u8) = (1, 4);

/// What keyloom writes as the value of an entry: the format, the length of the record key, and the
/// covered fields.
fn entry_value(id: u64, covered: &[u8]) -> EntryValue {
    let header = (1 << 12 | pack(&id).len() as u16).to_be_bytes();
    header.iter().chain(covered).copied().collect()
}

type EntryValue = smallvec::SmallVec<[u8; 16]>;

fn entries(id: u64, sale: &Sale) -> [(KeyBuf, EntryValue); 2] {
    let (by_customer, by_state) = (BY_CUSTOMER, BY_STATE);
    [
        (
            pack(&(by_customer.0, by_customer.1, sale.customer, sale.at, id)),
            entry_value(id, &pack(&sale.cents)),
        ),
        (pack(&(by_state.0, by_state.1, sale.state, sale.cents, id)), entry_value(id, &[])),
    ]
}

fn sale_key(id: u64) -> KeyBuf {
    pack(&(SALES.0, SALES.1, id))
}

/// Key of an entry by customer, and of an entry by state.
type ByCustomer = (u8, u8, u32, u64, u64);
type ByState = (u8, u8, u16, u64, u64);

impl ByHand {
    fn insert_one(&self, txn: &mut RwTxn<'_>, id: u64, sale: &Sale, bytes: &mut Vec<u8>) {
        let key = sale_key(id);
        if let Some(old) = self.database.get(txn, &key).unwrap() {
            let old: Sale = <Postcard as Codec<Sale>>::decode(old).unwrap();
            for (entry, _) in entries(id, &old) {
                self.database.delete(txn, &entry).unwrap();
            }
        }
        for (entry, value) in entries(id, sale) {
            self.database.put(txn, &entry, &value).unwrap();
        }
        bytes.clear();
        <Postcard as Codec<Sale>>::encode(sale, bytes).unwrap();
        self.database.put(txn, &key, bytes).unwrap();
    }

    fn of_customer<'t>(
        &self,
        txn: &'t RoTxn<'_, WithoutTls>,
        customer: u32,
    ) -> RoPrefix<'t, Bytes, Bytes> {
        let prefix = pack(&(BY_CUSTOMER.0, BY_CUSTOMER.1, customer));
        self.database.prefix_iter(txn, &prefix).unwrap()
    }
}

impl Peer for ByHand {
    fn open(directory: &Path) -> Self {
        let (env, database) = raw_lmdb(directory, 4 << 30, EnvFlags::empty());
        Self { env, database }
    }

    fn insert(&mut self, records: &[(u64, Sale)]) {
        let mut txn = self.env.write_txn().unwrap();
        let mut bytes = Vec::new();
        for (id, sale) in records {
            self.insert_one(&mut txn, *id, sale, &mut bytes);
        }
        txn.commit().unwrap();
    }

    fn load(&mut self, records: &[(u64, Sale)]) {
        self.insert(records);
    }

    fn covered(&mut self, customer: u32) -> u64 {
        let txn = self.env.read_txn().unwrap();
        let found = self.of_customer(&txn, customer);
        found.map(|entry| unpack::<u64>(&entry.unwrap().1[2..]).unwrap()).sum()
    }

    fn of_state(&mut self, state: u16) -> u64 {
        let txn = self.env.read_txn().unwrap();
        let prefix = pack(&(BY_STATE.0, BY_STATE.1, state));
        let found = self.database.prefix_iter(&txn, &prefix).unwrap();
        found.map(|entry| unpack::<ByState>(entry.unwrap().0).unwrap().3).sum()
    }

    fn fetched(&mut self, customer: u32) -> u64 {
        let txn = self.env.read_txn().unwrap();
        let mut sum = 0;
        for entry in self.of_customer(&txn, customer) {
            let (.., id) = unpack::<ByCustomer>(entry.unwrap().0).unwrap();
            let bytes = self.database.get(&txn, &sale_key(id)).unwrap().unwrap();
            let sale: Sale = <Postcard as Codec<Sale>>::decode(bytes).unwrap();
            sum += sale.note.len() as u64;
        }
        sum
    }
}
