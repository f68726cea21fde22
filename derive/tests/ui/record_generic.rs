use keyloom_patterns::Record;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Record)]
#[record(table = "tickets", key(id))]
struct Ticket<T> {
    id: T,
}

fn main() {}
