//! The HTTP server of the explorer. One handler takes all requests, so none bypasses the guard.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::api;
use super::guard::Refusal;
use super::params::Params;
use super::site::Site;
use crate::failure::{Failure, Result};
use crate::shown::json_safe;

/// The largest number of concurrent reads. LMDB has a limited number of readers, and other programs
/// need some of them.
const MOST_READS: usize = 8;

const SCRIPT: &str = "text/javascript; charset=utf-8";
/// The files of the page: path, type, content.
const ASSETS: [(&str, &str, &str); 12] = [
    ("", "text/html; charset=utf-8", include_str!("page/index.html")),
    ("explore.css", "text/css; charset=utf-8", include_str!("page/explore.css")),
    ("explore.js", SCRIPT, include_str!("page/explore.js")),
    ("bitmaps.js", SCRIPT, include_str!("page/bitmaps.js")),
    ("common.js", SCRIPT, include_str!("page/common.js")),
    ("explain.js", SCRIPT, include_str!("page/explain.js")),
    ("graph.js", SCRIPT, include_str!("page/graph.js")),
    ("land.js", SCRIPT, include_str!("page/land.js")),
    ("places.js", SCRIPT, include_str!("page/places.js")),
    ("save.js", SCRIPT, include_str!("page/save.js")),
    ("text.js", SCRIPT, include_str!("page/text.js")),
    ("tree.js", SCRIPT, include_str!("page/tree.js")),
];

/// The headers of every response.
const HEADERS: [(HeaderName, &str); 5] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
         img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    // Otherwise a page of another site could load an answer as its script.
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Serves until Ctrl-C.
pub fn serve(listener: std::net::TcpListener, site: Site) -> Result {
    let served = || {
        listener.set_nonblocking(true)?;
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime =
            runtime.worker_threads(2).max_blocking_threads(MOST_READS).enable_all().build()?;
        runtime.block_on(until_interrupted(listener, site))?;
        // A read that still runs ends with the process: it has nothing to lose.
        runtime.shutdown_background();
        Ok::<(), std::io::Error>(())
    };
    served().map_err(|error| Failure::new(format!("the page cannot be served: {error}")))
}

async fn until_interrupted(listener: std::net::TcpListener, site: Site) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let router = Router::new().fallback(respond).with_state(Arc::new(site));
    // Not a graceful shutdown: it would wait for connections that a browser keeps open.
    tokio::select! {
        // First, so that an interrupt after the first answer finds its handler.
        biased;
        interrupted = tokio::signal::ctrl_c() => interrupted,
        served = axum::serve(listener, router) => served,
    }
}

async fn respond(
    State(site): State<Arc<Site>>,
    method: Method,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let admitted = site.guard.admit(&method, &headers, uri.path()).map(str::to_owned);
    let answer = match admitted {
        Ok(path) => answer(site, &path, &uri).await,
        Err(refusal) => Err(refusal),
    };
    let mut response = answer.unwrap_or_else(refused);
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn answer(site: Arc<Site>, path: &str, uri: &Uri) -> std::result::Result<Response, Refusal> {
    let found = ASSETS.iter().find(|(name, ..)| *name == path);
    match (found, path.strip_prefix("api/")) {
        (Some((_, kind, text)), _) => Ok(asset(kind, text)),
        (None, Some(route)) => read(site, route.to_owned(), uri).await,
        (None, None) => Err((StatusCode::NOT_FOUND, "there is no such page")),
    }
}

/// Answers a request for data. Reads block, so they run on a thread of their own.
async fn read(site: Arc<Site>, route: String, uri: &Uri) -> std::result::Result<Response, Refusal> {
    let params = Query::<Params>::try_from_uri(uri);
    let Query(params) =
        params.map_err(|_| (StatusCode::BAD_REQUEST, "the query is not readable"))?;
    let read = spawn_blocking(move || api::answer(&site, &route, &params)).await;
    let failed = |_| (StatusCode::INTERNAL_SERVER_ERROR, "the read has panicked");
    Ok(match read.map_err(failed)? {
        None => return Err((StatusCode::NOT_FOUND, "there is no such view")),
        Some(Ok(value)) => data(StatusCode::OK, &value),
        Some(Err(failure)) => {
            let status = match failure {
                Failure::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
                _ => StatusCode::BAD_REQUEST,
            };
            data(status, &json!({"error": failure.to_string()}))
        }
    })
}

fn asset(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

fn data(status: StatusCode, value: &Value) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (status, kind, json_safe(&value.to_string())).into_response()
}

fn refused((status, why): Refusal) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    let mut response = (status, kind, why).into_response();
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET"));
    }
    response
}
