//! Every read that fails is an error of the page.

use keyloom::{Fault, Faulty, Order, Store};
use keyloom_documents::collapse::{Collapse, InnerHits};

use super::fixture::{By, Post, search, stored};

#[test]
fn a_read_that_fails_is_an_error_of_the_page() {
    let post = |n: u32| Post {
        author: (!n.is_multiple_of(9)).then(|| format!("author {}", n % 9)),
        country: (n % 3) as u8,
        body: ["a", "b", "c"].repeat(1 + n as usize % 5).join(" "),
        date: Some(n.into()),
    };
    let store = keyloom_testing::memory();
    let index = stored(&store, &(0..200).map(post).collect::<Vec<_>>());
    let inner = InnerHits::first(2).sort_by("date", Order::Descending).count().groups(
        "country",
        2,
        InnerHits::first(1),
    );
    let collapse = Collapse::new(search(&index, By::Score), "author").inner(inner);
    let wanted = collapse.page(&store.snapshot().unwrap()).unwrap();
    assert_eq!(wanted.items.len(), 9);
    let faulty = Faulty::new(store);
    let mut many = 0;
    for n in 0.. {
        faulty.clear_fault();
        let snapshot = faulty.snapshot().unwrap();
        faulty.fail_at(faulty.operations() + n, Fault::Error);
        match collapse.page(&snapshot) {
            Ok(page) => {
                assert_eq!(page, wanted);
                break;
            }
            Err(error) => assert!(error.to_string().contains("made to fail"), "{error}"),
        }
        many = n;
    }
    assert!(many > 40, "only {many} reads can fail");
}
