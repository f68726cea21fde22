//! The costs of steps between parents and children.

use keyloom::{Metered, Store};
use keyloom_documents::parent_child::{Children, Link, OnParentDelete};
use keyloom_documents::{Documents, Matches, ScoreMode};
use keyloom_tables::Schema;
use keyloom_testing::laws::{clear, counts};

type Staff = Children<u32, (), (u32, u32), bool>;

const PARENTS: u32 = 20;
const CHILDREN: u32 = 2_000;

pub fn steps_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    clear(store);
    let store = Metered::new(store.clone());
    let schema = Schema::open(&store, "company").unwrap();
    let branches = Documents::<u32, ()>::declare(&schema, "branches", 1, |index| index).unwrap();
    let staff = Staff::declare(
        &schema,
        &branches,
        "staff",
        1,
        Link::by_key(),
        OnParentDelete::Refuse,
        |index| index.values("even", |_, is_even: &bool| keyloom_bitmaps::one(is_even)),
    )
    .unwrap();
    store
        .transact(|txn| {
            (0..PARENTS).try_for_each(|n| branches.put(txn, &n, &()))?;
            let all = (0..CHILDREN).map(|n| ((n / (CHILDREN / PARENTS), n), n % 2 == 0));
            staff.documents().table().put_many(txn, all)
        })
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    let index = staff.at(&snapshot).unwrap();
    let even = index.records().term("even", true).unwrap();
    let even = Matches::of_ids(index, &even, 1.0, &snapshot).unwrap();
    assert_eq!(even.len(), 1_000);

    // 2 states, 2 blocks of 1,016 ids, the ids of 20 parents, and the chunk with all parents.
    let (found, cost) = store.measure(|_| staff.to_parents(&snapshot, &even, ScoreMode::Sum));
    let found = found.unwrap();
    assert_eq!(found.len(), PARENTS as usize);
    assert!(found.scores().iter().all(|(_, score)| *score == 50.0));
    assert_eq!(counts(cost)[..2], [2 + 2 + u64::from(PARENTS), 1]);

    // 2 states and the key of one parent; the greatest id of a child, and the ids of the children
    // of this parent.
    let one = Matches::of_ids(
        branches.text().at(&snapshot).unwrap(),
        &keyloom_bitmaps::BitmapExpr::range(3..=3),
        1.0,
        &snapshot,
    )
    .unwrap();
    let (children, cost) = store.measure(|_| staff.to_children(&snapshot, &one));
    assert_eq!(children.unwrap().len(), 100);
    assert_eq!(counts(cost)[..2], [2 + 1, 2]);

    // With many parents: their keys, and the 2 blocks of all children.
    let (children, cost) = store.measure(|_| staff.to_children(&snapshot, &found));
    assert_eq!(children.unwrap().len(), CHILDREN as usize);
    assert!(counts(cost)[0] <= 2 + u64::from(PARENTS) + 2, "{cost:?}");
    drop(snapshot);

    // A child moves: its record is written twice, and the entries of its id and its parents change.
    let (moved, cost) =
        store.measure(|store| store.transact(|txn| staff.move_to(txn, &(0, 4), &1)));
    assert_eq!(moved.unwrap(), (1, 4));
    assert!(counts(cost)[3] < 20, "{cost:?}");
}
