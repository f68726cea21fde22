//! Boolean expressions of bitmaps.

#[cfg(any(feature = "postgres", feature = "etcd"))]
use crate::servers;
use crate::{common, on_every_server, on_every_store};

mod costs;
mod depth;
mod endless;
mod faults;
mod queries;
mod trees;

use costs::{explain_tells_what_is_read, operations_cost_what_the_documentation_says};
use depth::deep_expressions_are_read_on_a_small_stack;
use endless::{
    a_complement_costs_what_its_expression_costs, endless_expressions_are_counted,
    percentiles_with_a_complement_end,
};
use faults::{
    a_fault_while_reading_ends_a_query, bad_input_is_refused, damage_is_told_with_its_key,
};
use queries::{
    an_expression_goes_into_a_bitmap_even_into_its_own_operand, ranges_without_end_are_counted,
};
use trees::{any_tree_is_read_in_part, any_tree_is_what_roaring_makes_of_it};

macro_rules! run {
    ($on:ident) => {
        $on! {
            any_tree_is_what_roaring_makes_of_it,
            any_tree_is_read_in_part,
            an_expression_goes_into_a_bitmap_even_into_its_own_operand,
            ranges_without_end_are_counted,
            operations_cost_what_the_documentation_says,
            explain_tells_what_is_read,
            a_fault_while_reading_ends_a_query,
            damage_is_told_with_its_key,
            bad_input_is_refused,
            deep_expressions_are_read_on_a_small_stack,
            endless_expressions_are_counted,
            a_complement_costs_what_its_expression_costs,
            percentiles_with_a_complement_end,
        }
    };
}
run!(on_every_store);
run!(on_every_server);
