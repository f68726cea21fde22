//! The data that the writers of a campaign write, and their invariants.

use std::collections::BTreeMap;
use std::ops::Range;

use keyloom::key::Subspace;
use keyloom::{KeyBuf, Reader, Result, Writer};
use keyloom_tables::{Inconsistency, Index, Maintained, Table, entry};
use serde::{Deserialize, Serialize};

/// A writer and the number of one of its transactions, counted from 0.
pub type Number = (u32, u32);

/// The contents of the transaction with a [`Number`]: money moved from one account to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    pub from: u16,
    pub to: u16,
    pub amount: i64,
    /// The run of the transaction's body that wrote this.
    pub run: u32,
}

#[derive(Clone)]
pub struct Ledger {
    space: Subspace,
    transfers: Table<Number, Transfer>,
    by_account: Index<Number, Transfer, (u16, i64)>,
    accounts: Table<u16, i64>,
    counters: Subspace,
    number_of_accounts: u16,
}

/// The contents of a ledger in one snapshot.
pub struct Seen {
    pub transfers: BTreeMap<Number, Transfer>,
    accounts: Vec<(u16, i64)>,
    counted: i64,
    faults: Vec<Inconsistency>,
}

impl Ledger {
    const AT_FIRST: i64 = 1_000;
    /// A single counter would conflict for every pair of writers, and would hide other faults.
    const COUNTERS: u32 = 4;

    pub fn new(space: &Subspace, number_of_accounts: u16) -> Self {
        let by_account =
            Index::new(&space.child("by_account"), |_, t: &Transfer| entry((t.from, t.amount)));
        Self {
            transfers: Table::new(&space.child("transfers")).with(&by_account),
            by_account,
            accounts: Table::new(&space.child("accounts")),
            counters: space.child("counters"),
            space: space.clone(),
            number_of_accounts,
        }
    }

    /// Deletes everything and resets the accounts.
    pub fn reset(&self, txn: &mut impl Writer) -> Result<()> {
        txn.delete_range(self.space.range())?;
        (0..self.number_of_accounts)
            .try_for_each(|account| self.accounts.put(txn, &account, &Self::AT_FIRST))
    }

    /// A random transfer, different for each run.
    pub fn invent(&self, run: u32) -> Transfer {
        let from = fastrand::u16(0..self.number_of_accounts);
        let apart = fastrand::u16(1..self.number_of_accounts);
        let to = (from + apart) % self.number_of_accounts;
        Transfer { from, to, amount: fastrand::i64(1..10), run }
    }

    pub fn find(&self, reader: &impl Reader, number: Number) -> Result<Option<Transfer>> {
        self.transfers.get(reader, &number)
    }

    /// Executes a transfer in several writes, so that a partial commit is detectable.
    pub fn write(&self, txn: &mut impl Writer, number: Number, transfer: &Transfer) -> Result<()> {
        let balance =
            |txn: &_, account| self.accounts.get(txn, account).map(Option::unwrap_or_default);
        let from = balance(txn, &transfer.from)? - transfer.amount;
        self.accounts.put(txn, &transfer.from, &from)?;
        self.transfers.put(txn, &number, transfer)?;
        txn.add(&self.counter(number.1 % Self::COUNTERS), 1)?;
        let to = balance(txn, &transfer.to)? + transfer.amount;
        self.accounts.put(txn, &transfer.to, &to)
    }

    pub fn look(&self, reader: &impl Reader) -> Result<Seen> {
        let counters = (0..Self::COUNTERS).map(|n| reader.counter(&self.counter(n)));
        Ok(Seen {
            counted: counters.sum::<Result<_>>()?,
            transfers: self.transfers.range(reader, ..)?.collect::<Result<_>>()?,
            accounts: self.accounts.range(reader, ..)?.collect::<Result<_>>()?,
            faults: self.by_account.check(reader, &self.transfers)?,
        })
    }

    /// The violations in a snapshot. For each writer, `expected` is the range of its possible
    /// transaction counts.
    pub fn judge(&self, seen: &Seen, expected: &[Range<u32>]) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut claim = |holds: bool, what: &dyn Fn() -> String| {
            if !holds {
                wrong.push(what());
            }
        };
        let transfers = seen.transfers.len();
        claim(usize::try_from(seen.counted).is_ok_and(|counted| counted == transfers), &|| {
            format!("the counters say {}, but there are {transfers} transfers", seen.counted)
        });
        claim(seen.faults.is_empty(), &|| format!("the index: {}", seen.faults[0]));

        let mut replayed: BTreeMap<u16, i64> =
            (0..self.number_of_accounts).map(|account| (account, Self::AT_FIRST)).collect();
        for transfer in seen.transfers.values() {
            *replayed.entry(transfer.from).or_default() -= transfer.amount;
            *replayed.entry(transfer.to).or_default() += transfer.amount;
        }
        let sum = seen.accounts.iter().map(|(_, balance)| balance).sum::<i64>();
        let at_first = Self::AT_FIRST * i64::from(self.number_of_accounts);
        claim(sum == at_first, &|| format!("the accounts hold {sum} instead of {at_first}"));
        claim(
            replayed.iter().eq(seen.accounts.iter().map(|(account, balance)| (account, balance))),
            &|| "the accounts do not hold what the transfers have moved".into(),
        );

        let of_writer = |writer, expected: &Range<u32>| {
            let numbers =
                seen.transfers.range((writer, 0)..=(writer, u32::MAX)).map(|((_, n), _)| *n);
            let numbers: Vec<u32> = numbers.collect();
            let gap =
                (0..).zip(&numbers).find(|(wanted, n)| wanted != *n).map(|(wanted, _)| wanted);
            let there = u32::try_from(numbers.len()).unwrap();
            match gap {
                Some(lost) => Some(format!("transaction {lost} of writer {writer} is lost")),
                None if there < expected.start => Some(format!(
                    "of writer {writer}, {} transactions were acknowledged, but {there} are there",
                    expected.start
                )),
                None if there > expected.end => Some(format!(
                    "of writer {writer}, {} transactions were tried, but {there} are there",
                    expected.end
                )),
                None => None,
            }
        };
        wrong.extend((0..).zip(expected).filter_map(|(writer, range)| of_writer(writer, range)));
        wrong
    }

    fn counter(&self, n: u32) -> KeyBuf {
        self.counters.pack(&n)
    }
}
