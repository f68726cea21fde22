//! Key types defined by the program, which delegate to other elements in its next version.

use keyloom::key::{DecodeError, Pack, Packer, Unpack, Unpacker};
use keyloom::value::Postcard;
use keyloom::{Result, Store};
use keyloom_patterns::aggregate::Seen;
use keyloom_patterns::{Schema, SchemaError, Sketches, entry, impl_parts};
use keyloom_testing::laws::{clear, dump_all};

use crate::misuse::schema_error;

/// Defines a key type of one name, with the elements of one version of the program.
macro_rules! version {
    ($($module:ident: $inner:ty;)+) => {$(
        mod $module {
            use super::*;

            #[derive(Clone, Debug, PartialEq)]
            pub struct Isbn(pub $inner);

            impl Pack for Isbn {
                fn pack(&self, out: &mut Packer) {
                    (&self.0,).pack(out);
                }
            }

            impl<'k> Unpack<'k> for Isbn {
                fn unpack(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
                    Unpack::unpack(input).map(|(inner,)| Self(inner))
                }
            }

            impl_parts!(Isbn as $inner);
        }
    )+};
}

version! {
    number: u64;
    wider: i64;
    text: String;
}

/// Asserts a contradiction whose message names these types.
#[track_caller]
fn contradicts<T>(outcome: Result<T>, types: [&str; 2]) {
    let error = schema_error(outcome);
    assert!(matches!(error, SchemaError::Contradiction { .. }), "{error}");
    let text = error.to_string();
    assert!(types.iter().all(|name| text.contains(name)), "{text}");
}

/// The name of a key type does not determine its elements, so the definition contains them, too.
pub fn a_key_type_with_other_elements_is_refused(store: &(impl Store + Clone)) {
    clear(store);
    let open = || Schema::open(store, "library").unwrap();
    let books = open().table::<number::Isbn, u32>("books").unwrap();
    let isbn = number::Isbn(9_780);
    store.transact(|txn| books.put(txn, &isbn, &1)).unwrap();
    let before = dump_all(store);
    let wider = open().table::<wider::Isbn, u32>("books").unwrap();
    assert_eq!(wider.get(&store.snapshot().unwrap(), &wider::Isbn(9_780)).unwrap(), Some(1));
    let types = ["from Isbn(integer)", "from Isbn(string)"];
    contradicts(open().table::<text::Isbn, u32>("books"), types);
    contradicts(open().table_with::<text::Isbn, u32, Postcard>("books", 2), types);
    let adopted = open().adopt_table::<text::Isbn, u32>("books");
    assert!(matches!(schema_error(adopted), SchemaError::Undecodable { .. }));
    assert_eq!(dump_all(store), before);

    // Another name with the same elements is accepted once all keys are known to be readable.
    contradicts(open().table::<u64, u32>("books"), ["from Isbn(integer)", "from integer"]);
    let plain = open().adopt_table::<u64, u32>("books").unwrap();
    assert_eq!(plain.get(&store.snapshot().unwrap(), &9_780).unwrap(), Some(1));
    contradicts(open().table::<number::Isbn, u32>("books"), ["from Isbn(integer)", "integer"]);
    assert!(
        store.transact(|txn| books.put(txn, &isbn, &2)).is_err(),
        "the earlier program goes on"
    );
}

/// The same for parts, and for values that are counted but not listed.
pub fn parts_with_other_elements_are_refused(store: &(impl Store + Clone)) {
    clear(store);
    let open = || Schema::open(store, "library").unwrap();
    let schema = open();
    let books = schema.table::<u32, u64>("books").unwrap();
    schema.index(&books, "by_isbn", 1, |_, n| entry(number::Isbn(*n))).unwrap();
    let numbers = |_: &u32, n: &u64| Seen::one((), number::Isbn(*n));
    schema.derive(&books, "isbns", 1, |at| Sketches::new(at, 5, numbers)).unwrap();
    let before = dump_all(store);

    let schema = open();
    let books = schema.table::<u32, u64>("books").unwrap();
    let types = ["Isbn(integer)", "Isbn(string)"];
    let texts = |_: &u32, n: &u64| entry(text::Isbn(n.to_string()));
    contradicts(schema.index(&books, "by_isbn", 1, texts), types);
    let texts = |_: &u32, n: &u64| Seen::one((), text::Isbn(n.to_string()));
    contradicts(schema.derive(&books, "isbns", 1, |at| Sketches::new(at, 5, texts)), types);
    assert_eq!(dump_all(store), before);

    let wide = |_: &u32, n: &u64| entry(wider::Isbn(*n as i64));
    schema.index(&books, "by_isbn", 1, wide).unwrap();
}
