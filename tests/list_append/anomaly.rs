//! What a history may show that no serial order of its transactions explains.

use std::fmt;

use crate::history::{Element, List};

/// The kinds of anomalies, with the names that Adya gave them, where he gave one.
///
/// Of the kinds with a cycle, a `RealTime` variant needs an edge of real time to close: the
/// transactions are serializable, but not in an order that agrees with the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// An acknowledged append is not there at the end.
    LostAppend,
    /// An element is there twice.
    DoubledAppend,
    /// An element that no transaction appended to this list.
    Unwritten,
    /// G1a: what an aborted transaction wrote was seen.
    G1a,
    /// G1b: a part of what one transaction appended to a list was seen.
    G1b,
    /// Two readings of one list, neither of which continues the other.
    IncompatibleOrder,
    /// A transaction does not see its own writes, or reads the same thing twice and differently.
    Internal,
    /// Two transactions appended to the same version of a list.
    LostUpdate,
    /// A mark is not what its list says, at the end.
    MarkAstray,
    /// A cycle of writes over writes.
    G0,
    /// A cycle of writes over writes, and reads of writes.
    G1c,
    /// A cycle with one write over a read: read skew, for one.
    GSingle,
    /// A cycle with several writes over reads of keys: write skew.
    G2Item,
    /// A cycle with several writes over reads, of which one read a range, and the key was not
    /// there yet: a phantom.
    G2,
    G0RealTime,
    G1cRealTime,
    GSingleRealTime,
    G2ItemRealTime,
    G2RealTime,
}

impl Name {
    /// Whether the transactions are serializable in spite of it.
    pub fn is_of_real_time(self) -> bool {
        self >= Self::G0RealTime
    }

    /// Whether it is what PostgreSQL lets through when it forgets a conflict of a transaction that
    /// is open for long: several reads that were overwritten, closed by the clock
    /// (`tests/on_servers/tests/postgres/forgotten_conflict.sh`).
    pub fn is_of_forgotten_conflict(self) -> bool {
        matches!(self, Self::G2ItemRealTime | Self::G2RealTime)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LostAppend => "lost append",
            Self::DoubledAppend => "doubled append",
            Self::Unwritten => "unwritten element",
            Self::G1a => "G1a (aborted read)",
            Self::G1b => "G1b (intermediate read)",
            Self::IncompatibleOrder => "incompatible order",
            Self::Internal => "internal inconsistency",
            Self::LostUpdate => "lost update",
            Self::MarkAstray => "mark astray",
            Self::G0 => "G0 (write cycle)",
            Self::G1c => "G1c (circular information flow)",
            Self::GSingle => "G-single (read skew)",
            Self::G2Item => "G2-item (write skew)",
            Self::G2 => "G2 (phantom)",
            Self::G0RealTime => "G0-realtime",
            Self::G1cRealTime => "G1c-realtime",
            Self::GSingleRealTime => "G-single-realtime",
            Self::G2ItemRealTime => "G2-item-realtime",
            Self::G2RealTime => "G2-realtime",
        })
    }
}

/// Why one transaction must come before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edge {
    /// The other appended behind its element.
    WriteWrite(List),
    /// The other saw its element.
    WriteRead(List),
    /// The other appended what it did not see yet.
    ReadWrite(List),
    /// The other created, or deleted, what its reading of a range found absent.
    Phantom(List),
    /// It had ended before the other began.
    RealTime,
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WriteWrite(list) => write!(f, "ww on list {list}"),
            Self::WriteRead(list) => write!(f, "wr on list {list}"),
            Self::ReadWrite(list) => write!(f, "rw on list {list}"),
            Self::Phantom(list) => write!(f, "rw on list {list}, absent in a range"),
            Self::RealTime => f.write_str("real time"),
        }
    }
}

/// One anomaly. Transactions are meant by their position in the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Anomaly {
    /// Something wrong about one element of one list.
    Element { name: Name, list: List, element: Element, transactions: Vec<usize> },
    /// Two sights of one list (or of its mark) that exclude each other.
    Sights { name: Name, list: List, transactions: Vec<usize>, sights: [Vec<Element>; 2] },
    /// Each transaction must come before the next, and the last before the first.
    Cycle { name: Name, steps: Vec<(usize, Edge)> },
}

impl Anomaly {
    pub fn name(&self) -> Name {
        match self {
            Self::Element { name, .. } | Self::Sights { name, .. } | Self::Cycle { name, .. } => {
                *name
            }
        }
    }

    /// The transactions that show it.
    pub fn transactions(&self) -> Vec<usize> {
        match self {
            Self::Element { transactions, .. } | Self::Sights { transactions, .. } => {
                transactions.clone()
            }
            Self::Cycle { steps, .. } => {
                steps.iter().map(|(transaction, _)| *transaction).collect()
            }
        }
    }
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Element { name, list, element, transactions } => {
                write!(f, "{name}: element {element} of list {list}, {}", Named(transactions))
            }
            Self::Sights { name, list, transactions, sights: [one, other] } => {
                write!(f, "{name}: list {list}, {one:?} and {other:?}, {}", Named(transactions))
            }
            Self::Cycle { name, steps } => {
                write!(f, "{name}:")?;
                for (transaction, edge) in steps {
                    write!(f, " T{transaction} -({edge})->")?;
                }
                steps.first().map_or(Ok(()), |(first, _)| write!(f, " T{first}"))
            }
        }
    }
}

/// The transactions of an anomaly, in words.
struct Named<'a>(&'a [usize]);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("seen at the end");
        }
        f.write_str("by")?;
        self.0.iter().try_for_each(|transaction| write!(f, " T{transaction}"))
    }
}
