use keyloom_patterns::Record;

#[derive(Record)]
#[record(table = "tickets", key(id))]
union Ticket {
    id: u64,
}

fn main() {}
