//! Faults, conflicts and bad input.

use keyloom::{DynWriter, Error, Result, Store};
use keyloom_documents::parent_child::{Children, Link, OnParentDelete};
use keyloom_documents::{DocumentError, Documents};
use keyloom_tables::Schema;
use keyloom_testing::laws::{self, refused};

use super::company::{Company, employee, guide, key};
use crate::nested::faults::restoring;

fn change(company: &Company, txn: &mut DynWriter<'_>) -> Result<()> {
    company.employees.move_to(txn, &key("london", 1), &"paris".to_owned())?;
    company.branches.delete(txn, &"london".to_owned()).map(drop)
}

pub fn a_fault_at_any_operation_leaves_no_move_half_done(store: &(impl Store + Clone)) {
    let company = guide(store, OnParentDelete::Refuse, OnParentDelete::Delete);
    let prepare = restoring(store);
    let change = |txn: &mut DynWriter<'_>| change(&company, txn);
    laws::faults_leave_nothing_half_done(store, prepare, change, |store| company.faults(store));
}

pub fn a_conflict_at_any_operation_is_retried_to_the_same_end(store: &(impl Store + Clone)) {
    let company = guide(store, OnParentDelete::Refuse, OnParentDelete::Delete);
    let prepare = restoring(store);
    laws::conflicts_are_retried_to_the_same_end(store, prepare, |txn| change(&company, txn));
}

fn error_of(error: &Error) -> &DocumentError {
    error.downcast_ref().unwrap_or_else(|| panic!("{error}"))
}

pub fn wrong_writes_are_refused(store: &(impl Store + Clone)) {
    let company = guide(store, OnParentDelete::Refuse, OnParentDelete::Refuse);
    let new = employee("Eve", 19900101, "hiking");
    let error = refused(store, |txn| company.employees.put(txn, &key("berlin", 5), &new));
    assert!(matches!(error_of(&error), DocumentError::NoDocument { .. }), "{error}");
    assert!(error.to_string().contains(r#""berlin""#), "{error}");
    let move_to = |from, to: &str| {
        let to = to.to_owned();
        refused(store, |txn| company.employees.move_to(txn, &from, &to).map(drop))
    };
    let error = move_to(key("london", 9), "paris");
    assert!(matches!(error_of(&error), DocumentError::NoRecord { .. }), "{error}");
    let error = move_to(key("london", 1), "berlin");
    assert!(matches!(error_of(&error), DocumentError::NoDocument { .. }), "{error}");
    // Another employee already has this key.
    store.transact(|txn| company.employees.put(txn, &key("paris", 1), &new)).unwrap();
    let error = move_to(key("london", 1), "paris");
    assert!(matches!(error_of(&error), DocumentError::Exists { .. }), "{error}");
    let kept = company.employees.documents().get(&store.snapshot().unwrap(), &key("paris", 1));
    assert_eq!(kept.unwrap(), Some(new));
}

#[test]
fn a_link_that_contradicts_itself_is_refused() {
    let store = keyloom_testing::memory();
    let schema = Schema::open(&store, "wrong").unwrap();
    let parents = Documents::<u32, ()>::declare(&schema, "parents", 1, |index| index).unwrap();
    let link =
        Link::new(|_: &u32, parent: &u32| Some(*parent), |id, parent, _: &u32| (*id, parent));
    let children = Children::<u32, (), u32, u32>::declare(
        &schema,
        &parents,
        "children",
        1,
        link,
        OnParentDelete::Refuse,
        |index| index,
    )
    .unwrap();
    store
        .transact(|txn| {
            [1, 2].iter().try_for_each(|key| parents.put(txn, key, &()))?;
            children.put(txn, &7, &1)
        })
        .unwrap();
    let error = store.transact(|txn| children.move_to(txn, &7, &2)).unwrap_err();
    assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
    assert_eq!(children.keys_of(&store.snapshot().unwrap(), &1).unwrap(), [7]);
}
