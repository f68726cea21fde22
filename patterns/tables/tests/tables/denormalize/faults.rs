//! Faults, conflicts and bad input.

use keyloom::{DynWriter, Fault, Faulty, Result, Store};
use keyloom_tables::IndexError;
use keyloom_tables::Rule;

use crate::denormalize::fixture::{Blog, of, on};
use keyloom_testing::laws::{self, clear, dump_all};

/// A changed name that is refreshed at once, a changed name with too many targets, a post, and a
/// deleted user.
fn change(blog: &Blog, txn: &mut DynWriter<'_>) -> Result<()> {
    blog.put_user(txn, 2, "Robert")?;
    blog.put_user(txn, 1, "Countess")?;
    blog.authors.put(txn, &50, of(1))?;
    blog.users.delete(txn, &2).map(drop)
}

fn filled(blog: &Blog, store: &impl Store) {
    blog.fill(store, 6);
    store.transact(|txn| blog.authors.put_many(txn, (10..12).map(|id| (id, of(2))))).unwrap();
}

/// The stale fields without a mark, which no propagation will refresh.
fn unmarked(blog: &Blog, store: &impl Store) -> Vec<String> {
    let stale = blog.stale(&store.snapshot().unwrap()).into_iter();
    stale.filter(|stale| stale.rule != Rule::Pending).map(|stale| stale.to_string()).collect()
}

pub fn a_fault_at_any_operation_leaves_nothing_half_done(store: &(impl Store + Clone)) {
    let blog = Blog::new(3);
    laws::faults_leave_nothing_half_done(
        store,
        |store| filled(&blog, store),
        |txn| change(&blog, txn),
        |store| unmarked(&blog, store),
    );
}

fn change_and_propagate(blog: &Blog, store: &impl Store) {
    store.transact(|txn| change(blog, &mut DynWriter::new(txn))).unwrap();
    blog.authors.propagate_with(store, 2, on).unwrap();
}

pub fn a_conflict_at_any_operation_is_retried_to_the_same_end(store: &(impl Store + Clone)) {
    let blog = Blog::new(3);
    let faulty = Faulty::new(store.clone());
    filled(&blog, store);
    change_and_propagate(&blog, &faulty);
    let (wanted, operations) = (dump_all(store), faulty.operations());
    for n in 0..operations {
        filled(&blog, store);
        faulty.fail_at(n, Fault::Conflict);
        change_and_propagate(&blog, &faulty);
        assert_eq!(dump_all(store), wanted);
    }
    assert!(operations > 60, "{operations}");
}

pub fn a_propagation_that_meets_a_fault_anywhere_continues_where_it_was(
    store: &(impl Store + Clone),
) {
    let blog = Blog::new(0);
    let faulty = Faulty::new(store.clone());
    for fault in [Fault::Error, Fault::UnknownAndLost, Fault::UnknownButCommitted] {
        for n in 0.. {
            blog.fill(store, 7);
            blog.authors.propagate_with(store, 100, on).unwrap();
            store.transact(|txn| blog.put_user(txn, 1, "Countess")).unwrap();
            faulty.fail_at(n, fault);
            let outcome = blog.authors.propagate_with(&faulty, 2, on);
            faulty.clear_fault();
            // Every stale field is still marked.
            assert_eq!(unmarked(&blog, store), [""; 0]);
            let done = blog.authors.propagate_with(store, 2, on).unwrap();
            assert!(done.records <= 7);
            assert_eq!(blog.stale(&store.snapshot().unwrap()), []);
            if outcome.is_ok() {
                assert!(n > 40, "{n} operations can fail");
                break;
            }
        }
    }
}

pub fn bad_input_is_refused(store: &(impl Store + Clone)) {
    let blog = Blog::new(10);
    blog.fill(store, 5);
    let before = dump_all(store);
    // A name that fits in a user, but not in an index entry: the posts cannot have a copy of it.
    let error = store.transact(|txn| blog.put_user(txn, 1, &"n".repeat(600))).unwrap_err();
    let error = error.downcast_ref();
    assert!(
        matches!(error, Some(IndexError::EntryTooLong { index, .. }) if index.contains("by_name"))
    );
    assert_eq!(dump_all(store), before);
    // A source that does not decode is an error for targets that would copy it.
    let broken = blog.users.space().pack(&9u16);
    store.transact(|txn| keyloom::Writer::put(txn, &broken, b"\xFF\xFF")).unwrap();
    let error = store.transact(|txn| blog.authors.put(txn, &70, of(9))).unwrap_err();
    assert!(error.to_string().starts_with(r#"at key ("blog", "users", 9): "#), "{error}");
    clear(store);
}
