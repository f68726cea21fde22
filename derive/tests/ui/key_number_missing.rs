use keyloom_patterns::Key;

#[derive(Key)]
enum Status {
    #[key(0)]
    Open,
    Waiting,
    Closed,
}

fn main() {}
