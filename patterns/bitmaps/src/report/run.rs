//! A report in progress.

use keyloom::{Error, KeyBuf, Reader, Result, Subspace};
use keyloom_kit::{Explain, RecordKey};

use super::Report;
use super::intersect::Containers;
use super::plan::{Known, Way};
use super::rows::{Breakdown, Gathered, Limit, ValueSum, change};
use super::tally::Tally;
use super::walk::Columns;
use super::window::{Audience, Window};
use crate::{BitmapExpr, InvertedIndex, SelectedValues};

/// A report of an audience over some fields.
pub(super) struct Run<'r, R: Reader, K, V> {
    index: &'r InvertedIndex<K, V>,
    reader: &'r R,
    audience: Audience<'r, R>,
    /// The first window, evaluated to choose the index.
    first: Option<Window>,
    fields: Vec<Containers<'r>>,
    /// The fields in the order in which an intersection nests them: the outermost first.
    nested: Vec<usize>,
    limit: Limit<'r>,
    /// The subspaces of the columns of the fields, followed by the subspace of the columns of the
    /// integers to be summed.
    columns: Vec<&'r Subspace>,
    way: Way,
    ids: u64,
    explain: Explain,
}

impl<'r, R: Reader, K: RecordKey, V> Run<'r, R, K, V> {
    /// A report over the selected values of some fields, or over the sums of integers for each
    /// selected value of one field.
    pub(super) fn open(
        report: &'r Report<'_, K, V>,
        reader: &'r R,
        selected: &[(&str, SelectedValues)],
        integers: Option<&str>,
    ) -> Result<Self> {
        let index = report.index;
        if selected.is_empty() {
            let why = "an audience is broken down by one field or more; name one";
            return Err(Error::InvalidArgument { what: "the fields", value: "none".into(), why });
        }
        if let Some(integers) = integers {
            index.integers_of(integers)?;
        }
        let names = || selected.iter().map(|(name, _)| *name);
        let fields = selected.iter().map(|(name, selected)| {
            let (space, range) = index.containers_of_values(reader, name, selected)?;
            let is_whole = matches!(selected, SelectedValues::All);
            Ok(Containers { space, range, is_whole })
        });
        let fields = fields.collect::<Result<Vec<_>>>()?;
        let columns = names().chain(integers).map(|name| index.columns_of_field(name));
        let columns = columns.collect::<Result<_>>()?;
        let containers = names().zip(&fields).map(|(name, field)| match field.is_whole {
            true => index.containers(reader, name),
            false => reader.count(field.range.clone()),
        });
        let containers = containers.collect::<Result<Vec<u64>>>()?;
        let limit = Limit {
            index: index.space(),
            fields: names().map(str::to_owned).collect(),
            groups: if selected.len() > 1 { report.max_groups } else { usize::MAX },
        };
        Self::begin(report, reader, fields, columns, &containers, limit)
    }

    /// Evaluates the beginning of the audience, and chooses the index. If there is one more column
    /// than fields, the last column has the integers to be summed.
    fn begin(
        report: &'r Report<'_, K, V>,
        reader: &'r R,
        fields: Vec<Containers<'r>>,
        columns: Vec<&'r Subspace>,
        containers: &[u64],
        limit: Limit<'r>,
    ) -> Result<Self> {
        let index = report.index;
        let mut audience = Audience::open(&report.audience, reader)?;
        let first = audience.next_window()?;
        let mut known = Known::of(first.as_ref());
        if first.is_some() {
            known.of_chunks = index.chunks(reader)?;
        }
        // Each value of an outer field costs an evaluation and a scan of the next field, so the
        // fields with the fewest containers are the outermost.
        let of = |at: &usize| containers.get(*at).copied().unwrap_or(0);
        let mut nested: Vec<usize> = (0..fields.len()).collect();
        nested.sort_by_key(of);
        let (walk, intersect) = match containers {
            [containers] if columns.len() > 1 => (known.walk(2), known.intersect_sums(*containers)),
            _ => {
                let nested: Vec<u64> = nested.iter().map(of).collect();
                (known.walk(containers.len()), known.intersect(&nested))
            }
        };
        let cheaper = if intersect < walk { Way::Intersect } else { Way::Walk };
        let way = report.way.unwrap_or(cheaper);
        let (ids, explain) = (0, Explain::default());
        let run = Self {
            index,
            reader,
            audience,
            first,
            fields,
            nested,
            limit,
            columns,
            way,
            ids,
            explain,
        };
        Ok(run)
    }

    /// The fields of the report, with the selected values.
    pub(super) fn fields(&self) -> &[Containers<'r>] {
        &self.fields
    }

    /// The index that the report reads.
    pub(super) fn way(&self) -> Way {
        self.way
    }

    /// The next part of the audience.
    pub(super) fn next_window(&mut self) -> Result<Option<Window>> {
        let window = match self.first.take() {
            Some(first) => Some(first),
            None => self.audience.next_window()?,
        };
        self.ids += window.as_ref().map_or(0, |window| window.ids);
        Ok(window)
    }

    /// The finished breakdown.
    pub(super) fn finish<P, M>(mut self, rows: Vec<(P, M)>) -> Breakdown<P, M> {
        let audience = self.audience.explain();
        self.add(audience);
        self.explain.keys_returned = rows.len() as u64;
        let walked = self.way == Way::Walk;
        Breakdown { rows, ids: self.ids, walked, explain: self.explain }
    }

    fn add(&mut self, read: Explain) {
        let sum = &mut self.explain;
        sum.planned += read.planned;
        sum.ranges += read.ranges;
        sum.keys_scanned += read.keys_scanned;
    }

    /// Counts each combination of values in the window, from the inverted index.
    pub(super) fn intersect(&mut self, window: &Window, counts: &mut Gathered<u64>) -> Result<()> {
        self.intersect_from(0, window, &mut vec![KeyBuf::new(); self.fields.len()], counts)
    }

    /// Like [`intersect`](Self::intersect), for the fields from the `n`-th nested one on; `group`
    /// has the values of the outer fields.
    fn intersect_from(
        &mut self,
        n: usize,
        window: &Window,
        group: &mut [KeyBuf],
        counts: &mut Gathered<u64>,
    ) -> Result<()> {
        let (mut values, is_last) = (Vec::new(), n + 1 == self.fields.len());
        let Some(at) = self.nested.get(n).copied() else { return Ok(()) };
        let (Some(field), limit) = (self.fields.get(at), &self.limit) else { return Ok(()) };
        let mut packed = KeyBuf::new();
        let read = field.intersect(self.reader, window, |value, count| {
            if !is_last {
                values.push(KeyBuf::from_slice(value));
                return Ok(());
            }
            set(group, at, value);
            packed.clear();
            group.iter().for_each(|value| packed.extend_from_slice(value));
            change(counts, &packed, |sum: &mut u64| *sum += count);
            limit.check(counts.len())
        })?;
        let space = field.space.clone();
        let bitmap = |value: &[u8]| {
            let prefix: KeyBuf = space.prefix().iter().chain(value).copied().collect();
            BitmapExpr::stored(&Subspace::from_bytes(&prefix))
        };
        self.add(read);
        if is_last {
            return Ok(());
        }
        let held = BitmapExpr::held(&mut window.chunks())?;
        for value in values {
            let with = &held & bitmap(&value);
            let mut audience = Audience::open(&with, self.reader)?;
            let part = audience.next_window()?;
            self.add(audience.explain());
            set(group, at, &value);
            if let Some(part) = part {
                self.intersect_from(n + 1, &part, group, counts)?;
            }
        }
        Ok(())
    }

    /// Computes the breakdown first, and then reads all slices of the integers for each value of
    /// the breakdown.
    pub(super) fn intersect_sums(
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

    /// Counts each combination of values in the window, from the forward index.
    pub(super) fn walk(&mut self, window: &Window, tally: &mut Tally<'_, u64>) -> Result<()> {
        let mut columns = self.columns();
        tally.count(&mut columns, window, &self.limit)?;
        let read = columns.explain;
        self.add(read);
        Ok(())
    }

    /// Sums the integers of the ids of the window by value, from the forward index.
    pub(super) fn walk_sums(
        &mut self,
        window: &Window,
        tally: &mut Tally<'_, ValueSum>,
    ) -> Result<()> {
        let mut columns = self.columns();
        tally.sum(&mut columns, window)?;
        let read = columns.explain;
        self.add(read);
        Ok(())
    }

    fn columns(&self) -> Columns<'_, R> {
        let ranges = self.columns.len() as u64;
        let explain = Explain { planned: ranges, ..Explain::default() };
        Columns { reader: self.reader, fields: &self.columns, explain }
    }
}

/// Sets the value of a field in a group.
fn set(group: &mut [KeyBuf], at: usize, value: &[u8]) {
    group.get_mut(at).into_iter().for_each(|own| *own = KeyBuf::from_slice(value));
}

impl Known {
    pub(super) fn of(window: Option<&Window>) -> Self {
        let Some(window) = window else { return Self { ids: 0, chunks: 0, full: 0, of_chunks: 1 } };
        let (chunks, full) = (window.len() as u64, window.full() as u64);
        Self { ids: window.ids, chunks, full, of_chunks: chunks }
    }
}
