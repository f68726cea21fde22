//! Trees in memory: no operation depends on the depth, except those of serde, which have a depth
//! limit.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use keyloom_trees::NestedNode;

/// So deep that one word of stack per level would overflow.
const LEVELS: u64 = 300_000;

fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(256 << 10);
    thread.spawn(work).unwrap().join().unwrap();
}

/// A chain of nodes with this many levels below the first node.
pub fn chain(levels: u64) -> NestedNode<u32> {
    (1..levels)
        .rev()
        .fold(NestedNode::new(levels, "n", 0), |below, id| NestedNode::new(id, "n", 0).with(below))
}

fn hash(tree: &NestedNode<u32>) -> u64 {
    let mut hasher = DefaultHasher::new();
    tree.hash(&mut hasher);
    hasher.finish()
}

#[test]
fn a_deep_tree_is_cloned_compared_printed_dropped() {
    on_a_small_stack(|| {
        let tree = chain(LEVELS);
        let mut other = tree.clone();
        assert!(tree == other && hash(&tree) == hash(&other));
        let text = format!("{tree:?}");
        assert!(
            text.ends_with(&("children: [] }".to_owned() + &"] }".repeat(LEVELS as usize - 1)))
        );
        assert!(format!("{tree:#?}").len() < 100 * LEVELS as usize, "no indent per level");
        let mut deepest = &mut other;
        while !deepest.children.is_empty() {
            deepest = &mut deepest.children[0];
        }
        deepest.value = 1;
        assert!(tree != other && hash(&tree) != hash(&other));
        let rows =
            tree.preorder().map(|(depth, node)| (depth, node.id, node.name.clone(), node.value));
        assert!(NestedNode::from_preorder(rows.collect::<Vec<_>>()) == [tree]);
    });
}

#[test]
fn a_tree_prints_as_a_derived_implementation_does() {
    let tree = NestedNode::new(1, "a", 7)
        .with(NestedNode::new(2, "b", 8))
        .with(NestedNode::new(3, "c", 9));
    assert_eq!(
        format!("{tree:?}"),
        "NestedNode { id: 1, name: \"a\", value: 7, children: [\
         NestedNode { id: 2, name: \"b\", value: 8, children: [] }, \
         NestedNode { id: 3, name: \"c\", value: 9, children: [] }] }"
    );
}

#[test]
fn trees_of_the_same_nodes_in_other_places_differ() {
    let node = |id| NestedNode::new(id, "n", 0_u32);
    let trees = [
        node(1).with(node(2)).with(node(3)),
        node(1).with(node(2).with(node(3))),
        node(1).with(node(2)),
        node(1).with(node(3)).with(node(2)),
    ];
    for (at, one) in trees.iter().enumerate() {
        for (other_at, other) in trees.iter().enumerate() {
            assert_eq!(one == other, at == other_at);
            assert_eq!(hash(one) == hash(other), at == other_at);
        }
    }
}

#[test]
fn serde_takes_trees_up_to_a_number_of_levels() {
    // A root, and the largest number of levels of children.
    let limit = NestedNode::<u32>::MAX_LEVELS as u64;
    let (deepest, too_deep) = (chain(limit), chain(limit + 1));
    let bytes = postcard::to_stdvec(&deepest).unwrap();
    assert_eq!(postcard::from_bytes::<NestedNode<u32>>(&bytes).unwrap(), deepest);
    assert!(postcard::to_stdvec(&too_deep).is_err());
    let packed = rmp_serde::to_vec(&deepest).unwrap();
    assert_eq!(rmp_serde::from_slice::<NestedNode<u32>>(&packed).unwrap(), deepest);
    // JSON parsers have their own, lower limit.
    let json = serde_json::to_string(&chain(60)).unwrap();
    assert_eq!(serde_json::from_str::<NestedNode<u32>>(&json).unwrap(), chain(60));
    let error = serde_json::to_string(&chain(LEVELS)).unwrap_err().to_string();
    assert!(error.contains("more than 128 levels") && error.contains("from_preorder"), "{error}");
    // After an error, the next tree is read correctly.
    assert_eq!(postcard::from_bytes::<NestedNode<u32>>(&bytes).unwrap(), deepest);
}

#[test]
fn bytes_of_a_stranger_that_nest_without_end_are_an_error() {
    on_a_common_stack(|| {
        // An id, an empty name, a value, and one child, repeated.
        let hostile = [1, 0, 0, 1].repeat(1 << 20);
        assert!(postcard::from_bytes::<NestedNode<u32>>(&hostile).is_err());
        // An array of four elements; the last element is an array of one.
        let hostile = [0x94, 1, 0xA0, 0, 0x91].repeat(1 << 20);
        let error = rmp_serde::from_slice::<NestedNode<u32>>(&hostile).unwrap_err().to_string();
        assert!(error.contains("more than 128 levels"), "{error}");
        // Trees within the values of trees count towards the limit.
        type Within = NestedNode<BTreeMap<String, NestedNode<u32>>>;
        let value = BTreeMap::from([("t".to_owned(), chain(100))]);
        let both = Within { value, ..NestedNode::new(1, "outer", BTreeMap::new()) };
        assert!(postcard::to_stdvec(&both).is_ok());
    });
}

/// 2 MiB, the default stack size of a thread.
fn on_a_common_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    thread.spawn(work).unwrap().join().unwrap();
}
