//! The counts of a walk so far.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use keyloom::{Reader, Result};
use smallvec::SmallVec;

use super::rows::{Rows, ValueSum};
use super::walk::{Block, Columns};
use super::window::Window;
use crate::column::{Integers, Values};
use keyloom_tables::kit::Fnv;

/// The numbers of values, one per field.
type Group = SmallVec<[u32; 4]>;

/// Rows under construction, by the numbers of their values.
pub(super) struct Tally<M> {
    /// The values seen, per field.
    met: Vec<Met>,
    /// For one field: the rows, indexed by value number.
    of_value: Vec<M>,
    /// For several fields.
    of_group: HashMap<Group, M>,
}

/// The values of a field seen so far.
#[derive(Default)]
struct Met {
    /// Numbered in the order in which they were first seen.
    numbers: HashMap<Box<[u8]>, u32, BuildHasherDefault<Fnv>>,
    /// The dictionary of the last column. For fields of low cardinality it is the same in each.
    dictionary: Vec<u8>,
    /// The number of each code of this dictionary, or [`UNMET`].
    of_codes: Vec<u32>,
}

const UNMET: u32 = u32::MAX;

/// The initial capacity, in values.
const FEW_VALUES: usize = 256;

impl Met {
    /// Switches to a column.
    fn enter(&mut self, column: &Values<'_>) {
        let dictionary = column.dictionary();
        if self.of_codes.len() != dictionary.len() || self.dictionary != dictionary.raw() {
            self.dictionary.clear();
            self.dictionary.extend_from_slice(dictionary.raw());
            self.of_codes.clear();
            self.of_codes.resize(dictionary.len(), UNMET);
            // Reserve once for all values of a field of low cardinality.
            if self.numbers.is_empty() {
                self.numbers.reserve(dictionary.len().min(FEW_VALUES));
            }
        }
    }

    /// The number of the value of a code in the current column.
    #[inline]
    fn number(&mut self, column: &Values<'_>, code: u32) -> Result<u32> {
        match self.of_codes.get(code as usize) {
            Some(number) if *number != UNMET => Ok(*number),
            _ => self.meet(column, code),
        }
    }

    #[cold]
    fn meet(&mut self, column: &Values<'_>, code: u32) -> Result<u32> {
        let value = column.dictionary().value(code)?;
        let number = match self.numbers.get(value) {
            Some(number) => *number,
            None => {
                let number = self.numbers.len() as u32;
                self.numbers.insert(value.into(), number);
                number
            }
        };
        self.of_codes.get_mut(code as usize).into_iter().for_each(|known| *known = number);
        Ok(number)
    }
}

impl<M: Default> Tally<M> {
    /// Creates a tally of `fields` fields.
    pub(super) fn new(fields: usize) -> Self {
        let met = std::iter::repeat_with(Met::default).take(fields).collect();
        Self { met, of_value: Vec::new(), of_group: HashMap::new() }
    }

    /// Changes the rows for the values of the ids of a block in the only field.
    fn of_values<B: std::ops::Deref<Target = [u8]>>(
        &mut self,
        block: &Block<'_, B>,
        mut change: impl FnMut(&mut M, u16),
    ) -> Result<()> {
        let Some(met) = self.met.first_mut() else { return Ok(()) };
        let Some(column) = block.column(0, Values::parse)? else { return Ok(()) };
        met.enter(&column);
        for place in block.places {
            for code in column.codes(*place) {
                let number = met.number(&column, code).map_err(|error| block.at(0, error))?;
                if number as usize >= self.of_value.len() {
                    self.of_value.resize_with(met.numbers.len(), M::default);
                }
                self.of_value
                    .get_mut(number as usize)
                    .into_iter()
                    .for_each(|row| change(row, *place));
            }
        }
        Ok(())
    }

    /// The rows, by their packed values.
    pub(super) fn rows(self) -> Rows<M> {
        let values = self.met.into_iter().map(|met| {
            let mut values = vec![Box::default(); met.numbers.len()];
            for (value, number) in met.numbers {
                if let Some(at) = values.get_mut(number as usize) {
                    *at = value;
                }
            }
            values
        });
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

impl Tally<u64> {
    /// Counts each combination of values of the ids of the window.
    pub(super) fn count<R: Reader>(
        &mut self,
        columns: &mut Columns<'_, R>,
        window: &Window,
    ) -> Result<()> {
        match columns.fields.len() {
            1 => columns.visit(window, |block| self.of_values(block, |count, _| *count += 1)),
            _ => columns.visit(window, |block| self.count_groups(block)),
        }
    }

    fn count_groups<B: std::ops::Deref<Target = [u8]>>(
        &mut self,
        block: &Block<'_, B>,
    ) -> Result<()> {
        let mut columns = SmallVec::<[Values<'_>; 4]>::new();
        for (n, met) in self.met.iter_mut().enumerate() {
            // An id without a value in one of the fields is in no group.
            let Some(column) = block.column(n, Values::parse)? else { return Ok(()) };
            met.enter(&column);
            columns.push(column);
        }
        let mut numbers = vec![Vec::new(); columns.len()];
        for place in block.places {
            for (n, ((column, met), numbers)) in
                columns.iter().zip(&mut self.met).zip(&mut numbers).enumerate()
            {
                numbers.clear();
                for code in column.codes(*place) {
                    numbers.push(met.number(column, code).map_err(|error| block.at(n, error))?);
                }
            }
            combinations(&numbers, &mut Group::new(), &mut |group| match self
                .of_group
                .get_mut(group)
            {
                Some(count) => *count += 1,
                None => drop(self.of_group.insert(Group::from_slice(group), 1)),
            });
        }
        Ok(())
    }
}

impl Tally<ValueSum> {
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

/// Visits every combination of one number of each field.
fn combinations(fields: &[Vec<u32>], group: &mut Group, visit: &mut impl FnMut(&[u32])) {
    let Some((field, others)) = fields.split_first() else { return visit(group) };
    for number in field {
        group.push(*number);
        combinations(others, group, visit);
        group.pop();
    }
}
