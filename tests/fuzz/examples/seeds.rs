//! Writes the seed corpus: `cargo run -p keyloom-fuzz --example seeds`, from the root of the
//! repository.
//!
//! The seeds are few and small: keys of every kind, records in every codec, and sound LMDB files of
//! a few pages. For targets that construct their own input, the seeds are random bytes from a fixed
//! seed. Seeds have two-digit names. All other files in the corpus were found by the fuzzer and
//! have its names; they stay.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::path::Path;

use keyloom::key::{BigInt, Desc, Versionstamp, pack};
use keyloom::value::{Codec, MessagePack, Postcard};
use keyloom::{KeyBuf, Lmdb, Memory, Reader, Store, Subspace, Writer};
use keyloom_patterns::bitmaps::{Bitmap, CHUNK_IDS};

fn main() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let write = |target: &str, seeds: Vec<Vec<u8>>| {
        let directory = corpus.join(target);
        std::fs::create_dir_all(&directory).unwrap();
        // Removes seeds of an earlier version that had more.
        for file in std::fs::read_dir(&directory).unwrap().map(|file| file.unwrap()) {
            let name = file.file_name();
            if name.len() == 2 && name.to_str().is_some_and(|name| name.parse::<u8>().is_ok()) {
                std::fs::remove_file(file.path()).unwrap();
            }
        }
        for (at, seed) in seeds.iter().enumerate() {
            std::fs::write(directory.join(format!("{at:02}")), seed).unwrap();
        }
    };
    write("key_bytes", keys());
    write("values", values());
    write("addresses", addresses());
    write("bitmaps", bitmaps());
    write("lmdb_files", lmdb_files());
    write("path_patterns", path_patterns());
    write("trees", keyloom_fuzz::tree_values());
    write("queries", queries());
    write("posting_blocks", keyloom_fuzz::stored_blocks());
    for (target, seed) in [
        ("key_order", 1),
        ("ranges", 2),
        ("continuations", 3),
        ("index_entries", 4),
        ("operations", 5),
    ] {
        write(target, random(seed));
    }
}

/// Two keys each: the first byte is the offset of the second key.
fn keys() -> Vec<Vec<u8>> {
    let pairs: [(KeyBuf, KeyBuf); 6] = [
        (pack(&("users", 42, "Zürich")), pack(&("users", 42, "a\0b"))),
        (pack(&(None::<u8>, true, &b"\0\xFF"[..])), pack(&((1, (2, None::<u8>)), ()))),
        (pack(&(i64::MIN, -1, 0, u64::MAX)), pack(&(i128::MIN, u128::MAX))),
        (pack(&(1.5_f32, -0.0_f64)), pack(&(uuid::Uuid::nil(), Versionstamp([7; 12])))),
        (pack(&Desc(("a\0", 1))), pack(&(Desc(Desc(300_u16)), (7, (vec![1_u8],))))),
        (pack(&BigInt::new(true, &[3; 20]).unwrap()), pack(&BigInt::new(false, &[1; 9]).unwrap())),
    ];
    let joined = |(a, b): (KeyBuf, KeyBuf)| [&[a.len() as u8][..], &a, &b].concat();
    pairs.into_iter().map(joined).collect()
}

fn values() -> Vec<Vec<u8>> {
    let json = r#"{"id":7,"delta":-1,"wide":-5,"letter":"x","name":"n","kind":{"Two":["t",3]},
        "pair":[true,9],"bytes":[1,2],"more":{"k":[5],"l":null},"below":[]}"#;
    let record: serde_json::Value = serde_json::from_str(json).unwrap();
    let named = encoded::<MessagePack, _>(&record);
    // The same by position, in the wire format of Postcard.
    let postcard = b"\x07\x01\x09\x01\x01x\x01n\x02\x01t\x03\x01\x09\x02\x01\x02\x02\x01k\x01\x01\x05\x01l\x00\x00";
    let pair = encoded::<Postcard, _>(&(300_u32, "three hundred".to_owned()));
    let versioned = [&[2][..], postcard].concat();
    vec![json.into(), named, postcard.to_vec(), versioned, pair, b"{\"1\":\"a\"}".to_vec()]
}

fn encoded<C: Codec<V>, V>(value: &V) -> Vec<u8> {
    let mut bytes = vec![];
    C::encode(value, &mut bytes).unwrap();
    bytes
}

fn addresses() -> Vec<Vec<u8>> {
    [
        "memory:",
        "lmdb:",
        "postgres://ada:p%40ss@h1:1,h2:2/geo?table=t&sslmode=require",
        "host=h user=ada password='a b' dbname=geo connect_timeout=3",
        "etcd://ada:p%40ss@a:1,b-c.d:2,[::1]/x.y_z-1",
        "postgresql:///geo?host=/run/x&user=u&options=-c%20a",
        "etcd://root:hunter2/name",
        "postgres://ada%3Ahunter2%40h/geo?user=ada",
    ]
    .map(|address| address.into())
    .to_vec()
}

fn path_patterns() -> Vec<Vec<u8>> {
    [
        "Top.Collections.Pictures.Astronomy",
        r#""".usr."a.b"."\u{0}\"\\""#,
        "Top.*{0,2}.sport*@.!football|tennis{1,}.Russ*|Spain",
        r#"a|"b_A"@%*.*{,3}.!ab{2}.*"#,
        "a & (b_A%@* | !ab) & !(a | !\"\")",
        "/usr/lib//a.txt/",
        "a/(ab|b_A)(/[^/]*)?|[a-b]*/.*",
    ]
    .map(|text| text.into())
    .to_vec()
}

fn queries() -> Vec<Vec<u8>> {
    [
        "+alice |\"white rabbit\"~2^1.5 -queen #title:(a OR b)",
        "a AND NOT b || c && !d",
        "(a c:d* e)~2^=3 *:* f?g*h",
        r"/a\/b[c-d]+/ \AND a\:b\*c my\ field:x",
        "alise~1/2 b:~ [a TO b} year:{\"a b\" TO *] y:>=c z:<d",
        r#"b:NEAR(a "c d" ANY(e ORDERED(f g)~1))~30"#,
        "NOT NOT ((-(a)))",
    ]
    .map(|text| text.into())
    .to_vec()
}

/// A chunk in each format: few ids, runs, blocks with few and with many ids, and a bitset.
fn bitmaps() -> Vec<Vec<u8>> {
    let mut random = fastrand::Rng::with_seed(6);
    let mut some = |odds: u64| (0..CHUNK_IDS).filter(|_| random.u64(..odds) == 0).collect();
    let sets: [Vec<u64>; 5] = [
        vec![0, 7, 300, CHUNK_IDS - 1],
        (0..9).flat_map(|run| run * 3_000..run * 3_100 + 50).collect(),
        some(150),
        (256..512).step_by(3).chain((1_000..CHUNK_IDS).step_by(200)).collect(),
        some(4),
    ];
    let bitmap = Bitmap::new(&Subspace::new("bitmap"));
    let stored = |ids: Vec<u64>| {
        let store = Memory::new();
        store.transact(|txn| bitmap.replace(txn, ids.iter().copied())).unwrap();
        let snapshot = store.snapshot().unwrap();
        snapshot.get(&bitmap.space().pack(&0)).unwrap().unwrap().to_vec()
    };
    sets.map(stored).to_vec()
}

/// Files written by the engine: a new file, a small one, one with an overflow run and free pages,
/// and one with a tree of two levels.
fn lmdb_files() -> Vec<Vec<u8>> {
    let file = |fill: fn(&Lmdb)| {
        let directory = tempfile::tempdir().unwrap();
        let store = Lmdb::open(directory.path()).unwrap();
        fill(&store);
        drop(store);
        keyloom_fuzz::sparse(&std::fs::read(directory.path().join("data.mdb")).unwrap())
    };
    vec![
        file(|_| ()),
        file(|store| {
            store.transact(|txn| (1..=3_u8).try_for_each(|n| txn.put(&[n], &[n; 5]))).unwrap();
        }),
        file(|store| {
            store.transact(|txn| txn.put(b"run", &[0; 9_000])).unwrap();
            store.transact(|txn| txn.put(b"run", &[0; 5_000])).unwrap();
            store.transact(|txn| txn.delete(b"run")).unwrap();
            store.transact(|txn| txn.put(b"another run", &[0; 9_000])).unwrap();
        }),
        file(|store| {
            store
                .transact(|txn| (0..24_u8).try_for_each(|n| txn.put(&[b'k', n], &[0; 400])))
                .unwrap();
            store.transact(|txn| txn.delete(b"k\x07")).unwrap();
        }),
    ]
}

fn random(seed: u64) -> Vec<Vec<u8>> {
    let mut random = fastrand::Rng::with_seed(seed);
    let bytes = |random: &mut fastrand::Rng, count| (0..count).map(|_| random.u8(..)).collect();
    [40, 150, 400].map(|count| bytes(&mut random, count)).to_vec()
}
