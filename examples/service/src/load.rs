//! A load generator: clients that open, close, read, list and search tickets, each on its own
//! connection, and compare every answer with a model.
//!
//! The tickets of a client belong to a customer and to a place that no other client uses, so its
//! model is exact while others write.

use std::cmp::Reverse;
use std::error::Error;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fastrand::Rng;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Method, Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;
use uuid::Uuid;

use crate::desk::{NewTicket, PAGE, Status, Ticket};
use crate::http::Listing;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The parameters of the clients.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The number of clients. Their customers are numbered from [`first`](Load::first) on.
    pub clients: u32,
    /// The customer of the first client.
    pub first: u32,
    /// The number of requests of each client.
    pub requests: usize,
    /// One in this many requests is abandoned: its connection is closed at a random time, and the
    /// request is repeated on another connection. 0 abandons none.
    pub abandons: u32,
}

/// The results of the clients.
#[derive(Debug, Default)]
pub struct Report {
    /// The time from the first request to the last answer.
    pub elapsed: Duration,
    /// The time of each request, ascending.
    pub latencies: Vec<Duration>,
    /// The number of requests whose connection was closed before their answer.
    pub abandoned: usize,
    /// All tickets that must be stored after the run.
    pub tickets: Vec<Ticket>,
}

impl Report {
    /// The number of answers per second.
    pub fn rate(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64()
    }

    /// The latency that this share of the requests does not exceed.
    pub fn latency(&self, share: f64) -> Duration {
        let last = self.latencies.len().saturating_sub(1);
        self.latencies.get((last as f64 * share) as usize).copied().unwrap_or_default()
    }
}

impl Load {
    /// Sends the requests to the server at `address`.
    ///
    /// # Errors
    /// An answer that differs from the model, or a failed request.
    pub async fn run(self, address: SocketAddr) -> Result<Report> {
        let began = Instant::now();
        let customers = self.first..self.first + self.clients;
        let clients: Vec<_> = customers
            .map(|customer| {
                tokio::spawn(Client::new(address, customer, self.abandons).run(self.requests))
            })
            .collect();
        let mut report = Report::default();
        for client in clients {
            let client = client.await??;
            report.latencies.extend(client.latencies);
            report.abandoned += client.abandoned;
            report.tickets.extend(client.tickets);
        }
        report.elapsed = began.elapsed();
        report.latencies.sort_unstable();
        Ok(report)
    }
}

/// A client, with the tickets of its customer.
#[derive(Debug)]
pub struct Client {
    address: SocketAddr,
    connection: Option<SendRequest<Full<Bytes>>>,
    customer: u32,
    abandons: u32,
    random: Rng,
    tickets: Vec<Ticket>,
    latencies: Vec<Duration>,
    abandoned: usize,
}

impl Client {
    /// Creates a client without tickets. One in `abandons` requests is abandoned, or none if
    /// `abandons` is 0.
    pub fn new(address: SocketAddr, customer: u32, abandons: u32) -> Self {
        Self {
            address,
            connection: None,
            customer,
            abandons,
            random: Rng::with_seed(customer.into()),
            tickets: Vec::new(),
            latencies: Vec::new(),
            abandoned: 0,
        }
    }

    async fn run(mut self, requests: usize) -> Result<Self> {
        for _ in 0..requests {
            match self.random.u32(..100) {
                _ if self.tickets.is_empty() => self.open().await?,
                0..20 => self.open().await?,
                20..30 => self.close().await?,
                30..70 => self.read().await?,
                70..90 => self.list().await?,
                90..95 => self.search().await?,
                _ => self.near().await?,
            }
        }
        Ok(self)
    }

    async fn open(&mut self) -> Result<()> {
        let number = self.tickets.len();
        let spot = place(self.customer);
        let new = NewTicket {
            customer: self.customer,
            title: title(self.customer, number),
            text: (0..20).filter_map(|_| self.random.choice(WORDS)).collect::<Vec<_>>().join(" "),
            // Up to about 100 m from the spot.
            latitude: spot.0 + self.random.f64() / 1_000.0,
            longitude: spot.1 + self.random.f64() / 1_000.0,
        };
        let id = Uuid::from_u128(self.random.u128(..));
        let body = serde_json::to_vec(&new)?;
        let (status, body) = self.send(Method::PUT, &format!("/tickets/{id}"), body).await?;
        // An abandoned request may have succeeded.
        let is_expected =
            status == StatusCode::CREATED || (self.abandons > 0 && status == StatusCode::OK);
        let ticket: Ticket = parsed(status, &body, is_expected)?;
        let NewTicket { customer, title, text, latitude, longitude } = new;
        let opened = ticket.opened;
        let expected =
            Ticket { id, customer, status: Status::Open, opened, title, text, latitude, longitude };
        equal(&ticket, &expected)?;
        self.tickets.push(ticket);
        Ok(())
    }

    /// Chooses a random ticket; there is at least one.
    fn one(&mut self) -> Result<Ticket> {
        Ok(self.random.choice(&self.tickets).ok_or("no ticket yet")?.clone())
    }

    async fn close(&mut self) -> Result<()> {
        let id = self.one()?.id;
        let (status, _) = self.send(Method::POST, &format!("/tickets/{id}/close"), vec![]).await?;
        equal(&status, &StatusCode::NO_CONTENT)?;
        let closed = self.tickets.iter_mut().filter(|ticket| ticket.id == id);
        closed.for_each(|ticket| ticket.status = Status::Closed);
        Ok(())
    }

    async fn read(&mut self) -> Result<()> {
        let expected = self.one()?;
        let ticket: Ticket = self.get(&format!("/tickets/{}", expected.id)).await?;
        equal(&ticket, &expected)
    }

    async fn list(&mut self) -> Result<()> {
        let path = format!("/customers/{}/tickets", self.customer);
        let listing: Listing = self.get(&path).await?;
        let mut expected: Vec<&Ticket> = self.tickets.iter().collect();
        expected.sort_unstable_by_key(|ticket| (Reverse(ticket.opened), ticket.id));
        expected.truncate(PAGE);
        equal(&listing.tickets.iter().collect::<Vec<_>>(), &expected)
    }

    /// The title of each ticket is a unique word.
    async fn search(&mut self) -> Result<()> {
        let expected = self.one()?;
        let listing: Listing = self.get(&format!("/search?query={}", expected.title)).await?;
        equal(&listing.tickets, &vec![expected])
    }

    async fn near(&mut self) -> Result<()> {
        let (latitude, longitude) = place(self.customer);
        let path = format!("/near?latitude={latitude}&longitude={longitude}&metres=1000");
        let listing: Listing = self.get(&path).await?;
        // In such a small area, this is the order of the distances.
        let stretch = latitude.to_radians().cos();
        let distance = |ticket: &Ticket| {
            (ticket.latitude - latitude).hypot((ticket.longitude - longitude) * stretch)
        };
        let mut expected: Vec<f64> = self.tickets.iter().map(distance).collect();
        expected.sort_unstable_by(f64::total_cmp);
        expected.truncate(PAGE);
        let found: Vec<f64> = listing.tickets.iter().map(distance).collect();
        // Tickets whose distances differ by less than a centimetre may change places.
        let is_equal = found.len() == expected.len()
            && found.iter().zip(&expected).all(|(found, expected)| (found - expected).abs() < 1e-7);
        if is_equal {
            Ok(())
        } else {
            Err(format!("found {found:?}, expected {expected:?}").into())
        }
    }

    async fn get<T: DeserializeOwned>(&mut self, path: &str) -> Result<T> {
        let (status, body) = self.send(Method::GET, path, Vec::new()).await?;
        parsed(status, &body, status == StatusCode::OK)
    }

    /// Sends a request and returns its answer.
    ///
    /// # Errors
    /// If there is no connection, or no answer.
    pub async fn send(
        &mut self,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<(StatusCode, Bytes)> {
        let body = Bytes::from(body);
        if self.abandons > 0 && self.random.u32(..self.abandons) == 0 {
            let time = Duration::from_micros(self.random.u64(..2_000));
            let sent = self.send_once(&method, path, &body);
            if tokio::time::timeout(time, sent).await.is_err() {
                self.connection = None;
                self.abandoned += 1;
            }
        }
        let began = Instant::now();
        let answer = self.send_once(&method, path, &body).await?;
        self.latencies.push(began.elapsed());
        Ok(answer)
    }

    async fn send_once(
        &mut self,
        method: &Method,
        path: &str,
        body: &Bytes,
    ) -> Result<(StatusCode, Bytes)> {
        // The connection is put back only after the whole answer, so that a connection with half an
        // answer is not reused.
        let open = match self.connection.take() {
            // A server closes a connection if it has not read the request to the end.
            Some(mut open) => open.ready().await.is_ok().then_some(open),
            None => None,
        };
        let mut connection = match open {
            Some(open) => open,
            None => connect(self.address).await?,
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, self.address.to_string())
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body.clone()))?;
        let answer = connection.send_request(request).await?;
        let status = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        self.connection = Some(connection);
        Ok((status, body))
    }
}

async fn connect(address: SocketAddr) -> Result<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // The task ends when the sender is dropped. Its errors also occur in the requests.
    drop(tokio::spawn(connection));
    Ok(sender)
}

/// Some words that are not stop words.
const WORDS: [&str; 24] = [
    "water",
    "door",
    "lamp",
    "kettle",
    "invoice",
    "refund",
    "Monday",
    "broken",
    "late",
    "parcel",
    "blue",
    "chair",
    "table",
    "window",
    "key",
    "lost",
    "found",
    "street",
    "noise",
    "garden",
    "winter",
    "heating",
    "cold",
    "neighbour",
];

/// A unique word.
fn title(customer: u32, number: usize) -> String {
    format!("c{customer}n{number}")
}

/// A place far from the places of all other customers.
fn place(customer: u32) -> (f64, f64) {
    (f64::from(customer % 120) - 60.0, f64::from(customer / 120 % 360) - 180.0)
}

fn parsed<T: DeserializeOwned>(status: StatusCode, body: &Bytes, is_expected: bool) -> Result<T> {
    match is_expected {
        true => Ok(serde_json::from_slice(body)?),
        false => Err(format!("{status}: {}", String::from_utf8_lossy(body)).into()),
    }
}

fn equal<T: PartialEq + Debug>(found: &T, expected: &T) -> Result<()> {
    match found == expected {
        true => Ok(()),
        false => Err(format!("found {found:?}, expected {expected:?}").into()),
    }
}
