//! Integers by id.

#[cfg(any(feature = "postgres", feature = "etcd"))]
use crate::servers;
use crate::{common, on_every_server, on_every_store};

mod aggregates;
mod comparisons;
mod costs;
mod values;

use aggregates::{
    aggregates_are_those_of_a_list_of_values, sums_of_extremes_are_exact,
    whole_percents_are_ranks_without_rounding,
};
use comparisons::every_comparison_is_what_a_filter_over_a_map_finds;
use costs::{
    a_conflict_at_any_operation_is_retried_to_the_same_end,
    a_fault_at_any_operation_leaves_nothing_half_done, a_fault_while_reading_ends_a_query,
    bad_input_is_refused, operations_cost_what_the_documentation_says,
};
use values::integers_are_a_map_whatever_is_done_with_them;

macro_rules! run {
    ($on:ident) => {
        $on! {
            integers_are_a_map_whatever_is_done_with_them,
            every_comparison_is_what_a_filter_over_a_map_finds,
            aggregates_are_those_of_a_list_of_values,
            sums_of_extremes_are_exact,
            whole_percents_are_ranks_without_rounding,
            operations_cost_what_the_documentation_says,
            a_fault_at_any_operation_leaves_nothing_half_done,
            a_conflict_at_any_operation_is_retried_to_the_same_end,
            a_fault_while_reading_ends_a_query,
            bad_input_is_refused,
        }
    };
}
run!(on_every_store);
run!(on_every_server);
