//! The routes of a peer, with the bodies and status codes of the example.

use std::fmt::Display;
use std::future::Future;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use keyloom_service::desk::{NewTicket, Opened, PAGE, Status, Ticket};
use keyloom_service::http::Listing;
use serde::Deserialize;
use uuid::Uuid;

/// A first page of tickets; the load reads no other pages.
type Tickets<E> = Result<Vec<Ticket>, E>;

/// The operations of the service, on one kind of database.
pub trait Peer: Clone + Send + Sync + 'static {
    type Error: Display;

    fn open_ticket(
        &self,
        ticket: Ticket,
    ) -> impl Future<Output = Result<Opened, Self::Error>> + Send;
    fn close_ticket(&self, id: Uuid) -> impl Future<Output = Result<bool, Self::Error>> + Send;
    fn ticket(&self, id: Uuid) -> impl Future<Output = Result<Option<Ticket>, Self::Error>> + Send;
    fn of_customer(&self, customer: u32) -> impl Future<Output = Tickets<Self::Error>> + Send;
    fn search(&self, words: String) -> impl Future<Output = Tickets<Self::Error>> + Send;
    /// All tickets in a box that contains the circle.
    fn within(&self, bounds: Bounds) -> impl Future<Output = Tickets<Self::Error>> + Send;
}

/// Degrees: the least and the greatest latitude, and longitude.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub latitudes: [f64; 2],
    pub longitudes: [f64; 2],
}

pub fn routes<P: Peer>(peer: P) -> Router {
    Router::new()
        .route("/tickets/{id}", get(ticket::<P>).put(open::<P>))
        .route("/tickets/{id}/close", post(close::<P>))
        .route("/customers/{customer}/tickets", get(of_customer::<P>))
        .route("/search", get(search::<P>))
        .route("/near", get(near::<P>))
        .with_state(peer)
}

fn failed(error: impl Display) -> (StatusCode, String) {
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}

type Answer<T> = Result<T, (StatusCode, String)>;

fn now() -> u64 {
    let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    since.as_millis() as u64
}

async fn open<P: Peer>(
    State(peer): State<P>,
    Path(id): Path<Uuid>,
    Json(new): Json<NewTicket>,
) -> Answer<Response> {
    let NewTicket { customer, title, text, latitude, longitude } = new;
    let (status, opened) = (Status::Open, now());
    let ticket = Ticket { id, customer, status, opened, title, text, latitude, longitude };
    Ok(match peer.open_ticket(ticket).await.map_err(failed)? {
        Opened::New(ticket) => (StatusCode::CREATED, Json(ticket)).into_response(),
        Opened::Repeated(ticket) => Json(ticket).into_response(),
        Opened::Taken => StatusCode::CONFLICT.into_response(),
    })
}

async fn ticket<P: Peer>(
    State(peer): State<P>,
    Path(id): Path<Uuid>,
) -> Answer<Result<Json<Ticket>, StatusCode>> {
    Ok(peer.ticket(id).await.map_err(failed)?.map(Json).ok_or(StatusCode::NOT_FOUND))
}

async fn close<P: Peer>(State(peer): State<P>, Path(id): Path<Uuid>) -> Answer<StatusCode> {
    Ok(match peer.close_ticket(id).await.map_err(failed)? {
        true => StatusCode::NO_CONTENT,
        false => StatusCode::NOT_FOUND,
    })
}

fn listing(tickets: Vec<Ticket>) -> Json<Listing> {
    Json(Listing { tickets, next: None })
}

async fn of_customer<P: Peer>(
    State(peer): State<P>,
    Path(customer): Path<u32>,
) -> Answer<Json<Listing>> {
    Ok(listing(peer.of_customer(customer).await.map_err(failed)?))
}

#[derive(Debug, Deserialize)]
struct Words {
    query: String,
}

async fn search<P: Peer>(
    State(peer): State<P>,
    Query(words): Query<Words>,
) -> Answer<Json<Listing>> {
    Ok(listing(peer.search(words.query).await.map_err(failed)?))
}

#[derive(Debug, Deserialize)]
struct Around {
    latitude: f64,
    longitude: f64,
    metres: f64,
}

/// Metres of a degree of latitude.
const DEGREE: f64 = 111_195.0;

async fn near<P: Peer>(
    State(peer): State<P>,
    Query(around): Query<Around>,
) -> Answer<Json<Listing>> {
    let Around { latitude, longitude, metres } = around;
    let north = metres / DEGREE;
    let stretch = latitude.to_radians().cos();
    let bounds = Bounds {
        latitudes: [latitude - north, latitude + north],
        longitudes: [longitude - north / stretch, longitude + north / stretch],
    };
    let mut found = peer.within(bounds).await.map_err(failed)?;
    let distance = |ticket: &Ticket| {
        let [a, b] = [latitude, ticket.latitude].map(f64::to_radians);
        let [north, east] = [b - a, (ticket.longitude - longitude).to_radians()];
        let half = (north / 2.0).sin().powi(2) + a.cos() * b.cos() * (east / 2.0).sin().powi(2);
        2.0 * 6_371_008.8 * half.sqrt().asin()
    };
    found.retain(|ticket| distance(ticket) <= metres);
    found.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
    found.truncate(PAGE);
    Ok(listing(found))
}
