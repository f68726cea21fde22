use keyloom_patterns::Key;

const FIVE: isize = 5;

#[derive(Key)]
enum Status {
    Open = 7,
    Closed = 2,
    Other = FIVE,
}

fn main() {}
