//! The tickets of a help desk, and the operations on them.
//!
//! All async methods of [`Desk`] run their closure on a thread of the store, so no thread of the
//! runtime waits for a disk or a server.

use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::Stream;
use keyloom::{AsyncStore, Result, Store};
use keyloom_patterns::locking::WorkQueue;
use keyloom_patterns::locking::queue::{NewJob, Stop, WorkOptions, WorkReport};
use keyloom_patterns::spatial::Circle;
use keyloom_patterns::text::Query;
use keyloom_patterns::{Analyzer, Continuation, Inconsistency, Key, Page, Record, Schema};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Number of items on a page.
pub const PAGE: usize = 20;
/// Limit on the terms of a search, including the expansions of its patterns: a stranger's query
/// must not read the whole index.
const TERMS: usize = 64;

/// Whether a ticket needs an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Key)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The ticket needs an answer.
    #[key(0)]
    Open,
    /// The ticket has been answered.
    #[key(1)]
    Closed,
}

/// A new ticket as sent by a customer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewTicket {
    /// The number of the customer.
    pub customer: u32,
    /// The title, one line.
    pub title: String,
    /// The full text.
    pub text: String,
    /// Degrees north.
    pub latitude: f64,
    /// Degrees east.
    pub longitude: f64,
}

/// A ticket, as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(table = "tickets", key(id))]
#[record(index(by_customer = (customer, desc(opened))))]
#[record(points(by_position = (latitude, longitude)))]
#[record(text(by_words = (title, text), analyzer = Analyzer::english()))]
pub struct Ticket {
    /// The id is chosen by the client, so that a request may be repeated.
    pub id: Uuid,
    /// The number of the customer.
    pub customer: u32,
    /// Whether the ticket needs an answer.
    pub status: Status,
    /// The opening time, in milliseconds since 1970.
    pub opened: u64,
    /// The title, one line.
    pub title: String,
    /// The full text.
    pub text: String,
    /// Degrees north.
    pub latitude: f64,
    /// Degrees east.
    pub longitude: f64,
}

impl Ticket {
    fn new(id: Uuid, new: NewTicket, opened: u64) -> Self {
        let NewTicket { customer, title, text, latitude, longitude } = new;
        Self { id, customer, status: Status::Open, opened, title, text, latitude, longitude }
    }

    /// Whether this ticket was opened by the same request before.
    fn is_of(&self, new: &NewTicket) -> bool {
        let content = (self.customer, &self.title, &self.text, self.latitude, self.longitude);
        content == (new.customer, &new.title, &new.text, new.latitude, new.longitude)
    }
}

/// A mail that confirms a ticket.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Mail {
    /// The number of the customer.
    pub customer: u32,
    /// The ticket.
    pub ticket: Uuid,
}

/// The result of [`Desk::open_ticket`].
#[derive(Clone, Debug, PartialEq)]
pub enum Opened {
    /// The ticket is new.
    New(Ticket),
    /// The same request was made before.
    Repeated(Ticket),
    /// Another ticket has this id.
    Taken,
}

/// The help desk.
#[derive(Debug)]
pub struct Desk<S: Store> {
    store: AsyncStore<S>,
    tickets: TicketTable,
    mails: WorkQueue<Mail>,
}

// A derived `Clone` would require that the store can be cloned.
impl<S: Store> Clone for Desk<S> {
    fn clone(&self) -> Self {
        let Self { store, tickets, mails } = self;
        Self { store: store.clone(), tickets: tickets.clone(), mails: mails.clone() }
    }
}

impl<S: Store> Desk<S> {
    /// Opens the desk in `store`. This call blocks, so make it before the runtime serves requests.
    ///
    /// # Errors
    /// The errors of [`Schema::open`] and of declarations, for example if a program with another
    /// shape of tickets has written the store.
    pub fn open(store: AsyncStore<S>) -> Result<Self> {
        let schema = Schema::open(store.blocking(), "desk")?;
        let tickets = TicketTable::declare(&schema)?;
        let mails = WorkQueue::open(&schema, "mails")?;
        Ok(Self { store, tickets, mails })
    }

    /// The store.
    pub fn store(&self) -> &AsyncStore<S> {
        &self.store
    }

    /// Opens a ticket, and queues its mail in the same transaction.
    ///
    /// # Errors
    /// The errors of [`AsyncStore::transact`].
    pub async fn open_ticket(&self, id: Uuid, new: NewTicket) -> Result<Opened> {
        let (tickets, mails) = (self.tickets.clone(), self.mails.clone());
        let opened = now();
        self.store
            .transact(move |txn| {
                if let Some(stored) = tickets.get(txn, &id)? {
                    let is_repeated = stored.is_of(&new);
                    return Ok(if is_repeated { Opened::Repeated(stored) } else { Opened::Taken });
                }
                let ticket = Ticket::new(id, new.clone(), opened);
                tickets.put_record(txn, &ticket)?;
                let mail = Mail { customer: ticket.customer, ticket: id };
                mails.enqueue(txn, NewJob::new(ticket.customer.to_string(), mail))?;
                Ok(Opened::New(ticket))
            })
            .await
    }

    /// Closes a ticket. Returns whether the ticket exists. Closing a closed ticket changes nothing,
    /// so a request may be repeated.
    ///
    /// # Errors
    /// The errors of [`AsyncStore::transact`].
    pub async fn close_ticket(&self, id: Uuid) -> Result<bool> {
        let tickets = self.tickets.clone();
        self.store
            .transact(move |txn| {
                let Some(ticket) = tickets.get(txn, &id)? else { return Ok(false) };
                if ticket.status == Status::Open {
                    tickets.put_record(txn, &Ticket { status: Status::Closed, ..ticket })?;
                }
                Ok(true)
            })
            .await
    }

    /// Returns the ticket with this id, if it exists.
    ///
    /// # Errors
    /// The errors of [`AsyncStore::read`].
    pub async fn ticket(&self, id: Uuid) -> Result<Option<Ticket>> {
        let tickets = self.tickets.clone();
        self.store.read(move |snapshot| tickets.get(snapshot, &id)).await
    }

    /// Returns a page of the tickets of a customer, newest first.
    ///
    /// # Errors
    /// The errors of [`AsyncStore::read`].
    pub async fn of_customer(
        &self,
        customer: u32,
        after: Option<Continuation>,
    ) -> Result<Page<Ticket>> {
        let tickets = self.tickets.clone();
        let read = self.store.read(move |snapshot| {
            let query = tickets.by_customer.query().prefix((customer,)).limit(PAGE);
            query.after(after.as_ref()).records(snapshot)
        });
        let Page { items, next } = read.await?;
        Ok(Page { items: items.into_iter().map(|(_, ticket)| ticket).collect(), next })
    }

    /// Returns a page of the tickets that match `query`, best first.
    ///
    /// # Errors
    /// The errors of [`AsyncStore::read`].
    pub async fn search(&self, query: Query, after: Option<Continuation>) -> Result<Page<Ticket>> {
        let tickets = self.tickets.clone();
        let read = self.store.read(move |snapshot| {
            let search = tickets.by_words(snapshot)?.search(query).max_terms(TERMS);
            let search = search.limit(PAGE).after(after);
            search.records(snapshot, &tickets)
        });
        let Page { items, next } = read.await?;
        Ok(Page { items: items.into_iter().map(|hit| hit.value).collect(), next })
    }

    /// Returns a page of the tickets in a circle, nearest to its centre first.
    ///
    /// # Errors
    /// The errors of [`AsyncStore::read`].
    pub async fn near(&self, circle: Circle, after: Option<Continuation>) -> Result<Page<Ticket>> {
        let tickets = self.tickets.clone();
        let read = self.store.read(move |snapshot| {
            let query = tickets.by_position(snapshot)?.within(circle);
            let after = after.as_ref();
            let centre = circle.centre();
            let page = query.records_by_distance(snapshot, centre, &tickets, PAGE, after)?;
            let items = page.items.into_iter().filter_map(|(_, ticket)| ticket).collect();
            Ok(Page { items, next: page.next })
        });
        read.await
    }

    /// Returns all tickets in order of their ids, read page by page.
    pub fn all(&self) -> impl Stream<Item = Result<Ticket>> + Send + use<S> {
        let tickets = self.tickets.clone();
        self.store.stream(move |snapshot, after: Option<Continuation>| {
            let page = tickets.page(snapshot, .., 500, after.as_ref())?;
            Ok((page.items.into_iter().map(|(_, ticket)| ticket).collect(), page.next))
        })
    }

    /// Compares the indexes and the queue with the tickets and jobs from which they are derived.
    /// Blocks the calling thread.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn check(&self) -> Result<Vec<Inconsistency>> {
        let snapshot = self.store.blocking().snapshot()?;
        let Self { tickets, mails, .. } = self;
        let found = [
            tickets.by_customer.check(&snapshot)?,
            tickets.by_position.check(&snapshot)?,
            tickets.by_words.check(&snapshot)?,
            mails.check(&snapshot)?,
        ];
        Ok(found.concat())
    }

    /// Sends the mails of the queue with `send`, until `stop`. Blocks the calling thread, which
    /// must not be a thread of the runtime. If `send` fails, the mail is sent again later.
    ///
    /// # Errors
    /// The errors of [`WorkQueue::work`].
    pub fn send_mails<E: std::fmt::Display>(
        &self,
        stop: &Stop,
        mut send: impl FnMut(&Mail) -> std::result::Result<(), E>,
    ) -> Result<WorkReport> {
        let options = WorkOptions { batch: 16, ..WorkOptions::default() };
        self.mails
            .work(self.store.blocking(), stop, &options, |delivery| send(&delivery.job.payload))
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
