//! Scans for patterns of paths.

use keyloom::{Memory, Metered, Store, Subspace, Writer};
use keyloom_patterns::Schema;
use keyloom_patterns::trees::path::{
    LabelPath, Lquery, Ltxtquery, PathHierarchy, PathPattern, PathTokenizer, Paths,
};

use super::Table;

/// More keys than a scan steps over before it begins a new range.
const MANY: u32 = 40;

struct Filled {
    store: Metered<Memory>,
    paths: Paths,
}

impl Filled {
    fn with(all: impl IntoIterator<Item = Vec<String>>) -> Self {
        let (store, paths) = (Metered::new(Memory::new()), Paths::new(&Subspace::new("paths")));
        let all: Vec<_> = all.into_iter().map(|labels| LabelPath::new(labels).unwrap()).collect();
        store
            .transact(|txn| all.iter().try_for_each(|path| txn.put(&paths.key(path, ()), b"")))
            .unwrap();
        Self { store, paths }
    }

    /// `sizes` are the letters of the formulas, except m, the number of matches.
    fn compare(&self, table: &mut Table, row: &str, pattern: &PathPattern, sizes: &[(char, u64)]) {
        let snapshot = self.store.snapshot().unwrap();
        let (found, cost) = self.store.measure(|_| {
            self.paths.matching(&snapshot, pattern).unwrap().filter(Result::is_ok).count() as u64
        });
        assert!(found > 0, "{pattern}");
        table.compare(row, 0, &[sizes, &[('m', found)]].concat(), &cost);
    }
}

fn lquery(text: &str) -> PathPattern {
    text.parse::<Lquery>().unwrap().into()
}

/// A root with children `c00`, .., which have many children each.
fn two_levels(children: u32) -> Filled {
    let files = |n: u32| (0..MANY).map(move |file| (n, file));
    Filled::with(
        (0..children)
            .flat_map(files)
            .map(|(n, file)| ["a".to_owned(), format!("c{n:02}"), format!("f{file:02}")].into()),
    )
}

/// A path of as many labels, all of whose ancestors are stored, with many siblings before and after
/// each of them.
fn deep(labels: usize) -> (Filled, PathPattern) {
    let path = vec!["m".to_owned(); labels];
    let mut all = Vec::new();
    for level in 0..labels {
        let sibling = |name: String| [&path[..level], &[name]].concat();
        all.push(sibling("m".into()));
        all.extend((0..MANY).map(|n| sibling(format!("a{n:02}"))));
        all.extend((0..MANY).map(|n| sibling(format!("z{n:02}"))));
    }
    (Filled::with(all), PathPattern::ancestors_of(&LabelPath::new(path).unwrap()))
}

#[test]
fn the_table_of_path_patterns_states_its_costs() {
    let mut table = Table::of("path.md");
    for n in [3_u32, 32] {
        let (children, all) = (u64::from(n), u64::from(n * MANY));
        let filled = two_levels(n);
        let mut compare = |row, pattern: &PathPattern, sizes: &[(char, u64)]| {
            filled.compare(&mut table, row, pattern, sizes);
        };
        let descendants = "`a.b.*`, or all descendants of a path";
        compare(descendants, &lquery("a.c02.*"), &[]);
        compare(descendants, &PathPattern::descendants_of(&"a.c02".parse().unwrap()), &[]);
        compare("`a.*{1}.b`; `a` has n children", &lquery("a.*{1}.f20"), &[('n', children)]);
        let excluding = "!c01 & f20".parse::<Ltxtquery>().unwrap().into();
        compare("`!a & b`; `a` is one subtree", &excluding, &[('k', all - u64::from(MANY))]);
        compare("`*.b`", &lquery("*.f20"), &[('k', all)]);

        let labels = n.min(12);
        let (filled, ancestors) = deep(labels as usize);
        let row = "the ancestors of a path of n labels";
        filled.compare(&mut table, row, &ancestors, &[('n', labels.into())]);
        facets(&mut table, n);
    }
    table.end(&[]);
}

/// Facets of 2n records in n folders.
fn facets(table: &mut Table, n: u32) {
    let store = Metered::new(Memory::new());
    let schema = Schema::open(&store, "disk").unwrap();
    let files = schema.table::<u32, String>("files").unwrap();
    let by_path = |_: &u32, path: &String| [path.clone()];
    let by_path = schema.derive(&files, "by_path", 1, |space| {
        Ok(PathHierarchy::new(space, PathTokenizer::new(), by_path))
    });
    let path = |id: u32| format!("/{}/{}/file", ["above", "beside"][id as usize % 2], id / 4);
    store.transact(|txn| files.put_many(txn, (0..4 * n).map(|id| (id, path(id))))).unwrap();
    let snapshot = store.snapshot().unwrap();
    let by_path = by_path.as_ref().unwrap().at(&snapshot).unwrap();
    let (facets, cost) = store.measure(|_| by_path.facets(&snapshot, "/above").unwrap());
    assert_eq!(facets.len(), n as usize);
    table.compare("`facets`", 0, &[('m', u64::from(2 * n))], &cost);
}
