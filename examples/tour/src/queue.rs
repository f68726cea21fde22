//! Mails to the largest cities of a region, sent by a worker that may send three at once.

use std::thread::{self, sleep};
use std::time::Duration;

use keyloom::{Error, Result, Store};
use keyloom_patterns::locking::WorkQueue;
use keyloom_patterns::locking::queue::{
    Answer, Delivery, Enqueued, Failed, NewJob, Stop, WorkOptions,
};
use keyloom_patterns::locking::rate_limit::{RateLimit, Take};

use crate::cities::Cities;
use crate::options::Options;
use crate::report::{act, say};
use crate::{About, Step, Tour, TourResult, TourStore};

pub const ABOUT: About = About {
    name: "work queue, and a rate limit",
    title: "Hand work to other programs, at a limited rate",
    chapter: "book/src/queue.md",
    layout: "(mails.jobs.by_state, state, tenant, priority, time, job)",
    data: &[
        "mails.done",
        "mails.done.by_deadline",
        "mails.jobs",
        "mails.jobs.by_key",
        "mails.jobs.by_state",
        "mails.payloads",
        "mails.tenants",
        "mails.tenants.by_turn",
        "mails_sent",
    ],
    shown: "A worker sends",
};

const MAILS: usize = 5;
/// The time that a worker waits for a mail.
const IDLE: Duration = Duration::from_millis(50);
const SENDER: &str = "town hall";
/// The permits, and the time in which all of them come back: short, since the tour waits for them.
const RATE: (u32, Duration) = (3, Duration::from_millis(300));

pub struct Mails {
    cities: Cities,
    queue: WorkQueue<String>,
    rate: RateLimit<String>,
}

impl Mails {
    pub fn new(tour: &Tour<'_>) -> Result<Self> {
        let queue = WorkQueue::open(&tour.schema, "mails")?;
        let rate = RateLimit::open(&tour.schema, "mails_sent", RATE.0, RATE.1)?;
        Ok(Self { cities: tour.cities.clone(), queue, rate })
    }

    /// Sends a mail: takes a permit, and completes the job, in one transaction. Returns how long
    /// the worker must wait if there is no permit.
    fn send(&self, store: &TourStore, mail: &Delivery<String>) -> Result<Option<Duration>> {
        store.transact(|txn| match self.rate.take(txn, &SENDER.to_owned(), 1)? {
            Take::Granted { .. } => self.queue.complete(txn, mail).map(|()| None),
            Take::Refused { retry_in } => self.queue.release(txn, mail).map(|()| Some(retry_in)),
        })
    }

    /// Sends all mails. Returns the number sent before each wait.
    fn send_all(&self, store: &TourStore) -> TourResult<Vec<usize>> {
        let mut sent = vec![0];
        while let [mail] = &self.queue.dequeue(store, 1)?[..] {
            match self.send(store, mail)? {
                None => *sent.last_mut().ok_or("no round")? += 1,
                Some(wait) => {
                    sleep(wait);
                    sent.push(0);
                }
            }
        }
        Ok(sent)
    }
}

impl Step for Mails {
    /// Empties the queue in each run, so that there are as many jobs each time.
    fn load(&self, store: &TourStore, _: &Options) -> TourResult {
        self.send_all(store)?;
        store.transact(|txn| self.rate.reset(txn, &SENDER.to_owned()))?;
        say!("an empty queue, and all permits");
        Ok(())
    }

    fn ask(&self, store: &TourStore) -> TourResult {
        let snapshot = store.snapshot()?;
        let region = ("FR".to_owned(), "11".to_owned());
        let largest = self.cities.by_size.query().prefix(region).limit(MAILS).records(&snapshot)?;
        let largest: Vec<String> = largest.items.into_iter().map(|(_, city)| city.name).collect();
        drop(snapshot);
        act(store, "Five mails are enqueued in the transaction that causes them:", |store| {
            store.transact(|txn| {
                largest.iter().try_for_each(|city| {
                    self.queue.enqueue(txn, (SENDER, format!("to {city}"))).map(drop)
                })
            })?;
            Ok(vec![format!("{MAILS} jobs")])
        })?;
        act(store, "A worker sends them, three in 0.3 s:", |store| {
            let sent = self.send_all(store)?;
            let first = sent.first().ok_or("no round")?;
            let (all, waits) = (sent.iter().sum::<usize>(), sent.len() - 1);
            Ok(vec![format!("{first} sent at once, {all} after {waits} waits for a permit")])
        })?;
        act(store, "A mail that repeats each week waits after it is sent:", |store| {
            let mail = NewJob::new(SENDER, "the list of the week".to_owned());
            let mail = mail.repeat_every(Duration::from_secs(7 * 24 * 60 * 60)).key("weekly");
            let id = store.transact(|txn| match self.queue.enqueue(txn, mail.clone())? {
                Enqueued::New(id) => Ok(id),
                // The job of a run that was interrupted here waits for its next week.
                Enqueued::Existing(id) => {
                    self.queue.delete(txn, id)?;
                    Ok(self.queue.enqueue(txn, mail.clone())?.id())
                }
            })?;
            let sent = self.queue.dequeue(store, 1)?;
            store
                .transact(|txn| sent.iter().try_for_each(|mail| self.queue.complete(txn, mail)))?;
            let again = self.queue.dequeue(store, 1)?.len();
            // The next run of the tour begins with an empty queue again.
            store.transact(|txn| self.queue.delete(txn, id).map(drop))?;
            Ok(vec![format!("{} delivered, then {again}", sent.len())])
        })?;
        act(
            store,
            "A mail whose sending fails is not delivered again at once: (back-off)",
            |store| {
                let mail = (SENDER, "to nowhere".to_owned());
                let id = store.transact(|txn| self.queue.enqueue(txn, mail.clone()))?.id();
                let [mail] = &self.queue.dequeue(store, 1)?[..] else {
                    return Err("not delivered".into());
                };
                let failed = store.transact(|txn| self.queue.fail(txn, mail, "no such address"))?;
                let again = self.queue.dequeue(store, 1)?.len();
                store.transact(|txn| self.queue.delete(txn, id).map(drop))?;
                let outcome = match failed {
                    Failed::RetryAt(_) => "waits for 0.5 to 1 s",
                    Failed::Dead => "is dead",
                };
                Ok(vec![format!("{outcome}; {again} delivered now")])
            },
        )?;
        act(store, "A mail wakes a worker that waits for one: (wake-up)", |store| {
            let (stop, mail) = (Stop::new(), (SENDER, "to the last city".to_owned()));
            let work = || {
                self.queue.work(store, &stop, &WorkOptions::default(), |_mail| {
                    stop.request();
                    Answer::Complete
                })
            };
            let report = thread::scope(|scope| {
                let worker = scope.spawn(work);
                sleep(IDLE);
                let enqueued = store.transact(|txn| self.queue.enqueue(txn, mail.clone()));
                if enqueued.is_err() {
                    stop.request();
                }
                enqueued.and(worker.join().unwrap_or_else(|_| Err(Error::other("it panicked"))))
            })?;
            Ok(vec![format!("{} sent by an idle worker", report.completed)])
        })
    }
}
