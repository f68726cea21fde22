//! Packing and unpacking keys. Beside the peers: `cargo bench -p keyloom-compare --bench keys`.
#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use keyloom::key::{Desc, Pack, Unpack, elements, pack, unpack};

const TIME: u64 = 1_700_000_000_123_456_789;

fn both<K, R>(c: &mut Criterion, name: &str, key: K)
where
    K: Pack,
    R: for<'k> Read<'k>,
{
    let bytes = pack(&key);
    c.bench_function(&format!("keys/pack/{name}"), |b| b.iter(|| pack(black_box(&key))));
    c.bench_function(&format!("keys/unpack/{name}"), |b| {
        b.iter(|| {
            black_box(unpack::<<R as Read<'_>>::Key>(black_box(&bytes)).unwrap());
        });
    });
}

/// A type that borrows from the key, for any lifetime.
trait Read<'k> {
    type Key: Unpack<'k>;
}

macro_rules! shapes {
    ($c:ident: $($name:literal, $key:expr, $shape:ident = $type:ty;)+) => {$(
        struct $shape;
        impl<'k> Read<'k> for $shape {
            type Key = $type;
        }
        both::<_, $shape>($c, $name, $key);
    )+};
}

fn keys(c: &mut Criterion) {
    shapes! { c:
        "(str, u64)", ("cities", 2_988_507_u64), TextId = (&'k str, u64);
        "(str, str, u64)", ("sensor", "roof-north", TIME), TextTextTime = (&'k str, &'k str, u64);
        "(u64, u64)", (2_988_507_u64, TIME), IdTime = (u64, u64);
        "(str, Desc<u64>)", ("newest", Desc(TIME)), TextDesc = (&'k str, Desc<u64>);
        "(str, (str, (u64, u64)))", ("a", ("b", (1_u64, TIME))), Nested = (&'k str, (&'k str, (u64, u64)));
    }
    let key = pack(&("sensor", ("roof-north", 7_u8), Desc(TIME)));
    c.bench_function("keys/unpack/dynamic", |b| b.iter(|| elements(black_box(&key)).unwrap()));
}

criterion_group!(benches, keys);
criterion_main!(benches);
