//! Several patterns in one transaction: money is transferred, and no amount may be lost.

use std::collections::BTreeMap;

use fastrand::Rng;
use keyloom::{DynWriter, Memory, Reader, Result, Subspace, Writer};
use keyloom_patterns::{Attached, Index, Schema, Table};
use serde::{Deserialize, Serialize};

use crate::Workload;

/// Accounts, the transfers between them by number, an index of the transfers, and a counter.
#[derive(Clone)]
pub struct Ledger {
    accounts: Table<u8, i64>,
    transfers: Table<u64, Transfer>,
    by_account: Attached<Index<u64, Transfer, (u8, String)>>,
    counter: Subspace,
}

/// Money moved from one account to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    from: u8,
    to: u8,
    amount: i64,
}

/// The expected data.
#[derive(Clone, Default)]
pub struct Books {
    accounts: BTreeMap<u8, i64>,
    transfers: Vec<Transfer>,
}

impl Ledger {
    pub fn new(schema: &Schema<'_, Memory>) -> Result<Self> {
        let transfers = schema.table("transfers")?;
        let by_account = schema.index(&transfers, "by_account", 1, |_, t: &Transfer| {
            [(t.from, "from"), (t.to, "to")].iter().collect()
        })?;
        let accounts = schema.table("accounts")?;
        Ok(Self { accounts, transfers, by_account, counter: Subspace::new(&("ledger", "counter")) })
    }

    /// The number of transfers that are kept, so that the store does not grow forever.
    const KEPT: u64 = 100;
}

impl Workload for Ledger {
    type Operation = Transfer;
    type Model = Books;

    fn name(&self) -> &'static str {
        "ledger"
    }

    fn records(&self) -> Vec<Subspace> {
        // The counter is a record, too.
        let tables = [self.accounts.space(), self.transfers.space(), &self.counter];
        tables.map(Subspace::clone).into()
    }

    fn derived(&self) -> Vec<Subspace> {
        vec![self.by_account.space()]
    }

    fn operation(&self, rng: &mut Rng) -> Transfer {
        let from = rng.u8(..10);
        Transfer { from, to: (from + rng.u8(1..10)) % 10, amount: rng.i64(1..1_000) }
    }

    fn perform(&self, transfer: &Transfer, txn: &mut DynWriter<'_>) -> Result<()> {
        let number = u64::try_from(txn.counter(self.counter.prefix())?).unwrap_or_default();
        self.transfers.put(txn, &number, transfer)?;
        for (account, change) in [(transfer.from, -transfer.amount), (transfer.to, transfer.amount)]
        {
            let balance = self.accounts.get(txn, &account)?.unwrap_or_default();
            self.accounts.put(txn, &account, &(balance + change))?;
        }
        if let Some(old) = number.checked_sub(Self::KEPT) {
            self.transfers.delete(txn, &old)?;
        }
        txn.add(self.counter.prefix(), 1)
    }

    fn imitate(&self, transfer: &Transfer, books: &mut Books) {
        books.transfers.push(transfer.clone());
        *books.accounts.entry(transfer.from).or_default() -= transfer.amount;
        *books.accounts.entry(transfer.to).or_default() += transfer.amount;
    }

    fn check(&self, txn: &DynWriter<'_>) -> Result<Vec<String>> {
        Ok(super::reported(&self.by_account.check(txn)?))
    }

    fn judge(&self, txn: &DynWriter<'_>, books: &Books) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        let accounts: BTreeMap<u8, i64> = self.accounts.range(txn, ..)?.collect::<Result<_>>()?;
        super::compare(&mut wrong, "the sum of all accounts", accounts.values().sum(), 0);
        super::compare(&mut wrong, "the accounts", &accounts, &books.accounts);
        let transfers: Vec<(u64, Transfer)> =
            self.transfers.range(txn, ..)?.collect::<Result<_>>()?;
        super::compare(&mut wrong, "the transfers", transfers, books.kept());
        let counted = txn.counter(self.counter.prefix())?;
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
            some => txn.add(self.counter.prefix(), some as i64),
        }
    }
}

impl Books {
    fn kept(&self) -> Vec<(u64, Transfer)> {
        let all = (0..).zip(self.transfers.iter().cloned());
        all.skip(self.transfers.len().saturating_sub(Ledger::KEPT as usize)).collect()
    }
}
