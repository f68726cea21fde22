//! An index cannot have the name of a method of `Table`: the list of these is complete.

use std::collections::BTreeSet;

const TABLE: [&str; 2] = [
    include_str!("../../patterns/tables/src/table.rs"),
    include_str!("../../patterns/tables/src/schema/migrate.rs"),
];
const RESERVED: &str = include_str!("../src/record/reserved.rs");

/// The public methods in the blocks `impl<..> Table<..>` of a source file.
fn methods(source: &str) -> BTreeSet<&str> {
    let blocks = source.split("\nimpl<").skip(1).filter(|block| {
        let first = block.lines().next().unwrap_or_default();
        first.contains("> Table<") && !first.contains(" for ")
    });
    let blocks = blocks.filter_map(|block| block.split("\n}").next());
    let functions = blocks.flat_map(|block| block.split("\n    pub fn ").skip(1));
    functions.filter_map(|function| function.split(['(', '<']).next()).collect()
}

#[test]
fn each_method_of_table_is_reserved() {
    let methods: BTreeSet<&str> = TABLE.into_iter().flat_map(methods).collect();
    assert!(methods.len() > 20, "{methods:?}");
    let is_free = |name: &&&str| !RESERVED.contains(&format!("\"{name}\""));
    assert_eq!(methods.iter().filter(is_free).collect::<Vec<_>>(), [&""; 0]);
}
