//! A report that is being made.

use keyloom::{Error, KeyBuf, Reader, Result, Subspace};

use super::Report;
use super::intersect::Containers;
use super::plan::{Budget, Known, ReportExplain, ReportWay, sum_ns};
use super::rows::{Gathered, ValueSum, change, merge};
use super::walk::{combinations, for_each_entry};
use super::window::{Audience, Window};
use crate::explain::Explain;
use crate::general::inverted_index::{BitmapExpr, InvertedIndex};
use crate::table::RecordKey;

/// A report of an audience over some fields.
pub(super) struct Run<'r, R: Reader, K, V> {
    index: &'r InvertedIndex<K, V>,
    reader: &'r R,
    audience: Audience<'r, R>,
    /// Evaluated already, to choose the way.
    first: Option<Window>,
    fields: Vec<Containers<'r>>,
    explain: ReportExplain,
    /// Whether the way was not told, so that it may be left.
    may_turn: bool,
    budget: Budget,
}

impl<'r, R: Reader, K: RecordKey, V> Run<'r, R, K, V> {
    /// Evaluates the beginning of the audience and chooses the way.
    pub(super) fn open(
        report: &'r Report<'_, K, V>,
        reader: &'r R,
        names: &[&str],
        integers: Option<&str>,
    ) -> Result<Self> {
        let index = report.index;
        if names.is_empty() {
            let why = "an audience is broken down by one field or more; name one";
            return Err(Error::BadOption { what: "the fields", value: "none".into(), why });
        }
        if let Some(integers) = integers {
            index.integers_of(integers)?;
        }
        let fields = names.iter().map(|name| {
            let (space, range) = index.containers_of_field(name)?;
            Ok(Containers { space, range })
        });
        let fields = fields.collect::<Result<_>>()?;
        let containers = names.iter().map(|name| index.containers(reader, name));
        let containers = containers.collect::<Result<Vec<u64>>>()?;
        let mut audience = Audience::open(&report.audience, reader);
        let first = audience.next_window()?;
        let mut known = Known::of(first.as_ref());
        known.of_chunks = match &first {
            Some(_) => index.chunks(reader)?,
            None => 1,
        };
        let intersect_ns = match (integers, containers.as_slice()) {
            (Some(_), [containers]) => known.sums_ns(*containers),
            _ => known.intersect_all_ns(&containers),
        };
        let cheaper = match intersect_ns < known.walk_ns() {
            true => ReportWay::Intersect,
            false => ReportWay::Walk,
        };
        let explain = ReportExplain {
            way: report.way.unwrap_or(cheaper),
            turned: false,
            ids: 0,
            containers: containers.iter().sum(),
            intersect_ns,
            walk_ns: known.walk_ns(),
            read: Explain::default(),
        };
        let (may_turn, budget) = (report.way.is_none(), Budget::UNLIMITED);
        Ok(Self { index, reader, audience, first, fields, explain, may_turn, budget })
    }

    /// Intersects, if that is the way, and tells whether it came to its end; else the window is to be walked, and
    /// what comes behind it too.
    fn try_to_intersect(
        &mut self,
        window: &Window,
        intersect: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<bool> {
        if self.explain.way == ReportWay::Walk {
            return Ok(false);
        }
        self.budget = match self.may_turn {
            true => Budget::of_walking(window.ids),
            false => Budget::UNLIMITED,
        };
        intersect(self)?;
        if self.budget.is_spent() {
            (self.explain.way, self.explain.turned) = (ReportWay::Walk, true);
        }
        Ok(!self.budget.is_spent())
    }

    /// Counts what is in the window of each combination of values.
    pub(super) fn count(
        &mut self,
        window: &Window,
        fields: &[&str],
        counts: &mut Gathered<u64>,
    ) -> Result<()> {
        let mut new = Gathered::default();
        match self.try_to_intersect(window, |run| run.intersect(window, &mut new))? {
            true => merge(counts, new, |sum, count| *sum += count),
            false => self.walk(window, fields, counts)?,
        }
        Ok(())
    }

    /// Sums integers up for each value of a field that ids of the window have.
    pub(super) fn sum(
        &mut self,
        window: &Window,
        field: &str,
        integers: &str,
        sums: &mut Gathered<ValueSum>,
    ) -> Result<()> {
        let mut new = Gathered::default();
        let intersect = |run: &mut Self| run.intersect_sums(window, field, integers, &mut new);
        match self.try_to_intersect(window, intersect)? {
            true => merge(sums, new, ValueSum::merge),
            false => self.walk_sums(window, field, integers, sums)?,
        }
        Ok(())
    }

    /// The next part of the audience.
    pub(super) fn next_window(&mut self) -> Result<Option<Window>> {
        let window = match self.first.take() {
            Some(first) => Some(first),
            None => self.audience.next_window()?,
        };
        self.explain.ids += window.as_ref().map_or(0, |window| window.ids);
        Ok(window)
    }

    /// What was read and done, when there are so many rows.
    pub(super) fn finish(mut self, rows: usize) -> ReportExplain {
        let audience = self.audience.explain();
        self.add(audience);
        self.explain.read.keys_returned = rows as u64;
        self.explain
    }

    fn add(&mut self, read: Explain) {
        let sum = &mut self.explain.read;
        sum.ranges += read.ranges;
        sum.seeks += read.seeks;
        sum.keys_scanned += read.keys_scanned;
    }

    fn intersect(&mut self, window: &Window, counts: &mut Gathered<u64>) -> Result<()> {
        self.intersect_from(0, window, &mut KeyBuf::new(), counts)
    }

    /// The same for the fields from the `n`-th on, where `group` are the values of those before.
    fn intersect_from(
        &mut self,
        n: usize,
        window: &Window,
        group: &mut KeyBuf,
        counts: &mut Gathered<u64>,
    ) -> Result<()> {
        let length = group.len();
        let (mut values, is_last) = (Vec::new(), n + 1 == self.fields.len());
        let Some(field) = self.fields.get(n) else { return Ok(()) };
        let budget = &mut self.budget;
        let read = field.intersect(self.reader, window, budget, |value, count| match is_last {
            true => {
                group.extend_from_slice(value);
                change(counts, group, |sum: &mut u64| *sum += count);
                group.truncate(length);
            }
            false => values.push(KeyBuf::from_slice(value)),
        })?;
        let space = field.space.clone();
        let bitmap = |value: &[u8]| {
            let prefix: KeyBuf = space.prefix().iter().chain(value).copied().collect();
            BitmapExpr::stored(&Subspace::from_bytes(&prefix))
        };
        self.add(read);
        if is_last || self.budget.is_spent() {
            return Ok(());
        }
        let held = BitmapExpr::held(&mut window.chunks())?;
        for value in values {
            let with = &held & bitmap(&value);
            let mut audience = Audience::open(&with, self.reader);
            let part = audience.next_window()?;
            self.add(audience.explain());
            self.budget.spend_reading(Explain::default(), audience.explain());
            if self.budget.is_spent() {
                return Ok(());
            }
            group.extend_from_slice(&value);
            if let Some(part) = part {
                self.intersect_from(n + 1, &part, group, counts)?;
            }
            group.truncate(length);
        }
        Ok(())
    }

    /// Counts what the ids of the window have of each combination of values.
    fn walk(&mut self, window: &Window, fields: &[&str], counts: &mut Gathered<u64>) -> Result<()> {
        let mut group = KeyBuf::new();
        let read = for_each_entry(self.index, self.reader, window, |entry| {
            let mut count = |group: &[u8]| change(counts, group, |sum: &mut u64| *sum += 1);
            if let [field] = fields {
                for value in entry.packed(field)? {
                    count(value?);
                }
                return Ok(());
            }
            let values = fields.iter().map(|field| entry.packed(field));
            combinations(&values.collect::<Result<Vec<_>>>()?, &mut group, &mut count)
        })?;
        self.add(read);
        Ok(())
    }

    /// The breakdown first, and then for each of its values all slices of the integers again.
    fn intersect_sums(
        &mut self,
        window: &Window,
        field: &str,
        integers: &str,
        sums: &mut Gathered<ValueSum>,
    ) -> Result<()> {
        let mut counts = Gathered::default();
        self.intersect(window, &mut counts)?;
        let held = BitmapExpr::held(&mut window.chunks())?;
        for value in counts.keys() {
            self.budget.spend(sum_ns(window.len() as u64));
            if self.budget.is_spent() {
                return Ok(());
            }
            let with = &held & self.index.packed_term(field, value)?;
            let found =
                self.index.integers_of(integers)?.count_and_sum(self.reader, Some(&with))?;
            change(sums, value, |total: &mut ValueSum| {
                total.count += found.0;
                total.sum += found.1;
            });
        }
        Ok(())
    }

    /// Sums up the integers of the ids of the window for each value that they have in a field.
    fn walk_sums(
        &mut self,
        window: &Window,
        field: &str,
        integers: &str,
        sums: &mut Gathered<ValueSum>,
    ) -> Result<()> {
        let read = for_each_entry(self.index, self.reader, window, |entry| {
            let Some(integer) = entry.values::<i64>(integers)?.pop() else { return Ok(()) };
            for value in entry.packed(field)? {
                change(sums, value?, |total: &mut ValueSum| total.add(integer));
            }
            Ok(())
        })?;
        self.add(read);
        Ok(())
    }
}

impl Known {
    fn of(window: Option<&Window>) -> Self {
        let Some(window) = window else { return Self { ids: 0, chunks: 0, full: 0, of_chunks: 1 } };
        let (chunks, full) = (window.len() as u64, window.full() as u64);
        Self { ids: window.ids, chunks, full, of_chunks: chunks }
    }

    /// What it costs to intersect with fields that have so many containers, one within the other: each of the
    /// later ones once for every value before it, of which there are no more than containers and no more
    /// than ids.
    fn intersect_all_ns(&self, containers: &[u64]) -> u64 {
        containers.iter().rev().fold(0, |inner: u64, containers| {
            let values = self.least_values(*containers).min(self.ids);
            self.intersect_ns(*containers).saturating_add(values.saturating_mul(inner))
        })
    }
}
