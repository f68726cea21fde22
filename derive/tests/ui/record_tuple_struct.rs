use keyloom_patterns::Record;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Record)]
#[record(table = "tickets", key(id))]
struct Ticket(u64);

fn main() {}
