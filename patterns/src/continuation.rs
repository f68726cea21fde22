//! Where a paged query goes on, in bytes that can be kept.

use keyloom::key::display;
use keyloom::{Error, KeyRange, Order, Result};

/// The format that this code writes.
const FORMAT: u8 = 1;

/// Where a paged query goes on. Its bytes can be stored or given to a client and taken back later.
///
/// A continuation names a key and not a count, so nothing is skipped or repeated, whatever is written
/// between two pages. It belongs to one query: given to another, it is refused.
///
/// | bytes | content |
/// |---|---|
/// | 1 | the format (1) |
/// | 1 | the order: 0 ascending, 1 descending |
/// | the rest | the key of the last entry |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continuation(Vec<u8>);

impl Continuation {
    pub(crate) fn behind(last: &[u8], order: Order) -> Self {
        Self([&[FORMAT, order_code(order)], last].concat())
    }

    /// The bytes to store.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Takes back what [`as_bytes`](Continuation::as_bytes) gave. Any bytes can be given: those that
    /// do not belong to the query are refused when it runs.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// What is left of `range` behind `after`, or all of it at the beginning.
    pub(crate) fn resume<'k>(
        after: Option<&'k Self>,
        range: KeyRange<'k>,
        order: Order,
    ) -> Result<KeyRange<'k>> {
        let Some(after) = after else { return Ok(range) };
        let last = after.last_key(&range, order)?;
        Ok(range.resume(order, last))
    }

    /// The key to go on behind, if it belongs to a query over `range` in `order`.
    fn last_key(&self, range: &KeyRange<'_>, order: Order) -> Result<&[u8]> {
        let refused = |why| Error::BadOption {
            what: "the continuation",
            value: display(self.0.get(2..).unwrap_or_default()).to_string(),
            why,
        };
        match self.0.as_slice() {
            [format, ..] if *format > FORMAT => Err(Error::NewerFormat {
                what: "the continuation".into(),
                found: (*format).into(),
                supported: FORMAT.into(),
            }),
            [FORMAT, code, ..] if *code != order_code(order) => {
                Err(refused("it belongs to the other order; begin the query anew"))
            }
            [FORMAT, _, last @ ..] if range.contains(last) => Ok(last),
            [FORMAT, _, ..] => Err(refused("it belongs to another query; begin this one anew")),
            _ => Err(refused("these bytes are no continuation")),
        }
    }
}

fn order_code(order: Order) -> u8 {
    match order {
        Order::Ascending => 0,
        Order::Descending => 1,
    }
}
