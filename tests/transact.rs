//! `Store::transact`: the number of runs of a transaction, and its result.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::error::Error as _;
use std::time::{Duration, Instant};

use keyloom::{
    DynWriter, Error, Fault, Faulty, KeyRange, Memory, Reader, Result, RetryPolicy, ServerError,
    StorageError, Store, Transaction, VersionstampedKey, Writer,
};

#[derive(Debug, PartialEq, thiserror::Error)]
#[error("sold out")]
struct SoldOut;

#[derive(Debug, thiserror::Error)]
enum Booking {
    #[error(transparent)]
    Transparent(Error),
    #[error("the store: {0}")]
    Store(#[from] Error),
    #[error("sold out")]
    SoldOut,
}

fn put(txn: &mut impl Writer) -> Result<()> {
    txn.put(b"a", b"1")
}

#[test]
fn a_commit_that_conflicts_runs_the_body_again() {
    let store = Memory::new();
    store.conflict_next(3);
    let mut runs = 0;
    let value = store
        .transact(|txn| {
            runs += 1;
            put(txn)?;
            Ok(runs)
        })
        .unwrap();
    assert_eq!((runs, value), (4, 4));
}

#[test]
fn a_conflict_at_the_beginning_is_tried_again_too() {
    let store = Faulty::new(Memory::new());
    store.fail_at(0, Fault::Conflict);
    store.transact(|txn| put(txn)).unwrap();
    assert_eq!(store.snapshot().unwrap().count(KeyRange::all()).unwrap(), 1);
}

#[test]
fn every_write_may_be_the_one_that_fails() {
    const STAMPED: VersionstampedKey<'static> =
        VersionstampedKey { prefix: b"log", suffix: b"", clock: b"clock" };
    type Write = fn(&mut DynWriter<'_>) -> Result<()>;
    let writes: [Write; 6] = [
        |txn| txn.put(b"a", b"1"),
        |txn| txn.put_sorted(&[(b"a", b"1")]),
        |txn| txn.delete(b"a"),
        |txn| txn.delete_range(KeyRange::all()),
        |txn| txn.add(b"a", 1),
        |txn| txn.put_versionstamped(&STAMPED, b"1"),
    ];
    let store = Faulty::new(Memory::new());
    for write in writes {
        let mut txn = store.begin().unwrap();
        store.fail_at(0, Fault::Error);
        assert!(write(&mut DynWriter::new(&mut txn)).is_err());
        store.clear_fault();
        write(&mut DynWriter::new(&mut txn)).unwrap();
    }
}

#[test]
fn each_entry_of_a_load_may_be_the_one_that_fails() {
    let store = Faulty::new(Memory::new());
    let load: [(&[u8], &[u8]); 3] = [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")];
    for n in 0..3 {
        let mut txn = store.begin().unwrap();
        store.fail_at(n as u64, Fault::Error);
        assert!(txn.put_sorted(&load).is_err());
        assert_eq!(store.operations(), n as u64 + 1);
        // The earlier keys were put.
        assert_eq!(txn.count(KeyRange::all()).unwrap(), n as u64);
    }
}

#[test]
fn endless_conflicts_end_with_the_number_of_attempts() {
    let pause = Duration::from_micros(10);
    let policy = RetryPolicy {
        max_attempts: 5,
        first_pause: pause,
        max_pause: pause,
        ..RetryPolicy::default()
    };
    let store = Memory::builder().retry_policy(policy).build();
    store.conflict_next(u32::MAX);
    let mut runs = 0;
    let error = store
        .transact(|txn| {
            runs += 1;
            put(txn)
        })
        .unwrap_err();
    assert_eq!(runs, 5);
    assert!(matches!(error, Error::RetriesExhausted { attempts: 5, .. }), "{error}");
    assert!(!error.is_retryable() && !error.maybe_committed());
    assert!(error.source().unwrap().to_string().contains("conflicts"));
    assert_eq!(store.snapshot().unwrap().count(KeyRange::all()).unwrap(), 0);
}

#[test]
fn attempts_have_pauses_between_them() {
    let pause = Duration::from_millis(20);
    let policy = RetryPolicy {
        max_attempts: 50,
        first_pause: pause,
        max_pause: pause,
        ..RetryPolicy::default()
    };
    let store = Memory::builder().retry_policy(policy).build();
    store.conflict_next(u32::MAX);
    let started = Instant::now();
    store.transact(|txn| txn.put(b"a", b"1")).unwrap_err();
    // 49 random pauses of up to 20 ms: the test expects a tenth of their mean sum.
    assert!(started.elapsed() >= pause * 49 / 20, "{:?}", started.elapsed());
}

#[test]
fn conflicts_within_the_body_are_given_up_in_the_same_words() {
    let pause = Duration::from_micros(10);
    let policy = RetryPolicy {
        max_attempts: 4,
        first_pause: pause,
        max_pause: pause,
        ..RetryPolicy::default()
    };
    let store = Memory::builder().retry_policy(policy).build();
    let mut runs = 0;
    let error = store
        .transact(|_| -> Result<()> {
            runs += 1;
            Err(Error::Conflict { what: "always".into() })
        })
        .unwrap_err();
    assert!(matches!(error, Error::RetriesExhausted { attempts: 4, .. }) && runs == 4, "{error}");
    assert!(!error.is_retryable());
}

#[test]
fn an_error_of_the_body_rolls_back_and_comes_out_as_it_went_in() {
    let store = Memory::new();
    let mut runs = 0;
    let error = store
        .transact(|txn| -> Result<()> {
            runs += 1;
            put(txn)?;
            Err(Error::other(SoldOut))
        })
        .unwrap_err();
    assert_eq!(error.downcast_ref::<SoldOut>(), Some(&SoldOut));
    assert_eq!(error.to_string(), "sold out");
    assert_eq!(runs, 1);
    assert_eq!(store.snapshot().unwrap().get(b"a").unwrap(), None);
}

#[test]
fn a_conflict_is_seen_through_any_wrapping_of_the_body() {
    // At operation 1, the first operation of the body.
    let wrap: [fn(Error) -> Booking; 3] =
        [Booking::Store, Booking::Transparent, |_forgotten| Booking::SoldOut];
    for wrapped in wrap {
        let store = Faulty::new(Memory::new());
        store.fail_at(1, Fault::Conflict);
        let mut runs = 0;
        store
            .try_transact(|txn| {
                runs += 1;
                put(txn).map_err(wrapped)
            })
            .unwrap();
        assert_eq!(runs, 2);
    }
    let error = Memory::new().try_transact(|_| Err::<(), _>(Booking::SoldOut)).unwrap_err();
    assert!(matches!(error, Booking::SoldOut));
}

#[test]
fn a_body_that_swallows_a_conflict_does_not_commit_half_of_it() {
    let store = Faulty::new(Memory::new());
    store.fail_at(2, Fault::Conflict);
    let mut runs = 0;
    store
        .transact(|txn| {
            runs += 1;
            put(txn)?;
            let _ = txn.put(b"b", b"2");
            Ok(())
        })
        .unwrap();
    assert_eq!(runs, 2);
    assert_eq!(store.snapshot().unwrap().count(KeyRange::all()).unwrap(), 2);
}

#[test]
fn a_commit_of_unknown_outcome_is_not_run_again() {
    for (fault, there) in [(Fault::UnknownButCommitted, 1), (Fault::UnknownAndLost, 0)] {
        let store = Faulty::new(Memory::new());
        store.fail_at(2, fault);
        let mut runs = 0;
        let error = store
            .transact(|txn| {
                runs += 1;
                put(txn)
            })
            .unwrap_err();
        assert_eq!(runs, 1);
        assert!(error.maybe_committed() && !error.is_retryable(), "{error}");
        assert!(Error::other(Booking::Transparent(error)).to_string().contains("unknown"));
        assert_eq!(store.snapshot().unwrap().count(KeyRange::all()).unwrap(), there);
    }
}

#[test]
fn what_an_error_means_is_seen_through_the_chain_of_sources() {
    let conflict = || Error::Conflict { what: "x".into() };
    let unknown = || Error::CommitUnknown { source: "lost".into() };
    assert!(Error::other(Error::other(conflict())).is_retryable());
    assert!(Error::other(Booking::Store(conflict())).is_retryable());
    assert!(Error::other(Booking::Store(unknown())).maybe_committed());
    assert!(conflict().at(b"key").is_retryable());
    assert!(Error::other(Booking::Transparent(conflict().at(b"key"))).is_retryable());
    assert!(Error::other(unknown().at(b"key")).at(b"key").maybe_committed());
    assert!(!Error::ReadOnly.at(b"key").is_retryable());
    let too_old = || Error::TooOld { age_ms: 6, limit_ms: 5 };
    let too_large = Error::TransactionTooLarge { unit: "bytes", actual: 6, limit: 5 };
    assert!(too_old().is_batch_too_large() && !too_old().is_retryable());
    assert!(Error::other(Booking::Store(too_large.at(b"key"))).is_batch_too_large());
    assert!(Error::other(Booking::Transparent(too_old().at(b"key"))).is_batch_too_large());
    let unknown_and_old = Error::CommitUnknown { source: too_old().into() };
    assert!(!unknown_and_old.is_batch_too_large(), "it may have been committed");
    assert!(!conflict().is_batch_too_large());
    let given_up = Error::RetriesExhausted { attempts: 3, source: Box::new(conflict()) };
    assert!(!given_up.is_retryable());
    assert!(!Error::other(SoldOut).is_retryable() && !Error::other(SoldOut).maybe_committed());
}

#[test]
fn downcast_ref_looks_through_every_wrapper() {
    let wrapped = || Error::other(SoldOut).at(b"key");
    let refused = Error::CommitRefused { source: Box::new(wrapped()) };
    let given_up = Error::RetriesExhausted { attempts: 3, source: Box::new(wrapped().at(b"k")) };
    let unknown = Error::CommitUnknown { source: wrapped().into() };
    let own = Error::other(Booking::Store(wrapped()));
    let cloned = wrapped().clone();
    for error in [wrapped(), refused, given_up, unknown, own, cloned, Error::other(wrapped())] {
        assert_eq!(error.downcast_ref(), Some(&SoldOut), "{error:?}");
    }
    assert_eq!(Error::ReadOnly.at(b"key").downcast_ref::<SoldOut>(), None);
    assert!(Error::other(Error::ReadOnly).downcast_ref::<Error>().is_some());
}

#[test]
fn errors_of_engines_keep_their_meaning_in_every_wrapper() {
    let lost = || ServerError::ConnectionLost { store: "db".into(), source: SoldOut.into() };
    for error in [Error::from(lost()), Error::other(lost()), Error::from(lost()).at(b"key")] {
        assert!(
            matches!(error.downcast_ref(), Some(ServerError::ConnectionLost { .. })),
            "{error}"
        );
        assert_eq!(error.downcast_ref(), Some(&SoldOut), "{error:?}");
    }
    let source = || SoldOut.into();
    let full = Error::from(StorageError::DiskFull {
        path: "db".into(),
        source: std::io::Error::other("full").into(),
        held: Default::default(),
    });
    let busy = Error::from(ServerError::Busy { store: "db".into(), source: source() });
    let compacted = Error::from(ServerError::Compacted { revision: 7, source: source() });
    // Wrapped by a program that does not use the nesting variant.
    assert!(Error::other(lost()).is_retryable() && !Error::other(lost()).is_outdated());
    let bare = ServerError::Compacted { revision: 7, source: source() };
    assert!(Error::other(bare).at(b"key").is_outdated());
    let answers = [Error::from(lost()), busy, compacted, full]
        .map(|error| Error::other(error.at(b"key")))
        .map(|error| (error.is_retryable(), error.is_outdated(), error.maybe_committed()));
    let [again, outdated, neither] =
        [(true, false, false), (false, true, false), (false, false, false)];
    assert_eq!(answers, [again, again, outdated, neither]);
}

#[test]
fn a_refused_commit_means_what_its_source_means() {
    let refused = |error: Error| Error::CommitRefused { source: Box::new(error.at(b"key")) };
    assert!(refused(Error::Conflict { what: "x".into() }).is_retryable());
    assert!(refused(Error::TooOld { age_ms: 6, limit_ms: 5 }).is_batch_too_large());
    let unknown = refused(Error::CommitUnknown { source: "lost".into() });
    assert!(unknown.maybe_committed() && !unknown.is_retryable());
    let sold_out = refused(Error::other(SoldOut));
    assert!(!sold_out.is_retryable() && !sold_out.maybe_committed());
}

#[test]
fn dropping_a_transaction_rolls_it_back_and_frees_the_store() {
    let store = Memory::new();
    let mut txn = store.begin().unwrap();
    put(&mut txn).unwrap();
    assert!(matches!(store.begin(), Err(Error::NestedTransaction)));
    drop(txn);
    assert_eq!(store.snapshot().unwrap().get(b"a").unwrap(), None);
    store.begin().unwrap().commit().unwrap();
}

#[test]
fn a_body_that_panics_leaves_the_store_as_it_was_and_usable() {
    let store = Memory::new();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        store.transact(|txn| -> Result<()> {
            put(txn)?;
            panic!("the program's own mistake")
        })
    }));
    assert!(panicked.is_err());
    store.transact(|txn| txn.put(b"b", b"")).unwrap();
    assert_eq!(store.snapshot().unwrap().count(KeyRange::all()).unwrap(), 1);
}
