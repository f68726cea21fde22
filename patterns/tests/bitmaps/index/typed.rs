//! A selection in a field must have the type of the field's values; otherwise it is refused.

use std::ops::Bound::{Excluded, Unbounded};

use keyloom::{Error, Memory, Order, Result, Store, Subspace};
use keyloom_bitmaps::{Bitmap, BitmapExpr, InvertedIndex, InvertedIndexError, one};
use keyloom_tables::{Table, in_order, starting_with, within};
use serde::{Deserialize, Serialize};

use keyloom_testing::laws::clear;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Sale {
    month: (u16, u8),
    shop: (String, String),
    cents: i64,
    price: f64,
    note: Option<String>,
}

fn index() -> InvertedIndex<u32, Sale> {
    InvertedIndex::new(&Subspace::new("index"))
        .field("month", |_: &u32, sale: &Sale| one(sale.month))
        .field("shop", |_, sale| one((&sale.shop.0, &sale.shop.1)))
        .field("cents", |_, sale| one(sale.cents))
        .field("price", |_, sale| one(sale.price))
        .field("note", |_, sale| one(sale.note.as_ref()))
        .field(
            "mixed",
            |id, sale| if id % 2 == 0 { one(id).untyped() } else { one(&sale.shop.0).untyped() },
        )
        .field("never", |_, _| one(None::<u8>))
}

fn sale(n: u32) -> Sale {
    let country = if n.is_multiple_of(3) { "FR" } else { "US\0" };
    Sale {
        month: (2019 + (n / 60) as u16, (n / 10 % 6) as u8 + 3),
        shop: (country.into(), format!("Par{}", n % 4)),
        cents: i64::from(n) - 20,
        price: f64::from(n) / 2.0,
        note: n.is_multiple_of(5).then(|| format!("a\0{}", n % 2)),
    }
}

pub fn values_are_selected_by_what_they_are(store: &impl Store) {
    clear(store);
    let index = index();
    let table = Table::<u32, Sale>::new(&Subspace::new("sales")).with(&index);
    let sales: Vec<(u32, Sale)> = (0..120).map(|n| (n, sale(n))).collect();
    store.transact(|txn| table.put_many(txn, &sales)).unwrap();
    let snapshot = store.snapshot().unwrap();
    let count = |is: &dyn Fn(&Sale) -> bool| sales.iter().filter(|(_, sale)| is(sale)).count();

    let month = |select: &dyn Fn() -> Result<BitmapExpr>, is: &dyn Fn((u16, u8)) -> bool| {
        let found = select().unwrap().count(&snapshot).unwrap();
        assert_eq!(found, count(&|sale| is(sale.month)) as u64);
        assert!(found > 0 && found < 120);
    };
    month(&|| index.term("month", (2020, 6)), &|month| month == (2020, 6));
    month(&|| index.any_term(&snapshot, "month", (2020, 6)), &|month| month == (2020, 6));
    month(&|| index.any_term(&snapshot, "month", (2020,)), &|month| month.0 == 2020);
    month(&|| index.any_term(&snapshot, "month", within(..=(2020, 6))), &|m| m <= (2020, 6));
    month(&|| index.any_term(&snapshot, "month", within(..(2020, 6))), &|m| m < (2020, 6));
    month(&|| index.any_term(&snapshot, "month", within((2019, 7)..(2020, 6))), &|month| {
        ((2019, 7)..(2020, 6)).contains(&month)
    });
    let behind = within::<(u16, u8)>((Excluded((2019, 7)), Unbounded));
    month(&|| index.any_term(&snapshot, "month", behind), &|month| month > (2019, 7));
    month(&|| index.any_term(&snapshot, "month", within(..=(2019,))), &|month| month.0 == 2019);

    let found =
        |field: &str, select: &dyn Fn() -> Result<BitmapExpr>, is: &dyn Fn(&Sale) -> bool| {
            assert_eq!(select().unwrap().count(&snapshot).unwrap(), count(is) as u64, "{field}");
            assert!(count(is) > 0);
        };
    found("shop", &|| index.any_term(&snapshot, "shop", ("US\0",)), &|sale| sale.shop.0 == "US\0");
    found("shop", &|| index.any_term(&snapshot, "shop", starting_with(("FR", "Par"))), &|sale| {
        sale.shop.0 == "FR"
    });
    found("shop", &|| index.any_term(&snapshot, "shop", starting_with(("FR", "Par1"))), &|sale| {
        sale.shop == ("FR".into(), "Par1".into())
    });
    found("cents", &|| index.any_term(&snapshot, "cents", within(..0)), &|sale| sale.cents < 0);
    found("cents", &|| index.any_term(&snapshot, "cents", 5_u8), &|sale| sale.cents == 5);
    found("price", &|| index.any_term(&snapshot, "price", within(2.0..)), &|s| s.price >= 2.0);
    found("note", &|| index.any_term(&snapshot, "note", starting_with("a")), &|sale| {
        sale.note.is_some()
    });
    found("note", &|| index.any_term(&snapshot, "note", within(None..=Some("b"))), &|sale| {
        sale.note.is_some()
    });
    // A field with values of two types; each type is selected separately.
    found("mixed", &|| index.any_term(&snapshot, "mixed", within(..500_u32)), &|sale| {
        (sale.cents + 20) % 2 == 0
    });
    assert_eq!(index.any_term(&snapshot, "mixed", "XX").unwrap().count(&snapshot).unwrap(), 0);
    // A value of the right type that is not stored.
    assert_eq!(index.any_term(&snapshot, "month", (1999,)).unwrap().count(&snapshot).unwrap(), 0);
    assert_eq!(index.any_term(&snapshot, "never", 5).unwrap().count(&snapshot).unwrap(), 0);
    let years = index.distinct(&snapshot, "month", (2020,)).unwrap();
    assert_eq!(years, 6);
    let counts = index.value_counts::<_, (u16, u8), _>(&snapshot, "month", (2020, 6));
    assert_eq!(counts.unwrap().collect::<Result<Vec<_>>>().unwrap(), [((2020, 6), 10)]);
}

pub fn a_selection_of_another_type_is_refused(store: &impl Store) {
    clear(store);
    let index = index();
    let table = Table::<u32, Sale>::new(&Subspace::new("sales")).with(&index);
    store.transact(|txn| table.put_many(txn, (0..120).map(|n| (n, sale(n))))).unwrap();
    let snapshot = store.snapshot().unwrap();
    fn refused<T>(outcome: Result<T>, what: &str) {
        let Err(error) = outcome else { panic!("{what} is not refused") };
        let is_it = matches!(error.downcast_ref(), Some(InvertedIndexError::OtherType { .. }));
        assert!(is_it, "{what}: {error}");
    }
    macro_rules! refuse {
        ($($field:literal $select:expr),* $(,)?) => { $(
            refused(index.any_term(&snapshot, $field, $select), stringify!($select));
            refused(index.distinct(&snapshot, $field, $select), stringify!($select));
            let order = Order::Ascending;
            refused(index.values::<_, u32, _>(&snapshot, $field, in_order($select, order)), stringify!($select));
            refused(
                index.value_counts::<_, u32, _>(&snapshot, $field, in_order($select, order)),
                stringify!($select),
            );
        )* };
    }
    refuse! {
        "month" ((2020, 6),), "month" 2020, "month" "2020", "month" ("2020", 6), "month" (2020, "6"),
        "month" within(..=2020), "month" within(((2019, 1),)..), "month" starting_with("20"),
        "month" None::<u8>,
        "cents" (5, 0), "cents" (5,), "cents" 5.0, "cents" "5", "cents" within("0"..), "cents" true,
        "cents" within(..(5, 0)),
        "price" 5, "price" within(..5), "price" 2.5_f32,
        "shop" "FR", "shop" ("FR", 1), "shop" starting_with("FR"),
        "note" 1, "note" ("a",), "note" b"a".as_slice(),
    }
    let error = index.any_term(&snapshot, "cents", (5, 0)).unwrap_err().to_string();
    assert!(error.contains("(5, 0)") && error.contains("\"cents\""), "{error}");
}

/// A free id is assigned to the next record, which a stored audience would then contain.
#[test]
fn an_audience_is_kept_only_where_ids_stay() {
    let store = Memory::new();
    let bitmap = Bitmap::new(&Subspace::new("kept"));
    let given = index().integers("n", |n: &u32, _| Some(i64::from(*n)));
    let own = InvertedIndex::with_keys_as_ids(&Subspace::new("own"))
        .field("cents", |_: &u32, sale: &Sale| one(sale.cents))
        .integers("n", |n, _| Some(i64::from(*n)));
    let table = Table::<u32, Sale>::new(&Subspace::new("sales")).with(&given).with(&own);
    store.transact(|txn| table.put_many(txn, (0..120).map(|n| (n, sale(n))))).unwrap();
    let snapshot = store.snapshot().unwrap();
    let exprs = |index: &InvertedIndex<u32, Sale>| {
        let term = index.term("cents", 5).unwrap();
        vec![
            index.all(),
            term.clone(),
            BitmapExpr::range(..10) - (BitmapExpr::from(&bitmap) | &term),
            index.integers_of("n").unwrap().gt(5),
            index.any_term(&snapshot, "cents", within(..5)).unwrap(),
            index.any_term(&snapshot, "cents", within(..5)).unwrap() ^ BitmapExpr::none(),
            term.hold(&snapshot).unwrap(),
            index.has("n").unwrap(),
            index.absent("cents").unwrap(),
        ]
    };
    for expr in exprs(&given) {
        let error = store.transact(|txn| expr.store_in(txn, &bitmap)).unwrap_err();
        let Some(InvertedIndexError::IdsAreReused) = error.downcast_ref() else {
            panic!("{expr:?}: {error}")
        };
        assert!(matches!(error, Error::Other(_)), "{error:?}");
    }
    for expr in exprs(&own) {
        let count = expr.count(&snapshot).unwrap();
        assert_eq!(store.transact(|txn| expr.store_in(txn, &bitmap)).unwrap(), count, "{expr:?}");
        store.transact(|txn| bitmap.clear(txn)).unwrap();
    }
    assert_eq!(bitmap.first(&store.snapshot().unwrap()).unwrap(), None);
}
