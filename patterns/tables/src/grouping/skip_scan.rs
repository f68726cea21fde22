//! The implementation of skip scans.

use keyloom::{Entry, KeyBuf, KeyRange, Order, Reader, Result, Unpack};
use keyloom_kit::{Explain, Left, Reading, Walk};

use super::Grouping;

/// A scan that returns one entry per group.
pub(crate) struct Groups<'r, R: Reader> {
    grouping: Grouping,
    walk: Walk<'r, R>,
    range: KeyRange<'static>,
    /// Whether to return the last entry of each group in scan order, instead of the first.
    far: bool,
    /// The group whose entry was returned last, if the scan has not left it yet.
    group: Option<KeyBuf>,
    /// The first entry of the next group, if it was read already.
    ahead: Option<Entry<R::Bytes<'r>>>,
}

impl<'r, R: Reader> Groups<'r, R> {
    pub(super) fn open(
        grouping: &Grouping,
        reader: &'r R,
        range: KeyRange<'static>,
        order: Order,
        far: bool,
    ) -> Result<Self> {
        let walk = Walk::open(reader, range.clone(), order)?;
        Ok(Self { grouping: grouping.clone(), walk, range, far, group: None, ahead: None })
    }

    /// The first entry of the next group in scan order.
    fn near(&mut self) -> Result<Option<Entry<R::Bytes<'r>>>> {
        if self.ahead.is_some() {
            return Ok(self.ahead.take());
        }
        match self.group.take() {
            None => self.walk.step(),
            Some(group) => {
                let rest = Grouping::behind(&self.range, &group, self.walk.order());
                self.walk.leave(rest)
            }
        }
    }

    /// The last entry, in scan order, of the group that begins with `near`. Afterwards the scan is
    /// after the group.
    fn far(&mut self, near: Entry<R::Bytes<'r>>) -> Result<Entry<R::Bytes<'r>>> {
        let group = KeyBuf::from_slice(self.grouping.prefix(&near.0)?);
        let rest = Grouping::behind(&self.range, &group, self.walk.order());
        let Left { passed, sought, next } = self.walk.left(rest)?;
        self.ahead = next;
        let far = match sought {
            false => passed,
            true => self.walk.other_end(Grouping::all_of(&self.range, &group))?,
        };
        Ok(far.unwrap_or(near))
    }

    /// The entry to return for the next group.
    pub(crate) fn one(&mut self) -> Result<Option<Entry<R::Bytes<'r>>>> {
        let Some(mut entry) = self.near()? else { return Ok(None) };
        match self.far {
            true => {
                entry = self.far(entry)?;
                // `ahead` holds the first entry of the next group. If it is empty, the scan has
                // ended.
                self.group = None;
            }
            false => self.group = Some(KeyBuf::from_slice(self.grouping.prefix(&entry.0)?)),
        }
        self.walk.explain.keys_returned += 1;
        Ok(Some(entry))
    }
}

impl<R: Reader> Groups<'_, R> {
    /// The elements of the next group.
    pub(crate) fn value<T: for<'k> Unpack<'k>>(&mut self) -> Result<Option<T>> {
        self.one()?.map(|(key, _)| self.grouping.group(&key)).transpose()
    }
}

impl<R: Reader> Reading for Groups<'_, R> {
    fn reads(&self) -> Explain {
        self.walk.explain
    }
}

/// A scan over the entries, in every group, whose keys continue with the same elements.
pub(super) struct InEach<'r, R: Reader> {
    pub(super) grouping: Grouping,
    pub(super) walk: Walk<'r, R>,
    pub(super) range: KeyRange<'static>,
    /// The packed elements after those of the group.
    pub(super) rest: KeyBuf,
}

impl<'r, R: Reader> InEach<'r, R> {
    /// The next entry.
    pub(super) fn one(&mut self) -> Result<Option<Entry<R::Bytes<'r>>>> {
        let order = self.walk.order();
        let mut met = self.walk.step()?;
        while let Some(entry) = met {
            let group = KeyBuf::from_slice(self.grouping.prefix(&entry.0)?);
            let target: KeyBuf = group.iter().chain(&self.rest).copied().collect();
            if KeyRange::self_and_children(&target).contains(&entry.0) {
                self.walk.explain.keys_returned += 1;
                return Ok(Some(entry));
            }
            let is_before = match order {
                Order::Ascending => *entry.0 < target[..],
                Order::Descending => *entry.0 > target[..],
            };
            let rest = match is_before {
                true => Grouping::from(&self.range, &target, order),
                false => Grouping::behind(&self.range, &group, order),
            };
            met = self.walk.leave(rest)?;
        }
        Ok(None)
    }
}

impl<R: Reader> Reading for InEach<'_, R> {
    fn reads(&self) -> Explain {
        self.walk.explain
    }
}
