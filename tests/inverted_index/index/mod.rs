//! An inverted index beside a direct one, kept in step with a table.

#[cfg(any(feature = "postgres", feature = "etcd"))]
use crate::servers;
use crate::{common, on_every_server, on_every_store};

mod damage;
mod faults;
pub mod fixture;
mod loads;
mod model;
mod repairs;
mod strikes;
mod typed;

use damage::{
    a_column_of_records_that_hold_nothing_there_is_found_and_mended,
    columns_of_a_function_that_yields_less_than_before_are_found_and_mended,
    every_kind_of_damage_is_found_and_mended, repair_keeps_fields_whose_names_hold_nul,
    strays_in_other_blocks_are_found_and_mended,
};
use faults::{
    a_conflict_at_any_operation_is_retried_to_the_same_end,
    a_fault_at_any_operation_leaves_nothing_half_done, a_fault_while_reading_says_so,
    bad_input_is_refused_and_nothing_is_written, operations_cost_what_the_documentation_says,
};
use loads::{
    a_repair_goes_on_where_it_was_stopped, a_repair_loses_nothing_that_is_written_meanwhile,
    a_table_that_is_full_already_is_built_by_chunks,
};
use model::{
    an_index_answers_as_a_filter_over_the_records,
    where_keys_are_ids_rebuilt_equals_maintained_byte_for_byte,
};
use repairs::{
    a_put_before_the_index_is_built_brings_in_what_the_documentation_says,
    a_repair_takes_ids_that_are_free, a_universe_that_was_made_smaller_lets_records_go,
};

use typed::{a_selection_of_another_type_is_refused, values_are_selected_by_what_they_are};

on_every_store! {
    values_are_selected_by_what_they_are,
    a_selection_of_another_type_is_refused,
    an_index_answers_as_a_filter_over_the_records,
    where_keys_are_ids_rebuilt_equals_maintained_byte_for_byte,
    every_kind_of_damage_is_found_and_mended,
    strays_in_other_blocks_are_found_and_mended,
    repair_keeps_fields_whose_names_hold_nul,
    a_column_of_records_that_hold_nothing_there_is_found_and_mended,
    columns_of_a_function_that_yields_less_than_before_are_found_and_mended,
    a_table_that_is_full_already_is_built_by_chunks,
    a_repair_goes_on_where_it_was_stopped,
    a_repair_loses_nothing_that_is_written_meanwhile,
    operations_cost_what_the_documentation_says,
    a_fault_at_any_operation_leaves_nothing_half_done,
    a_conflict_at_any_operation_is_retried_to_the_same_end,
    a_fault_while_reading_says_so,
    bad_input_is_refused_and_nothing_is_written,
    a_put_before_the_index_is_built_brings_in_what_the_documentation_says,
    a_repair_takes_ids_that_are_free,
    a_universe_that_was_made_smaller_lets_records_go,
}

// Without those that put more into one transaction than etcd takes.
on_every_server! {
    an_index_answers_as_a_filter_over_the_records,
    every_kind_of_damage_is_found_and_mended,
    a_repair_goes_on_where_it_was_stopped,
    a_fault_at_any_operation_leaves_nothing_half_done,
    a_conflict_at_any_operation_is_retried_to_the_same_end,
    bad_input_is_refused_and_nothing_is_written,
}
