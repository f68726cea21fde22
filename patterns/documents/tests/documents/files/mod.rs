//! A file system.

mod bad_input;
mod contents;
mod costs;
mod damage;
mod faults;
mod model;
mod races;

use keyloom::Store;
use keyloom_documents::files::Files;
use keyloom_tables::Schema;
use keyloom_testing::laws;
use keyloom_text::Analyzer;

fn open(store: &impl Store) -> Files {
    let schema = Schema::open(store, "files").unwrap();
    Files::open_with(&schema, &Analyzer::simple()).unwrap()
}

fn fresh(store: &impl Store) -> Files {
    laws::clear(store);
    open(store)
}

keyloom_testing::on_every_store_and_server! {
    model::random_changes_are_those_of_the_model,
    contents::contents_of_many_pieces_are_read_and_found,
    contents::pages_survive_changes_of_the_directory,
    contents::a_directory_is_removed_in_steps,
    contents::a_repair_writes_the_index_again,
    damage::missing_and_surplus_pieces_are_found,
    damage::entries_without_a_directory_are_found,
    damage::circles_of_directories_are_found,
    damage::a_lost_last_id_is_repaired,
    damage::lost_blocks_of_removed_entries_are_repaired,
    bad_input::refused_changes_leave_everything_as_it_is,
}
