//! The iterators of skip scans.

use std::fmt;
use std::marker::PhantomData;

use keyloom::{Entry, KeyBuf, KeyRange, Order, Reader, Result, Unpack};

use super::grouping::Grouping;
use crate::explain::Explain;
use crate::walk::{Left, Walk};

/// One entry per group: what [`Grouping::first_of_each`] and [`Grouping::last_of_each`] return.
pub struct Groups<'r, R: Reader> {
    grouping: Grouping,
    walk: Walk<'r, R>,
    range: KeyRange<'static>,
    /// Whether the end of a group is asked for that the walk meets last.
    far: bool,
    /// The group that was returned last and is still to be left behind.
    group: Option<KeyBuf>,
    /// The first entry of the next group, where it was met already.
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

    /// What the scan has read so far.
    pub fn explain(&self) -> Explain {
        self.walk.explain
    }

    /// The first entry of the next group that the walk meets.
    fn near(&mut self) -> Result<Option<Entry<R::Bytes<'r>>>> {
        if self.ahead.is_some() {
            return Ok(self.ahead.take());
        }
        match self.group.take() {
            None => self.walk.step(),
            Some(group) => {
                let rest = Grouping::behind(&self.range, &group, self.walk.order());
                Ok(self.walk.leave(rest)?.next)
            }
        }
    }

    /// The other end of the group that begins with `near`; the walk is behind it then.
    fn far(&mut self, near: Entry<R::Bytes<'r>>) -> Result<Entry<R::Bytes<'r>>> {
        let group = KeyBuf::from_slice(self.grouping.prefix(&near.0)?);
        let rest = Grouping::behind(&self.range, &group, self.walk.order());
        let Left { passed, sought, next } = self.walk.leave(rest)?;
        self.ahead = next;
        let far = match sought {
            false => passed,
            true => self.walk.other_end(Grouping::all_of(&self.range, &group))?,
        };
        Ok(far.unwrap_or(near))
    }

    fn one(&mut self) -> Result<Option<Entry<R::Bytes<'r>>>> {
        let Some(mut entry) = self.near()? else { return Ok(None) };
        match self.far {
            true => {
                entry = self.far(entry)?;
                // Where nothing is ahead there is nothing at all.
                self.group = None;
            }
            false => self.group = Some(KeyBuf::from_slice(self.grouping.prefix(&entry.0)?)),
        }
        self.walk.explain.keys_returned += 1;
        Ok(Some(entry))
    }
}

impl<'r, R: Reader> Iterator for Groups<'r, R> {
    type Item = Result<Entry<R::Bytes<'r>>>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.one();
        if next.is_err() {
            self.walk.end();
            (self.group, self.ahead) = (None, None);
        }
        next.transpose()
    }
}

impl<R: Reader> fmt::Debug for Groups<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Groups").field("walk", &self.walk).finish_non_exhaustive()
    }
}

/// The distinct values of leading elements: what [`Grouping::values`] returns.
pub struct Values<'r, R: Reader, P> {
    pub(super) groups: Groups<'r, R>,
    pub(super) value: PhantomData<fn() -> P>,
}

impl<R: Reader, P> Values<'_, R, P> {
    /// What the scan has read so far.
    pub fn explain(&self) -> Explain {
        self.groups.explain()
    }
}

impl<R: Reader, P: for<'k> Unpack<'k>> Iterator for Values<'_, R, P> {
    type Item = Result<P>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.groups.next()?;
        Some(entry.and_then(|(key, _)| self.groups.grouping.group(&key)))
    }
}

impl<R: Reader, P> fmt::Debug for Values<'_, R, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.groups.fmt(f)
    }
}

/// The entries of every group that go on in one way: what [`Grouping::in_each`] returns.
pub struct InEach<'r, R: Reader> {
    pub(super) grouping: Grouping,
    pub(super) walk: Walk<'r, R>,
    pub(super) range: KeyRange<'static>,
    /// The packed elements behind the group.
    pub(super) rest: KeyBuf,
}

impl<'r, R: Reader> InEach<'r, R> {
    /// What the scan has read so far.
    pub fn explain(&self) -> Explain {
        self.walk.explain
    }

    fn one(&mut self) -> Result<Option<Entry<R::Bytes<'r>>>> {
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
            met = self.walk.leave(rest)?.next;
        }
        Ok(None)
    }
}

impl<'r, R: Reader> Iterator for InEach<'r, R> {
    type Item = Result<Entry<R::Bytes<'r>>>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.one();
        if next.is_err() {
            self.walk.end();
        }
        next.transpose()
    }
}

impl<R: Reader> fmt::Debug for InEach<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InEach").field("walk", &self.walk).finish_non_exhaustive()
    }
}
