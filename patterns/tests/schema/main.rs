//! The laws of schemas, on every store: ownership, refusals, and the life cycle of derived data.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod costs;
mod deferred;
mod faults;
mod fences;
mod fixture;
mod import;
mod indexes;
mod key_variants;
mod kills;
mod life;
mod misuse;
mod own_keys;
mod parallel_checks;
mod plans;
mod processes;
mod programs;
mod ranked_builds;
mod renames;
mod shapes;
mod totals;
mod versions;

use keyloom_testing::{on_every_server, on_every_store};

use costs::{
    opening_an_unchanged_schema_costs_one_range, operations_cost_what_the_documentation_says,
};
use deferred::{
    a_change_of_deferral_needs_another_version_and_a_build, a_damaged_queue_is_found_and_repaired,
    a_drain_beside_writers_leaves_what_a_build_leaves, a_drain_in_batches_keeps_its_bound,
    a_record_is_queued_once_until_it_is_drained, damage_of_deferred_data_is_found_and_repaired,
    each_kind_refuses_when_it_defers, records_by_a_deferred_index_are_current,
    undecodable_records_leave_deferred_data_in_step, what_an_update_refuses_is_not_queued,
};
use faults::{
    a_fault_at_any_operation_leaves_nothing_half_done, work_that_fails_can_be_done_again,
};
use import::{
    a_store_without_a_schema_is_taken_over, an_import_contradicts_another_table_of_its_name,
    an_import_costs_what_the_documentation_says, an_import_of_other_records_is_refused,
    an_import_that_fails_anywhere_can_be_repeated, an_import_that_overlaps_is_refused,
    plain_writes_after_an_import_are_found,
};
use indexes::{
    a_function_that_panics_leaves_nothing, an_entry_that_is_too_long_is_refused_and_named,
    damage_of_any_index_is_found_and_repaired, many_at_once_leave_what_one_by_one_leaves,
    queries_of_any_index_find_what_a_filter_finds, two_transactions_cannot_take_one_unique_value,
    violations_are_listed_until_a_build_can_finish,
};
use key_variants::{
    a_first_variant_with_fields_is_another_key,
    a_number_that_was_added_is_not_given_to_another_variant,
    builds_of_programs_with_other_variants_join, variants_of_keys_keep_their_numbers,
};
use life::{
    a_build_continues_where_the_store_says, a_build_waits_for_a_record_that_is_refused,
    a_dropped_index_leaves_no_key, a_dropped_table_leaves_no_key,
    a_repair_that_was_overtaken_changes_nothing, a_table_that_is_declared_during_its_drop_stays,
    builds_beside_writers_leave_what_a_build_alone_leaves,
    disabling_counts_for_later_puts_of_its_transaction, links_have_the_life_cycle_of_a_schema,
    rebuilt_equals_maintained_in_any_history,
};
use misuse::{
    a_changed_definition_is_refused_until_it_is_built, a_program_that_lacks_an_index_cannot_write,
    a_table_and_its_index_share_no_key, a_table_of_a_schema_is_not_written_without_it,
    a_table_of_a_schema_takes_nothing_else, a_table_of_another_type_is_refused,
    data_are_attached_once_in_a_subspace_of_their_own, ids_leave_out_keys_that_are_there,
    names_declared_twice_are_refused, only_a_schema_that_exists_is_opened_as_existing,
    options_that_the_bytes_depend_on_are_compared, schemas_share_no_key,
    what_is_not_readable_is_not_queried, what_lies_elsewhere_is_refused,
};
use own_keys::{a_key_type_with_other_elements_is_refused, parts_with_other_elements_are_refused};
use plans::{
    a_dry_run_plans_and_writes_nothing, a_plan_of_a_new_store_adds_all_and_builds_nothing,
    a_plan_of_an_older_program_is_refused, a_plan_that_fails_anywhere_resumes,
    a_plan_that_is_stopped_anywhere_resumes, a_step_that_fails_is_named_and_the_work_is_kept,
    programs_apply_one_plan_at_once_beside_a_writer, undeclared_data_is_dropped_on_request,
    what_a_dry_run_refuses,
};
use programs::two_programs_are_refused_or_right;
use ranked_builds::{
    a_ranked_build_beside_writers_counts_every_entry, a_ranked_build_reads_and_counts_in_batches,
};
use renames::{
    a_former_name_is_refused_until_it_is_free,
    a_program_with_the_old_name_of_an_index_cannot_write, a_rename_moves_no_record,
    a_rename_that_fails_anywhere_can_be_repeated, names_that_are_taken_are_refused,
    renames_run_at_each_start_of_each_version,
};
use shapes::{
    a_declaration_that_fails_can_be_repeated, a_name_that_others_read_as_an_alias_is_refused,
    a_raised_version_is_believed_if_records_decode, a_store_without_shapes_is_adopted_as_said,
    a_type_that_is_read_differently_is_refused, an_empty_table_moves_to_the_next_type,
    parts_of_another_type_are_refused, programs_of_joined_shapes_write_side_by_side,
    programs_that_declare_at_once_agree, what_stops_other_programs_needs_a_raised_version,
};
use totals::totals_keep_the_laws_of_derived_data;
use versions::{
    a_migration_compares_all_derived_data_or_none,
    a_migration_refuses_an_upgrade_that_changes_an_index,
    a_migration_that_fails_anywhere_can_be_repeated, a_migration_to_another_version_begins_again,
    a_queued_value_without_an_upgrade_is_forgotten, a_record_without_an_upgrade_is_named_and_left,
    a_table_with_such_records_is_not_raised, a_table_without_a_plain_past_refuses_the_plain_type,
    an_older_program_continues_to_query, an_upgrade_can_be_removed_after_the_migration,
    an_upgrade_that_changes_an_index_is_refused,
    programs_of_earlier_versions_cannot_write_or_misread,
    programs_with_the_plain_type_end_with_the_first_without_it,
    queued_records_are_migrated_after_a_drain, records_are_queued_during_a_migration,
    records_of_all_versions_are_read_and_migrated,
};

macro_rules! run {
    ($on:ident) => {
        $on! {
                a_dry_run_plans_and_writes_nothing,
                a_plan_of_an_older_program_is_refused,
                undeclared_data_is_dropped_on_request,
                a_plan_of_a_new_store_adds_all_and_builds_nothing,
                a_plan_that_fails_anywhere_resumes,
                a_plan_that_is_stopped_anywhere_resumes,
                a_step_that_fails_is_named_and_the_work_is_kept,
                programs_apply_one_plan_at_once_beside_a_writer,
                what_a_dry_run_refuses,
                a_program_with_the_old_name_of_an_index_cannot_write,
                a_rename_moves_no_record,
                a_rename_that_fails_anywhere_can_be_repeated,
                names_that_are_taken_are_refused,
                renames_run_at_each_start_of_each_version,
                a_migration_that_fails_anywhere_can_be_repeated,
                a_migration_to_another_version_begins_again,
                a_record_without_an_upgrade_is_named_and_left,
                a_table_with_such_records_is_not_raised,
                a_table_without_a_plain_past_refuses_the_plain_type,
                programs_with_the_plain_type_end_with_the_first_without_it,
                an_upgrade_can_be_removed_after_the_migration,
                an_upgrade_that_changes_an_index_is_refused,
                a_migration_refuses_an_upgrade_that_changes_an_index,
                programs_of_earlier_versions_cannot_write_or_misread,
                queued_records_are_migrated_after_a_drain,
                records_are_queued_during_a_migration,
                records_of_all_versions_are_read_and_migrated,
                a_table_and_its_index_share_no_key,
                a_table_of_another_type_is_refused,
                names_declared_twice_are_refused,
                only_a_schema_that_exists_is_opened_as_existing,
                schemas_share_no_key,
                ids_leave_out_keys_that_are_there,
                a_program_that_lacks_an_index_cannot_write,
                a_table_of_a_schema_takes_nothing_else,
                a_table_of_a_schema_is_not_written_without_it,
                data_are_attached_once_in_a_subspace_of_their_own,
                a_changed_definition_is_refused_until_it_is_built,
                what_is_not_readable_is_not_queried,
                what_lies_elsewhere_is_refused,
                options_that_the_bytes_depend_on_are_compared,
                rebuilt_equals_maintained_in_any_history,
                a_ranked_build_beside_writers_counts_every_entry,
                a_ranked_build_reads_and_counts_in_batches,
                disabling_counts_for_later_puts_of_its_transaction,
                a_build_continues_where_the_store_says,
                a_build_waits_for_a_record_that_is_refused,
                builds_beside_writers_leave_what_a_build_alone_leaves,
                links_have_the_life_cycle_of_a_schema,
                a_repair_that_was_overtaken_changes_nothing,
                a_dropped_index_leaves_no_key,
                a_dropped_table_leaves_no_key,
                a_table_that_is_declared_during_its_drop_stays,
                queries_of_any_index_find_what_a_filter_finds,
                many_at_once_leave_what_one_by_one_leaves,
                damage_of_any_index_is_found_and_repaired,
                violations_are_listed_until_a_build_can_finish,
                two_transactions_cannot_take_one_unique_value,
                an_entry_that_is_too_long_is_refused_and_named,
                a_function_that_panics_leaves_nothing,
                a_record_is_queued_once_until_it_is_drained,
                records_by_a_deferred_index_are_current,
                a_drain_beside_writers_leaves_what_a_build_leaves,
        a_drain_in_batches_keeps_its_bound,
                damage_of_deferred_data_is_found_and_repaired,
                a_damaged_queue_is_found_and_repaired,
                what_an_update_refuses_is_not_queued,
                each_kind_refuses_when_it_defers,
                undecodable_records_leave_deferred_data_in_step,
                a_change_of_deferral_needs_another_version_and_a_build,
                operations_cost_what_the_documentation_says,
                opening_an_unchanged_schema_costs_one_range,
                two_programs_are_refused_or_right,
                a_type_that_is_read_differently_is_refused,
                parts_of_another_type_are_refused,
                a_key_type_with_other_elements_is_refused,
                parts_with_other_elements_are_refused,
                variants_of_keys_keep_their_numbers,
                a_first_variant_with_fields_is_another_key,
                builds_of_programs_with_other_variants_join,
                a_former_name_is_refused_until_it_is_free,
                a_migration_compares_all_derived_data_or_none,
                an_older_program_continues_to_query,
                a_queued_value_without_an_upgrade_is_forgotten,
                a_number_that_was_added_is_not_given_to_another_variant,
                a_name_that_others_read_as_an_alias_is_refused,
                an_empty_table_moves_to_the_next_type,
                programs_that_declare_at_once_agree,
                a_declaration_that_fails_can_be_repeated,
                what_stops_other_programs_needs_a_raised_version,
                programs_of_joined_shapes_write_side_by_side,
                a_raised_version_is_believed_if_records_decode,
                a_store_without_shapes_is_adopted_as_said,
                totals_keep_the_laws_of_derived_data,
                a_store_without_a_schema_is_taken_over,
                an_import_costs_what_the_documentation_says,
                an_import_that_fails_anywhere_can_be_repeated,
                an_import_of_other_records_is_refused,
                an_import_that_overlaps_is_refused,
                an_import_contradicts_another_table_of_its_name,
                plain_writes_after_an_import_are_found,
                a_fault_at_any_operation_leaves_nothing_half_done,
                work_that_fails_can_be_done_again,
            }
    };
}

run!(on_every_store);
run!(on_every_server);
