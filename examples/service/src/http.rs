//! The routes of the help desk.
//!
//! | request | answer |
//! |---|---|
//! | `PUT /tickets/{id}` with a [`NewTicket`] | 201 and the ticket; 200 if repeated; 409 if taken |
//! | `GET /tickets/{id}` | the ticket, or 404 |
//! | `POST /tickets/{id}/close` | 204, also if it was closed before; or 404 |
//! | `GET /customers/{customer}/tickets` | a [`Listing`], the newest first |
//! | `GET /search?query=tea` | a [`Listing`], the best first |
//! | `GET /near?latitude=46.9&longitude=7.4&metres=500` | a [`Listing`], the nearest first |
//! | `GET /export` | all tickets, a line of JSON each |
//!
//! A [`Listing`] with `next` has more pages: repeat the request with `after=` and this value.
//! Status 400 means that the request is invalid; the body contains the reason. Status 503 means
//! that the client should repeat the request.

use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use futures_util::{StreamExt as _, TryStreamExt as _};
use keyloom::{Error, Store};
use keyloom_patterns::spatial::{Circle, LatLng};
use keyloom_patterns::text::{QueryParser, TextError};
use keyloom_patterns::{Continuation, Page};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::desk::{Desk, NewTicket, Opened, Ticket};

/// A page of tickets.
#[derive(Debug, Serialize, Deserialize)]
pub struct Listing {
    /// The tickets.
    pub tickets: Vec<Ticket>,
    /// The parameter `after` of the next page, if there is one.
    pub next: Option<String>,
}

impl From<Page<Ticket>> for Listing {
    fn from(page: Page<Ticket>) -> Self {
        let next = page.next.map(|next| BASE64.encode(next.as_bytes()));
        Self { tickets: page.items, next }
    }
}

/// An error, as an HTTP response.
#[derive(Debug)]
enum Failure {
    /// The request is invalid, for this reason.
    Request(String),
    Store(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let is_of_search = match error.downcast_ref() {
            Some(
                TextError::TooManyTerms { .. }
                | TextError::TooManyScannedTerms { .. }
                | TextError::TooManySpans { .. }
                | TextError::UnknownField { .. },
            ) => true,
            // The others are faults of the index or of this program.
            Some(_) | None => false,
        };
        match error {
            Error::InvalidArgument { .. } => Self::Request(error.to_string()),
            _ if is_of_search => Self::Request(error.to_string()),
            error => Self::Store(error),
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let error = match self {
            Self::Request(why) => return (StatusCode::BAD_REQUEST, why).into_response(),
            Self::Store(error) => error,
        };
        // The reason is for the log: it may name keys of other customers.
        eprintln!("{error}");
        let is_passing = error.is_retryable()
            || error.maybe_committed()
            || matches!(error, Error::RetriesExhausted { .. } | Error::WriterBusy { .. });
        // Each request contains the id of its ticket, so it may be repeated.
        match is_passing {
            true => (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "1")]).into_response(),
            false => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }
}

type Answer<T> = Result<T, Failure>;

/// The routes, for a server.
pub fn routes<S: Store>(desk: Desk<S>) -> Router {
    Router::new()
        .route("/tickets/{id}", get(ticket::<S>).put(open::<S>))
        .route("/tickets/{id}/close", post(close::<S>))
        .route("/customers/{customer}/tickets", get(of_customer::<S>))
        .route("/search", get(search::<S>))
        .route("/near", get(near::<S>))
        .route("/export", get(export::<S>))
        .with_state(desk)
}

async fn open<S: Store>(
    State(desk): State<Desk<S>>,
    Path(id): Path<Uuid>,
    Json(new): Json<NewTicket>,
) -> Answer<Response> {
    position(new.latitude, new.longitude)?;
    Ok(match desk.open_ticket(id, new).await? {
        Opened::New(ticket) => (StatusCode::CREATED, Json(ticket)).into_response(),
        Opened::Repeated(ticket) => Json(ticket).into_response(),
        Opened::Taken => StatusCode::CONFLICT.into_response(),
    })
}

async fn ticket<S: Store>(
    State(desk): State<Desk<S>>,
    Path(id): Path<Uuid>,
) -> Answer<Result<Json<Ticket>, StatusCode>> {
    Ok(desk.ticket(id).await?.map(Json).ok_or(StatusCode::NOT_FOUND))
}

async fn close<S: Store>(State(desk): State<Desk<S>>, Path(id): Path<Uuid>) -> Answer<StatusCode> {
    Ok(match desk.close_ticket(id).await? {
        true => StatusCode::NO_CONTENT,
        false => StatusCode::NOT_FOUND,
    })
}

/// The continuation of a page, as a parameter.
#[derive(Debug, Deserialize)]
struct After {
    after: Option<String>,
}

async fn of_customer<S: Store>(
    State(desk): State<Desk<S>>,
    Path(customer): Path<u32>,
    Query(parameters): Query<After>,
) -> Answer<Json<Listing>> {
    let after = continuation(parameters.after.as_deref())?;
    Ok(Json(desk.of_customer(customer, after).await?.into()))
}

#[derive(Debug, Deserialize)]
struct Words {
    query: String,
    after: Option<String>,
}

async fn search<S: Store>(
    State(desk): State<Desk<S>>,
    Query(words): Query<Words>,
) -> Answer<Json<Listing>> {
    let after = continuation(words.after.as_deref())?;
    let query = QueryParser::new(["title", "text"]).parse(&words.query);
    let query = query.map_err(|error| Failure::Request(error.to_string()))?;
    Ok(Json(desk.search(query, after).await?.into()))
}

#[derive(Debug, Deserialize)]
struct Around {
    latitude: f64,
    longitude: f64,
    metres: f64,
    after: Option<String>,
}

async fn near<S: Store>(
    State(desk): State<Desk<S>>,
    Query(around): Query<Around>,
) -> Answer<Json<Listing>> {
    let after = continuation(around.after.as_deref())?;
    let centre = position(around.latitude, around.longitude)?;
    let circle = Circle::new(centre, around.metres).map_err(refused)?;
    Ok(Json(desk.near(circle, after).await?.into()))
}

/// Reads at the speed at which the client receives the lines. After an error the response ends
/// early; the client notices that the last chunk is missing.
async fn export<S: Store>(State(desk): State<Desk<S>>) -> Response {
    let lines = desk.all().map(|ticket| {
        let mut line = serde_json::to_vec(&ticket?).map_err(Error::other)?;
        line.push(b'\n');
        Ok::<_, Error>(line)
    });
    let chunks = lines.ready_chunks(500).map(|lines| {
        lines.into_iter().collect::<Result<Vec<_>, _>>().map(|lines| Bytes::from(lines.concat()))
    });
    let body = Body::from_stream(chunks.inspect_err(|error| eprintln!("export: {error}")));
    ([(header::CONTENT_TYPE, "application/x-ndjson")], body).into_response()
}

fn position(latitude: f64, longitude: f64) -> Answer<LatLng> {
    LatLng::new(latitude, longitude).map_err(refused)
}

fn continuation(after: Option<&str>) -> Answer<Option<Continuation>> {
    let bytes = after.map(|after| BASE64.decode(after)).transpose();
    let bytes = bytes.map_err(|error| Failure::Request(format!("after: {error}")))?;
    Ok(bytes.map(|bytes| Continuation::from_bytes(&bytes)))
}

fn refused(error: Error) -> Failure {
    Failure::Request(error.to_string())
}
