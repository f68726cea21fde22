//! Anomalies of a history, which no serial order of its transactions explains.

use std::fmt;

use crate::history::{Element, List};

/// The kinds of anomalies, with Adya's names where they exist.
///
/// A cycle of a `RealTime` variant needs an edge of real time: the transactions are serializable,
/// but not in an order that agrees with the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// An acknowledged append is missing at the end.
    LostAppend,
    /// An element occurs twice.
    DoubledAppend,
    /// A list contains an element that no transaction appended to it.
    Unwritten,
    /// G1a: a write of an aborted transaction was read.
    G1a,
    /// G1b: a part of the appends of one transaction to a list was read.
    G1b,
    /// Two reads of one list, neither of which is a prefix of the other.
    IncompatibleOrder,
    /// A transaction does not read its own writes, or reads the same data twice with different
    /// results.
    Internal,
    /// Two transactions appended to the same version of a list.
    LostUpdate,
    /// At the end, a mark does not agree with its list.
    MarkAstray,
    /// A cycle of write-write dependencies.
    G0,
    /// A cycle of write-write and write-read dependencies.
    G1c,
    /// A cycle with one anti-dependency (read-write), for example read skew.
    GSingle,
    /// A cycle with several anti-dependencies on keys: write skew.
    G2Item,
    /// A cycle with several anti-dependencies, at least one of them on a key that a range read
    /// found absent: a phantom.
    G2,
    G0RealTime,
    G1cRealTime,
    GSingleRealTime,
    G2ItemRealTime,
    G2RealTime,
}

impl Name {
    /// Whether the transactions are serializable despite the anomaly.
    pub fn is_of_real_time(self) -> bool {
        self >= Self::G0RealTime
    }

    /// Whether PostgreSQL is known to allow the anomaly when it fails to detect a conflict of a
    /// long transaction: several anti-dependencies in a cycle that real time closes
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

/// The reason why one transaction must come before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edge {
    /// The other transaction appended after its element.
    WriteWrite(List),
    /// The other transaction read its element.
    WriteRead(List),
    /// The other transaction appended an element that it did not read.
    ReadWrite(List),
    /// The other transaction created or deleted a key that its range read found absent.
    Phantom(List),
    /// It had ended before the other transaction began.
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

/// One anomaly. Transactions are given by their positions in the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Anomaly {
    /// A fault of one element of one list.
    Element { name: Name, list: List, element: Element, transactions: Vec<usize> },
    /// Two observations of one list (or of its mark) that contradict each other.
    Sights { name: Name, list: List, transactions: Vec<usize>, sights: [Vec<Element>; 2] },
    /// Each transaction must come before the next one, and the last one before the first.
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

    /// The transactions that take part in the anomaly.
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

/// The transactions of an anomaly in readable form.
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
