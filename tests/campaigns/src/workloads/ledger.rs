//! Several patterns in one transaction: money moves, and none may be lost on the way.

use std::collections::BTreeMap;

use fastrand::Rng;
use keyloom::{DynWriter, KeyBuf, Order, Reader, Result, Subspace, Writer};
use keyloom_patterns::{Index, Maintained, Table};
use serde::{Deserialize, Serialize};

use crate::Workload;
use crate::workload::WatchedBy;

/// Accounts, the transfers between them by number, an index of the transfers, and a counter.
#[derive(Clone)]
pub struct Ledger {
    accounts: Table<u8, i64>,
    transfers: Table<u64, Transfer>,
    by_account: Index<u64, Transfer, (u8, String)>,
    counter: KeyBuf,
}

/// Money moved from one account to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    from: u8,
    to: u8,
    amount: i64,
}

/// What should be there.
#[derive(Clone, Default)]
pub struct Books {
    accounts: BTreeMap<u8, i64>,
    transfers: Vec<Transfer>,
}

impl Ledger {
    /// In a subspace of its own.
    pub fn new() -> Self {
        let space = Subspace::new("ledger");
        let by_account = Index::new(&space.child("by_account"), |_, t: &Transfer| {
            [(t.from, "from"), (t.to, "to")].iter().collect()
        });
        Self {
            accounts: Table::new(&space.child("accounts")),
            transfers: Table::new(&space.child("transfers")).with(&by_account),
            by_account,
            counter: space.pack("counter"),
        }
    }

    /// The last transfers are kept, so that a store does not grow for ever.
    const KEPT: u64 = 100;
}

impl Workload for Ledger {
    type Operation = Transfer;
    type Model = Books;

    fn name(&self) -> &'static str {
        "ledger"
    }

    fn operation(&self, rng: &mut Rng) -> Transfer {
        let from = rng.u8(..10);
        Transfer { from, to: (from + rng.u8(1..10)) % 10, amount: rng.i64(1..1_000) }
    }

    fn perform(&self, transfer: &Transfer, txn: &mut DynWriter<'_>) -> Result<()> {
        let number = u64::try_from(txn.counter(&self.counter)?).unwrap_or_default();
        self.transfers.put(txn, &number, transfer)?;
        for (account, change) in [(transfer.from, -transfer.amount), (transfer.to, transfer.amount)]
        {
            let balance = self.accounts.get(txn, &account)?.unwrap_or_default();
            self.accounts.put(txn, &account, &(balance + change))?;
        }
        if let Some(old) = number.checked_sub(Self::KEPT) {
            self.transfers.delete(txn, &old)?;
        }
        txn.add(&self.counter, 1)
    }

    fn imitate(&self, transfer: &Transfer, books: &mut Books) {
        books.transfers.push(transfer.clone());
        *books.accounts.entry(transfer.from).or_default() -= transfer.amount;
        *books.accounts.entry(transfer.to).or_default() += transfer.amount;
    }

    /// Accounts and the counter are records too.
    fn watched_by(&self, key: &[u8], _: &[u8], _: &Books) -> WatchedBy {
        super::derived_in(self.name(), &["by_account"], key)
    }

    fn check(&self, txn: &DynWriter<'_>) -> Result<Vec<String>> {
        Ok(super::told(&self.by_account.check(txn, &self.transfers)?))
    }

    fn judge(&self, txn: &DynWriter<'_>, books: &Books) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        let accounts: BTreeMap<u8, i64> =
            self.accounts.range(txn, (), Order::Ascending)?.collect::<Result<_>>()?;
        super::compare(&mut wrong, "the sum of all accounts", accounts.values().sum(), 0);
        super::compare(&mut wrong, "the accounts", &accounts, &books.accounts);
        let transfers: Vec<(u64, Transfer)> =
            self.transfers.range(txn, (), Order::Ascending)?.collect::<Result<_>>()?;
        super::compare(&mut wrong, "the transfers", transfers, books.kept());
        let counted = txn.counter(&self.counter)?;
        super::compare(&mut wrong, "the counter", counted, books.transfers.len() as i64);
        Ok(wrong)
    }

    fn rebuild(&self, books: &Books, txn: &mut DynWriter<'_>) -> Result<()> {
        for (account, balance) in &books.accounts {
            self.accounts.put(txn, account, balance)?;
        }
        self.transfers.put_many(txn, books.kept())?;
        match books.transfers.len() {
            0 => Ok(()),
            some => txn.add(&self.counter, some as i64),
        }
    }
}

impl Books {
    fn kept(&self) -> Vec<(u64, Transfer)> {
        let all = (0..).zip(self.transfers.iter().cloned());
        all.skip(self.transfers.len().saturating_sub(Ledger::KEPT as usize)).collect()
    }
}
