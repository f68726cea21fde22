//! Results in groups.

mod costs;
mod faults;
mod fixture;
mod groups;
mod guide;

keyloom_testing::on_every_store_and_server! {
    groups::groups_are_those_of_their_definition,
    groups::second_level_groups_are_groups_of_each_group,
    groups::counts_are_exact,
    groups::large_and_small_groups_have_their_best_hits,
    groups::pages_of_groups_are_stable_while_others_write,
    groups::wrong_collapses_are_errors_with_a_remedy,
    guide::posts_carry_their_author,
}
