//! Fields whose types do not fit the kind of data.

use keyloom_patterns::Record;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Record)]
#[record(table = "shops", key(id))]
#[record(inverted(facets = integer(name)))]
struct Shop {
    id: u32,
    name: String,
}

#[derive(Serialize, Deserialize, Record)]
#[record(table = "logins", key(id), expiry(by_until = until))]
struct Login {
    id: u32,
    until: String,
}

#[derive(Serialize, Deserialize, Record)]
#[record(table = "sales", key(id), totals(sold = id, of = self.cents))]
struct Sale {
    id: u32,
    cents: u32,
}

fn main() {}
