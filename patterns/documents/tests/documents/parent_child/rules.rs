//! What happens to children when their parent is deleted or moved.

use keyloom::{Reader, Store};
use keyloom_documents::parent_child::{OnParentDelete, OnParentDelete::*};
use keyloom_documents::{DocumentError, Documents, Nested};
use keyloom_tables::{Rule, Schema};
use keyloom_testing::laws::clear;

use super::company::{Company, Key, guide, key};

fn staff(company: &Company, store: &impl Store) -> Vec<Key> {
    let snapshot = store.snapshot().unwrap();
    let table = company.employees.documents().table();
    let all = table.range(&snapshot, ..).unwrap();
    all.map(|record| record.unwrap().0).collect()
}

pub fn a_deleted_parent_treats_its_children_by_the_rule(store: &impl Store) {
    let (london, paris) = ("london".to_owned(), "paris".to_owned());
    let rest = [key("liverpool", 3), key("paris", 4)];
    let of_london = [key("london", 1), key("london", 2)];

    let company = guide(store, Refuse, Refuse);
    let error = store.transact(|txn| company.branches.delete(txn, &london)).unwrap_err();
    let refused = error.downcast_ref::<DocumentError>();
    assert!(matches!(refused, Some(DocumentError::HasChildren { .. })), "{error}");
    assert!(error.to_string().contains("employees"), "{error}");
    assert_eq!(staff(&company, store).len(), 4);
    // A branch without children is deleted.
    store
        .transact(|txn| {
            company.employees.delete(txn, &key("paris", 4))?;
            assert!(company.branches.delete(txn, &paris)?);
            Ok(())
        })
        .unwrap();
    assert_eq!(company.faults(store), [""; 0]);

    let company = guide(store, Refuse, Delete);
    store.transact(|txn| company.branches.delete(txn, &london)).unwrap();
    assert_eq!(staff(&company, store), rest);
    assert_eq!(company.faults(store), [""; 0]);
    assert!(!store.transact(|txn| company.branches.delete(txn, &london)).unwrap());

    let company = guide(store, Refuse, Keep);
    store.transact(|txn| company.branches.delete(txn, &london)).unwrap();
    assert_eq!(staff(&company, store), [&rest[..1], &of_london, &rest[1..]].concat());
    let snapshot = store.snapshot().unwrap();
    let faults = company.employees.check(&snapshot).unwrap();
    assert!(faults.len() == 2 && faults.iter().all(|fault| fault.rule == Rule::NoParent));
    assert_eq!(company.employees.orphans(&snapshot, 10, None).unwrap().items, of_london);
    drop(snapshot);

    let company = guide(store, Refuse, Reparent(paris.clone()));
    store.transact(|txn| company.branches.delete(txn, &london)).unwrap();
    let moved = [key("liverpool", 3), key("paris", 1), key("paris", 2), key("paris", 4)];
    assert_eq!(staff(&company, store), moved);
    assert_eq!(company.faults(store), [""; 0]);
    // The new parent of the children cannot be deleted while it has children.
    let error = store.transact(|txn| company.branches.delete(txn, &paris)).unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(DocumentError::NoDocument { .. })), "{error}");
    assert_eq!(staff(&company, store), moved);

    // Deletes a country, with its branches and their employees.
    let company = guide(store, Delete, Delete);
    store.transact(|txn| company.countries.delete(txn, &"uk".to_owned())).unwrap();
    assert_eq!(staff(&company, store), [key("paris", 4)]);
    assert_eq!(company.faults(store), [""; 0]);
    let company = guide(store, Delete, Refuse);
    assert!(store.transact(|txn| company.countries.delete(txn, &"uk".to_owned())).is_err());
    assert_eq!(staff(&company, store).len(), 4);

    // Deletes the children in several transactions before the parent.
    let company = guide(store, Refuse, Refuse);
    let some = || store.transact(|txn| company.employees.delete_some(txn, &london, 1)).unwrap();
    assert_eq!([some(), some(), some()], [1, 1, 0]);
    assert!(store.transact(|txn| company.branches.delete(txn, &london)).unwrap());
}

pub fn orphans_are_resolved_by_a_rule(store: &impl Store) {
    for (rule, wanted) in [
        (
            OnParentDelete::Keep,
            vec![key("liverpool", 3), key("london", 1), key("london", 2), key("paris", 4)],
        ),
        (OnParentDelete::Delete, vec![key("liverpool", 3), key("paris", 4)]),
        (
            OnParentDelete::Reparent("paris".to_owned()),
            vec![key("liverpool", 3), key("paris", 1), key("paris", 2), key("paris", 4)],
        ),
    ] {
        let company = guide(store, OnParentDelete::Refuse, OnParentDelete::Keep);
        store.transact(|txn| company.branches.delete(txn, &"london".to_owned())).unwrap();
        assert!(company.employees.repair(store, &rule).unwrap().finished);
        assert_eq!(staff(&company, store), wanted, "{rule:?}");
        let faults = if rule == OnParentDelete::Keep { 2 } else { 0 };
        assert_eq!(company.faults(store).len(), faults, "{rule:?}");
    }
}

/// One child cannot be moved, but the others are moved.
pub fn a_collision_does_not_stop_the_repair(store: &impl Store) {
    let company = guide(store, OnParentDelete::Refuse, OnParentDelete::Keep);
    let taken = store.snapshot().unwrap();
    let table = company.employees.documents().table();
    let employee = table.get(&taken, &key("london", 1)).unwrap().unwrap();
    drop(taken);
    store
        .transact(|txn| {
            company.employees.put(txn, &key("paris", 1), &employee)?;
            company.branches.delete(txn, &"london".to_owned())
        })
        .unwrap();
    // Children whose parent does not exist are not counted.
    let snapshot = store.snapshot().unwrap();
    let all = company.employees.matches(&snapshot, keyloom_text::Query::All).unwrap();
    let counts = company.employees.counts::<String>(&snapshot, &all, "hobby").unwrap();
    assert_eq!(counts.iter().map(|count| count.children).sum::<u64>(), 3);
    drop(snapshot);

    let repaired = company.employees.repair(store, &Reparent("paris".to_owned())).unwrap();
    assert!(repaired.finished && repaired.contested == 1, "{repaired:?}");
    let wanted =
        [key("liverpool", 3), key("london", 1), key("paris", 1), key("paris", 2), key("paris", 4)];
    assert_eq!(staff(&company, store), wanted);
    assert_eq!(company.faults(store).len(), 1);
}

/// The notes of an employee, as elements of a path.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Branch {
    notes: Vec<String>,
}

pub fn a_moved_record_takes_its_children_along(store: &impl Store) {
    // Regions have branches, and branches have employees; each key contains the key of the parent.
    use keyloom_documents::parent_child::{Children, Link};
    clear(store);
    let schema = Schema::open(store, "regions").unwrap();
    let regions = Documents::<u8, ()>::declare(&schema, "regions", 1, |index| index).unwrap();
    type Branches = Children<u8, (), (u8, u8), Branch>;
    type Staff = Children<(u8, u8), Branch, ((u8, u8), u8), String>;
    let branches = Branches::declare(
        &schema,
        &regions,
        "branches",
        1,
        Link::by_key(),
        OnParentDelete::Delete,
        |index| index,
    )
    .unwrap();
    let notes = Nested::declare(
        &schema,
        branches.documents(),
        "notes",
        1,
        |branch: &Branch| &branch.notes,
        |branch| &mut branch.notes,
        |index| index,
    )
    .unwrap();
    let staff = Staff::declare(
        &schema,
        branches.documents(),
        "staff",
        1,
        Link::by_key(),
        OnParentDelete::Delete,
        |index| index,
    )
    .unwrap();
    let branch = Branch { notes: vec!["old".to_owned(), "brick".to_owned()] };
    store
        .transact(|txn| {
            [1, 2].iter().try_for_each(|region| regions.put(txn, region, &()))?;
            branches.put(txn, &(1, 7), &branch)?;
            staff.put(txn, &((1, 7), 3), &"ann".to_owned())?;
            assert_eq!(branches.move_to(txn, &(1, 7), &2)?, (2, 7));
            Ok(())
        })
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(branches.documents().get(&snapshot, &(2, 7)).unwrap(), Some(branch));
    assert_eq!(branches.documents().get(&snapshot, &(1, 7)).unwrap(), None);
    let records = snapshot.count(staff.documents().table().space().self_and_children()).unwrap();
    assert_eq!(records, 1);
    let moved = staff.documents().get(&snapshot, &((2, 7), 3)).unwrap();
    assert_eq!(moved, Some("ann".to_owned()));
    assert_eq!(notes.elements(&snapshot, &(1, 7)).unwrap(), []);
    let faults = [branches.check(&snapshot), notes.check(&snapshot), staff.check(&snapshot)];
    assert!(faults.into_iter().all(|faults| faults.unwrap().is_empty()));
}
