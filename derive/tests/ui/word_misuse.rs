//! Parts and options that do not fit the kind of data.

use keyloom_patterns::Record;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Record)]
#[record(table = "shops", key(id))]
#[record(index(by_cents = integer(cents)))]
#[record(text(search = desc(name), analyzer = english()))]
#[record(text(words = name))]
#[record(points(near = (latitude, longitude, cents)))]
#[record(points(far = latitude))]
#[record(expiry(by_until = (until, id)))]
#[record(expiry(by_each = each(until)))]
#[record(ranked(best = (each(tags), each(towns))))]
#[record(index(later = name, unique, deferred))]
struct Shop {
    id: u32,
    name: String,
    cents: u32,
    latitude: f64,
    longitude: f64,
    until: u64,
    tags: Vec<String>,
    towns: Vec<String>,
}

#[derive(Serialize, Deserialize, Record)]
#[record(table = "prices", key(id))]
#[record(inverted(facets = name, when = self.cents > 0))]
struct Price {
    id: u32,
    name: String,
    cents: u32,
}

#[derive(Serialize, Deserialize, Record)]
#[record(table = "sales", key(id), index(by_name = name, of = 3))]
struct Sale {
    id: u32,
    name: String,
}

#[derive(Serialize, Deserialize, Record)]
#[record(table = "sites", key(id), ranked(= name))]
struct Site {
    id: u32,
    name: String,
}

fn main() {}
