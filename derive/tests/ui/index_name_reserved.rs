use keyloom_patterns::Record;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Record)]
#[record(table = "tickets", key(id), index(get = id), index(table = id), index(r#count = id))]
struct Ticket {
    id: u64,
}

fn main() {}
