//! Changes of single documents, durable and visible at once.

use std::cell::Cell;

use keyloom_compare::compare;
use keyloom_compare::text::Corpus;

use super::Loaded;

/// Generates changes; each document is far from the one before.
struct Changes<'c> {
    corpus: &'c Corpus,
    next: Cell<u32>,
}

impl Changes<'_> {
    fn next(&self) -> (u32, String) {
        let n = self.next.replace(self.next.get() + 1);
        let id = n.wrapping_mul(0x9E37_79B1) % self.corpus.len();
        (id, self.corpus.changed_text(id, n + 1))
    }
}

pub fn measure(loaded: &mut Loaded, corpus: &Corpus) {
    let changes = || Changes { corpus, next: Cell::new(0) };
    let [of_own, of_tantivy, of_fts5] = [changes(), changes(), changes()];
    let Loaded { own, tantivy, fts5 } = loaded;
    let mut own = || {
        let (id, text) = of_own.next();
        own.put(id, &text).unwrap();
    };
    let mut tantivy = || {
        let (id, text) = of_tantivy.next();
        tantivy.put(id, &text).unwrap();
    };
    let mut fts5 = || {
        let (id, text) = of_fts5.next();
        fts5.put(id, &text).unwrap();
    };
    let contenders: &mut [keyloom_compare::Contender<'_>] =
        &mut [("keyloom", &mut own), ("tantivy", &mut tantivy), ("FTS5", &mut fts5)];
    compare("one document, durable and visible", 1, 100, contenders);
}
