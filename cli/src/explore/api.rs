//! The views as JSON. Each reads a bounded number of keys, however large the store is.

use serde_json::Value;

use super::params::Params;
use super::site::Site;
use super::{bitmaps, browse, explain, graph, overview, places, related, text, tree, work};
use crate::failure::Result;

/// The view, or `None` if there is none with this name.
pub fn answer(site: &Site, view: &str, params: &Params) -> Option<Result<Value>> {
    Some(match view {
        "overview" => overview::overview(site),
        "size" => overview::size(site, params),
        "bitmaps" => bitmaps::bitmaps(site, params),
        "browse" => browse::browse(site, params),
        "entry" => browse::entry(site, params),
        "related" => related::related(site, params),
        "joined" => related::joined(site, params),
        "locks" => work::locks(site, params),
        "explain" => explain::explain(site, params),
        "graph" => graph::graph(site, params),
        "places" => places::places(site, params),
        "text" => text::text(site, params),
        "tree" => tree::tree(site, params),
        "queue" => work::queue(site, params),
        _ => return None,
    })
}
