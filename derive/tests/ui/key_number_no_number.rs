use keyloom_patterns::Key;

#[derive(Key)]
enum Status {
    #[key("open")]
    Open,
    #[key(-1)]
    Waiting,
    #[key]
    Closed,
}

fn main() {}
