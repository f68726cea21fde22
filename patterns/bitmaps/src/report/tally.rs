//! The counts of a walk so far.

use std::collections::HashMap;

use keyloom::{Reader, Result};
use smallvec::SmallVec;

use super::intersect::Containers;
use super::met::{Met, UNSELECTED};
use super::rows::{Limit, Rows, ValueSum};
use super::walk::{Block, Columns};
use super::window::Window;
use crate::column::{Integers, Values};

/// The dictionary numbers of the values of a group, one per field.
type Group = SmallVec<[u32; 4]>;

/// Rows under construction, by the dictionary numbers of their values.
pub(super) struct Tally<'f, M> {
    /// The values seen, per field.
    met: Vec<Met<'f>>,
    /// For one field: the rows, indexed by value number.
    of_value: Vec<M>,
    /// For several fields: the rows, by the numbers of the values.
    of_group: HashMap<Group, M>,
}

impl<'f, M: Default> Tally<'f, M> {
    /// Creates a tally of the selected values of some fields.
    pub(super) fn new(fields: &[Containers<'f>]) -> Self {
        let met = fields.iter().cloned().map(Met::new).collect();
        Self { met, of_value: Vec::new(), of_group: HashMap::new() }
    }

    /// Changes the rows of the values that the ids of a block have in the first field, one row at a
    /// time.
    fn of_values<B: std::ops::Deref<Target = [u8]>>(
        &mut self,
        block: &Block<'_, B>,
        mut change: impl FnMut(&mut M, u16),
    ) -> Result<()> {
        let Some(met) = self.met.first_mut() else { return Ok(()) };
        let Some(column) = block.column(0, Values::parse)? else { return Ok(()) };
        met.read(&column, block.places).map_err(|error| block.at(0, error))?;
        self.of_value.resize_with(met.len(), M::default);
        for (n, place) in block.places.iter().enumerate() {
            for number in met.of_place(n) {
                // A value that is not selected has no row.
                let row = self.of_value.get_mut(*number as usize);
                row.into_iter().for_each(|row| change(row, *place));
            }
        }
        Ok(())
    }

    /// The rows, by their packed values.
    pub(super) fn rows(self) -> Rows<M> {
        let values = self.met.into_iter().map(Met::values);
        let mut values: Vec<Vec<Box<[u8]>>> = values.collect();
        let packed = |group: Group| -> Box<[u8]> {
            let values = values.iter().zip(group);
            let values = values.filter_map(|(values, number)| values.get(number as usize));
            values.flatten().copied().collect()
        };
        let of_group: Rows<M> =
            self.of_group.into_iter().map(|(group, row)| (packed(group), row)).collect();
        match values.pop() {
            Some(values) if !self.of_value.is_empty() => {
                values.into_iter().zip(self.of_value).collect()
            }
            _ => of_group,
        }
    }
}

impl Tally<'_, u64> {
    /// Counts each combination of selected values of the ids of the window.
    pub(super) fn count<R: Reader>(
        &mut self,
        columns: &mut Columns<'_, R>,
        window: &Window,
        limit: &Limit<'_>,
    ) -> Result<()> {
        match columns.fields.len() {
            1 => columns.visit(window, |block| self.of_values(block, |count, _| *count += 1)),
            _ => columns.visit(window, |block| self.count_groups(block, limit)),
        }
    }

    fn count_groups<B: std::ops::Deref<Target = [u8]>>(
        &mut self,
        block: &Block<'_, B>,
        limit: &Limit<'_>,
    ) -> Result<()> {
        for (field, met) in self.met.iter_mut().enumerate() {
            // An id without a value in one of the fields is in no group.
            let Some(column) = block.column(field, Values::parse)? else { return Ok(()) };
            met.read(&column, block.places).map_err(|error| block.at(field, error))?;
        }
        let mut numbers = vec![Vec::new(); self.met.len()];
        for n in 0..block.places.len() {
            for (met, numbers) in self.met.iter().zip(&mut numbers) {
                numbers.clear();
                numbers.extend(met.of_place(n).iter().filter(|number| **number != UNSELECTED));
            }
            // The other fields may have many combinations, which are not visited.
            if numbers.iter().any(Vec::is_empty) {
                continue;
            }
            combinations(&numbers, &mut Group::new(), &mut |group| {
                if let Some(count) = self.of_group.get_mut(group) {
                    *count += 1;
                    return Ok(());
                }
                self.of_group.insert(Group::from_slice(group), 1);
                limit.check(self.of_group.len())
            })?;
        }
        Ok(())
    }
}

impl Tally<'_, ValueSum> {
    /// Sums the integers of the second field for each value of the first.
    pub(super) fn sum<R: Reader>(
        &mut self,
        columns: &mut Columns<'_, R>,
        window: &Window,
    ) -> Result<()> {
        columns.visit(window, |block| {
            let Some(integers) = block.column(1, Integers::parse)? else { return Ok(()) };
            self.of_values(block, |sum, place| {
                integers.get(place).into_iter().for_each(|integer| sum.add(integer));
            })
        })
    }
}

/// Visits every combination of one number of each field, until an error.
fn combinations(
    fields: &[Vec<u32>],
    group: &mut Group,
    visit: &mut impl FnMut(&[u32]) -> Result<()>,
) -> Result<()> {
    let Some((field, others)) = fields.split_first() else { return visit(group) };
    for number in field {
        group.push(*number);
        combinations(others, group, visit)?;
        group.pop();
    }
    Ok(())
}
