//! An inverted index and its forward index, maintained by a table.

use keyloom_testing::{on_every_server, on_every_store};

mod bounds;
mod damage;
mod faults;
pub mod fixture;
mod loads;
mod model;
mod repairs;
mod strikes;
mod typed;

on_every_store! {
    bounds::bounds_of_any_type_find_what_an_index_finds,
    typed::values_are_selected_by_what_they_are,
    typed::a_selection_of_another_type_is_refused,
    model::an_index_answers_as_a_filter_over_the_records,
    model::where_keys_are_ids_rebuilt_equals_maintained_byte_for_byte,
    damage::every_kind_of_damage_is_found_and_repaired,
    damage::strays_in_other_blocks_are_found_and_repaired,
    damage::repair_keeps_fields_whose_names_hold_nul,
    damage::a_column_of_records_that_hold_nothing_there_is_found_and_repaired,
    damage::columns_of_a_function_that_yields_less_than_before_are_found_and_repaired,
    loads::a_table_that_is_full_already_is_built_by_chunks,
    loads::a_repair_continues_where_it_was_stopped,
    loads::a_repair_loses_nothing_that_is_written_meanwhile,
    faults::operations_cost_what_the_documentation_says,
    faults::a_fault_while_reading_says_so,
    faults::bad_input_is_refused_and_nothing_is_written,
    repairs::a_put_before_the_index_is_built_brings_in_what_the_documentation_says,
    repairs::a_repair_takes_ids_that_are_free,
    repairs::a_universe_that_was_made_smaller_lets_records_go,
}

// Without the tests whose transactions exceed etcd's limit.
on_every_server! {
    model::an_index_answers_as_a_filter_over_the_records,
    damage::every_kind_of_damage_is_found_and_repaired,
    loads::a_repair_continues_where_it_was_stopped,
    faults::bad_input_is_refused_and_nothing_is_written,
}
