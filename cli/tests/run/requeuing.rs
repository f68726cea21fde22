//! `queues --requeue`: dead letters wait again, and the queue stays sound.

use std::time::Duration;

use keyloom::value::shape::Shape;
use keyloom::value::{Codec, Json, Plain, Postcard, Upgrade, Upgrading};
use keyloom::{KeyRange, Lmdb, Order, Reader, Store, Writer, pack};
use keyloom_locking::WorkQueue;
use keyloom_locking::queue::{JobId, NewJob, Priority, QueueOptions};
use keyloom_tables::{Schema, entry};
use serde::{Deserialize, Serialize};

use crate::support::{Directory, Ran, fine, run};

/// A queue whose tenants fall asleep as soon as they have no job to deliver.
fn open<J: 'static, C: Codec<J>>(store: &impl Store, name: &str) -> WorkQueue<J, C> {
    let options = QueueOptions { linger: Duration::ZERO, ..QueueOptions::default() };
    WorkQueue::open_with(&Schema::open(store, "shop").unwrap(), name, options).unwrap()
}

/// Enqueues jobs, and makes dead letters of them. Returns their ids.
fn bury<J: 'static, C: Codec<J>>(
    store: &Lmdb,
    queue: &WorkQueue<J, C>,
    payloads: Vec<J>,
) -> Vec<JobId> {
    let count = payloads.len();
    for (n, payload) in payloads.into_iter().enumerate() {
        let job = NewJob::new(format!("tenant {}", n % 3), payload).priority(Priority::High);
        let job = job.key(format!("key {n}")).max_attempts(2);
        let job = std::cell::Cell::new(Some(job));
        store.transact(|txn| queue.enqueue(txn, job.take().unwrap())).unwrap();
    }
    let mut ids = Vec::new();
    while ids.len() < count {
        for one in queue.dequeue(store, count).unwrap() {
            store.transact(|txn| queue.bury(txn, &one, "no route")).unwrap();
            ids.push(one.id);
        }
    }
    // Tenants without a job to deliver are removed.
    assert!(queue.dequeue(store, 1).unwrap().is_empty());
    ids
}

fn requeue(address: &str, name: &str, what: &str) -> Ran {
    run(&["queues", address, name, "--requeue", what, "--write"])
}

fn counts<J: 'static, C: Codec<J>>(store: &Lmdb, queue: &WorkQueue<J, C>) -> (u64, u64) {
    let snapshot = store.snapshot().unwrap();
    assert_eq!(queue.check(&snapshot).unwrap(), []);
    let counts = queue.counts(&snapshot, None).unwrap();
    (counts.ready, counts.dead)
}

/// The entries of the schemas.
fn definitions(store: &Lmdb) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (snapshot, prefix) = (store.snapshot().unwrap(), pack("keyloom"));
    let all = snapshot.range(KeyRange::children(&prefix), Order::Ascending).unwrap();
    all.map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect()
}

#[test]
fn a_dead_letter_is_delivered_again() {
    let directory = Directory::new();
    let address = directory.address("lmdb", "lmdb");
    let store = Lmdb::open(directory.path().join("lmdb")).unwrap();
    let mails = open::<String, Postcard>(&store, "mails");
    let ids = bury(&store, &mails, vec!["to Ada".into(), "to Grace".into()]);
    let before = definitions(&store);
    let payload = mails.get(&store.snapshot().unwrap(), ids[0]).unwrap().unwrap().payload;
    let listed = fine(&["queues", &address, "mails", "--state", "dead"]);
    let id = listed.lines().find(|line| line.contains(&ids[0].to_string())).unwrap();
    let id = id.split_whitespace().nth(1).unwrap();

    let refused = run(&["queues", &address, "mails", "--requeue", id]);
    assert!(refused.code == 2 && refused.err.contains("--write"), "{}", refused.err);
    assert_eq!(counts(&store, &mails), (0, 2));
    let ran = requeue(&address, "mails", id);
    assert_eq!((ran.code, &*ran.out), (0, "requeued 1 job of mails\n"), "{}", ran.err);
    assert_eq!(counts(&store, &mails), (1, 1));
    assert_eq!(definitions(&store), before);
    assert_eq!(run(&["check", &address]).code, 0);

    let again = requeue(&address, "mails", &ids[0].to_string());
    assert!(again.code == 2 && again.err.contains("waits already"), "{}", again.err);
    let delivered = mails.dequeue(&store, 10).unwrap();
    let [one] = &delivered[..] else { panic!("{delivered:?}") };
    assert_eq!((one.id, one.job.attempts, &one.job.payload), (ids[0], 1, &payload));
    assert_eq!((one.job.priority, one.token), (Priority::High, 2));
    let leased = requeue(&address, "mails", id);
    assert!(leased.code == 2 && leased.err.contains("a consumer has it"), "{}", leased.err);
    store.transact(|txn| mails.complete(txn, one)).unwrap();
    for (id, why) in [(id, "no such job"), ("(1,)", "not the id of a job"), ("x", "not usable")] {
        let gone = requeue(&address, "mails", id);
        assert!(gone.code == 2 && gone.err.contains(why), "{}", gone.err);
    }
    assert_eq!(counts(&store, &mails), (0, 1));
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Mail {
    to: String,
    text: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Parcel {
    to: String,
    grams: u32,
}

impl Upgrade for Parcel {
    const VERSION: u8 = 1;
    type From = Plain<Mail>;
    fn upgrade(old: Mail) -> Result<Self, keyloom::BoxedError> {
        Ok(Self { to: old.to, grams: 0 })
    }
}

/// All dead letters of a queue, with payloads of each codec.
#[test]
fn all_dead_letters_are_requeued_whatever_the_codec() {
    let directory = Directory::new();
    let address = directory.address("lmdb", "lmdb");
    let store = Lmdb::open(directory.path().join("lmdb")).unwrap();
    let mail = Mail { to: "Ada".into(), text: None };
    let parcel = Parcel { to: "Ada".into(), grams: 7 };
    all_of::<Mail, Postcard>(&store, &address, "mails", &mail);
    all_of::<Mail, Json>(&store, &address, "letters", &mail);
    all_of::<Parcel, Upgrading<Postcard>>(&store, &address, "parcels", &parcel);
    all_of::<Vec<u8>, keyloom::value::Raw>(&store, &address, "bytes", &vec![0xFF]);
}

fn all_of<J, C: Codec<J>>(store: &Lmdb, address: &str, name: &str, payload: &J)
where
    J: Clone + PartialEq + std::fmt::Debug + 'static,
{
    let queue = open::<J, C>(store, name);
    bury(store, &queue, vec![payload.clone(); 70]);
    store.transact(|txn| queue.enqueue(txn, ("waits", payload.clone()))).unwrap();
    let json = fine(&["queues", address, name, "--requeue=all", "--write", "--json"]);
    assert_eq!(json, format!("{{\"queue\":\"{name}\",\"requeued\":70,\"schema\":\"shop\"}}\n"));
    assert_eq!(counts(store, &queue), (71, 0));
    let delivered = queue.dequeue(store, 100).unwrap();
    assert!(delivered.iter().all(|one| one.job.payload == *payload), "{name}");
    let none = requeue(address, name, "all");
    assert_eq!(none.out, format!("requeued 0 jobs of {name}\n"), "{}", none.err);
}

/// A codec that the command does not know.
struct Own;

impl Codec<String> for Own {
    fn encode(value: &String, out: &mut Vec<u8>) -> keyloom::Result<()> {
        Postcard::encode(value, out)
    }

    fn decode(bytes: &[u8]) -> keyloom::Result<String> {
        Postcard::decode(bytes)
    }

    fn shape() -> keyloom::Result<Shape> {
        Ok(Shape::named("own", 1))
    }
}

#[test]
fn a_queue_that_only_its_program_can_change_is_refused() {
    let directory = Directory::new();
    let address = directory.address("lmdb", "lmdb");
    let store = Lmdb::open(directory.path().join("lmdb")).unwrap();
    let schema = Schema::open(&store, "shop").unwrap();
    let mails = WorkQueue::<String>::open(&schema, "mails").unwrap();
    bury(&store, &mails, vec!["to Ada".into()]);
    let by_attempts = schema.index(mails.jobs(), "by_attempts", 1, |_, job| entry(job.attempts));
    by_attempts.unwrap().build(&store).unwrap();
    let before = definitions(&store);
    let ran = requeue(&address, "mails", "all");
    let names = ran.err.contains("\"by_attempts\"") && ran.err.contains("WorkQueue::requeue");
    assert!(ran.code == 2 && names, "{}", ran.err);
    assert_eq!(definitions(&store), before);

    let own = open::<String, Own>(&store, "own");
    bury(&store, &own, vec!["to Ada".into()]);
    let ran = requeue(&address, "own", "all");
    assert!(ran.code == 2 && ran.err.contains("the codec Own"), "{}", ran.err);
    assert_eq!(counts(&store, &own), (0, 1));

    // A dead letter without a payload cannot be delivered.
    let other = open::<String, Postcard>(&store, "other");
    let ids = bury(&store, &other, vec!["to Ada".into()]);
    store.transact(|txn| txn.delete(&other.payloads().space().pack(&ids[0]))).unwrap();
    let ran = requeue(&address, "other", &ids[0].to_string());
    assert!(ran.code == 2 && ran.err.contains("no payload"), "{}", ran.err);
    let ran = requeue(&address, "shop/other", "all");
    assert_eq!((ran.code, &*ran.out), (1, "requeued 0 jobs of other\n"), "{}", ran.err);
    assert!(ran.err.contains("payload, which stay: 1; call `WorkQueue::repair`"), "{}", ran.err);
    // A table that the queue of another version of the library does not have is not added.
    Schema::open(&store, "shop").unwrap().drop_table("other.done").unwrap();
    let before = definitions(&store);
    let ran = requeue(&address, "other", "all");
    assert!(ran.code == 2 && ran.err.contains("add \"other.done\""), "{}", ran.err);
    assert_eq!(definitions(&store), before);
    assert_eq!(requeue(&address, "nothing", "all").code, 2);
    assert_eq!(run(&["queues", &address, "--requeue=all", "--write"]).code, 2);
    assert_eq!(run(&["queues", &address, "other", "--write"]).code, 2);
    let ran = run(&["queues", &address, "other", "--requeue=all", "--write", "-n1"]);
    assert!(ran.code == 2 && ran.err.contains("cannot be used with"), "{}", ran.err);
}

#[test]
fn an_error_says_how_many_jobs_were_requeued() {
    let directory = Directory::new();
    let address = directory.address("lmdb", "lmdb");
    let store = Lmdb::open(directory.path().join("lmdb")).unwrap();
    let mails = open::<String, Postcard>(&store, "mails");
    let mut ids = bury(&store, &mails, vec!["to Ada".into(); 5]);
    ids.sort();
    let fourth = mails.jobs().space().pack(&ids[3]);
    store.transact(|txn| txn.put(&fourth, b"\xFF")).unwrap();
    let ran = requeue(&address, "mails", "all");
    assert!(ran.code == 2 && ran.err.contains("; 3 jobs were requeued"), "{}", ran.err);
}
