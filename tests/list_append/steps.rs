//! The steps of the transactions of the workload.

use std::ops::Range;
use std::thread;

use fastrand::Rng;
use keyloom::{Order, Reader, Result, Writer};

use crate::elements::Elements;
use crate::history::{Element, List, Mark, Operation};
use crate::keys::Keys;

/// One intended step. After an abort the same steps are tried again, with other elements.
#[derive(Clone, Debug)]
pub enum Step {
    Append(List, Mark),
    Read(List),
    ReadMany(Vec<List>),
    ReadRange(Range<List>, Order),
    ReadMarks(Range<List>, Order),
    /// Deletes all marks of a range, and records this in their lists.
    Sweep(Range<List>),
}

/// The number of lists that are in use at any time.
const OPEN: List = 6;

/// The approximate length of a list. Shorter lists are read faster, and more of them are created;
/// each creation is a phantom for concurrent range reads.
const LENGTH: u64 = 32;

impl Step {
    /// One to four steps on the lists that are in use after `appended` elements.
    pub fn choose(rng: &mut Rng, appended: u64) -> Vec<Self> {
        let first = List::try_from(appended / LENGTH).unwrap() + 1;
        let reads_only = rng.u8(..6) == 0;
        let steps = rng.usize(1..=4);
        (0..steps).map(|_| Self::one(rng, first, reads_only)).collect()
    }

    fn one(rng: &mut Rng, first: List, reads_only: bool) -> Self {
        let list = rng.u32(first..first + OPEN);
        let order = if rng.bool() { Order::Ascending } else { Order::Descending };
        match rng.u8(if reads_only { 10..20 } else { 0..20 }) {
            0..7 => {
                // Every second list has a mark, which every append sets or deletes.
                let mark = match (list % 2, rng.bool()) {
                    (0, _) => Mark::Left,
                    (_, true) => Mark::Set,
                    (_, false) => Mark::Deleted,
                };
                Self::Append(list, mark)
            }
            7..10 => Self::Sweep(range(rng, first)),
            10..13 => Self::Read(list),
            13..15 => {
                let mut lists: Vec<_> = (list..list + rng.u32(2..=4)).collect();
                rng.shuffle(&mut lists);
                Self::ReadMany(lists)
            }
            15..18 => Self::ReadRange(range(rng, first), order),
            _ => Self::ReadMarks(range(rng, first), order),
        }
    }

    pub fn reads_only(&self) -> bool {
        !matches!(self, Self::Append(..) | Self::Sweep(_))
    }
}

/// A few neighbouring lists, including the next ones that do not exist yet.
fn range(rng: &mut Rng, first: List) -> Range<List> {
    let start = rng.u32(first - 1..first + OPEN);
    start..start + rng.u32(1..=3)
}

/// Records each step before it runs, because the steps of an aborted attempt count, too.
#[derive(Debug)]
pub struct Scribe<'a> {
    pub keys: &'a Keys,
    pub elements: &'a Elements,
    pub operations: &'a mut Vec<Operation>,
    pub rng: &'a mut Rng,
}

/// Runs the steps of a transaction.
pub fn perform_all(steps: &[Step], txn: &mut impl Writer, scribe: &mut Scribe<'_>) -> Result<()> {
    for step in steps {
        scribe.let_others_in();
        match step {
            Step::Append(list, mark) => scribe.append(txn, *list, *mark)?,
            Step::Sweep(lists) => scribe.sweep(txn, lists)?,
            reading => scribe.read(txn, reading)?,
        }
    }
    scribe.let_others_in();
    Ok(())
}

/// Runs the steps on a snapshot.
pub fn read_all(steps: &[Step], snapshot: &impl Reader, scribe: &mut Scribe<'_>) -> Result<()> {
    for step in steps {
        scribe.let_others_in();
        scribe.read(snapshot, step)?;
    }
    Ok(())
}

impl Scribe<'_> {
    /// Yields to other threads, because transactions are so short that, on few cores, most would
    /// run alone.
    fn let_others_in(&mut self) {
        if self.rng.bool() {
            thread::yield_now();
        }
    }

    /// Notes the elements that others appended.
    fn seen(&self, found: Vec<Element>) -> Vec<Element> {
        found.last().into_iter().for_each(|last| self.elements.see(*last));
        found
    }

    fn append(&mut self, txn: &mut impl Writer, list: List, mark: Mark) -> Result<()> {
        let element = self.lengthen(txn, list, mark)?;
        match mark {
            Mark::Left => Ok(()),
            Mark::Set => txn.put(&self.keys.mark_of(list), &element.to_be_bytes()),
            Mark::Deleted => txn.delete(&self.keys.mark_of(list)),
        }
    }

    fn sweep(&mut self, txn: &mut impl Writer, lists: &Range<List>) -> Result<()> {
        for (list, _) in self.marks(txn, lists, Order::Ascending)? {
            self.lengthen(txn, list, Mark::Deleted)?;
        }
        // This also deletes a mark that was set since, without a record in its list.
        txn.delete_range(self.keys.marks(lists))
    }

    /// Appends to the list: reads the list, and puts it with one more element.
    fn lengthen(&mut self, txn: &mut impl Writer, list: List, mark: Mark) -> Result<Element> {
        let key = self.keys.list(list);
        let mut value = txn.get(&key)?.map_or(Vec::new(), |value| value.to_vec());
        let found = self.seen(Keys::elements(&value));
        let element = self.elements.take();
        self.operations.push(Operation::Append { list, found, element, mark });
        self.let_others_in();
        value.extend(element.to_be_bytes());
        txn.put(&key, &value)?;
        Ok(element)
    }

    fn read(&mut self, reader: &impl Reader, step: &Step) -> Result<()> {
        match step {
            Step::Read(list) => {
                let found = reader.get(&self.keys.list(*list))?;
                self.found(*list, found.as_deref());
            }
            Step::ReadMany(lists) => {
                let keys: Vec<_> = lists.iter().map(|list| self.keys.list(*list)).collect();
                let values = reader.get_many(&keys)?;
                assert_eq!(values.len(), lists.len(), "one answer for each key");
                for (list, value) in lists.iter().zip(&values) {
                    self.found(*list, value.as_deref());
                }
            }
            Step::ReadRange(lists, order) => {
                let mut found = Vec::new();
                for entry in reader.range(self.keys.lists(lists), *order)? {
                    let (key, value) = entry?;
                    found.push((self.keys.list_of(&key), self.seen(Keys::elements(&value))));
                }
                self.operations.push(Operation::ReadRange { lists: lists.clone(), found });
            }
            Step::ReadMarks(lists, order) => drop(self.marks(reader, lists, *order)?),
            Step::Append(..) | Step::Sweep(_) => {}
        }
        Ok(())
    }

    fn found(&mut self, list: List, value: Option<&[u8]>) {
        let found = self.seen(Keys::elements(value.unwrap_or_default()));
        self.operations.push(Operation::Read { list, found });
    }

    fn marks(
        &mut self,
        reader: &impl Reader,
        lists: &Range<List>,
        order: Order,
    ) -> Result<Vec<(List, Element)>> {
        let mut found = Vec::new();
        for entry in reader.range(self.keys.marks(lists), order)? {
            let (key, value) = entry?;
            found.push((self.keys.list_of(&key), Keys::mark(&value)));
        }
        self.operations.push(Operation::ReadMarks { lists: lists.clone(), found: found.clone() });
        Ok(found)
    }
}
