//! The path hierarchy of a table, and pattern scans over it.

use std::collections::BTreeMap;

use fastrand::Rng;
use keyloom::{DynWriter, Memory, Order, Result, Subspace};
use keyloom_patterns::trees::path::{LabelPath, PathTokenizer};
use keyloom_patterns::{
    Attached, Lquery, Ltxtquery, PathHierarchy, PathPattern, Schema, Table, in_order,
};

use super::compare;
use crate::Workload;

/// Files, each with its paths.
#[derive(Clone)]
pub struct Files {
    table: Table<u8, Vec<String>>,
    by_path: Attached<PathHierarchy<u8, Vec<String>>>,
}

/// One operation of the patterns.
#[derive(Clone, Debug)]
pub enum Change {
    Put(Vec<(u8, Vec<String>)>),
    Delete(u8),
}

type Model = BTreeMap<u8, Vec<String>>;

const NAMES: [&str; 6] = ["usr", "lib", "bin", "a.txt", "", "u\0"];

impl Files {
    pub fn new(schema: &Schema<'_, Memory>) -> Result<Self> {
        let table = schema.table("files")?;
        let paths = |_: &u8, paths: &Vec<String>| paths.clone();
        let by_path = schema.derive(&table, "by_path", 1, |space| {
            Ok(PathHierarchy::new(space, PathTokenizer::new(), paths))
        })?;
        Ok(Self { table, by_path })
    }
}

fn random_paths(rng: &mut Rng) -> Vec<String> {
    let name = |rng: &mut Rng| rng.choice(NAMES).unwrap_or_default();
    let path = |rng: &mut Rng| {
        let names: Vec<_> = (0..rng.usize(1..5)).map(|_| name(rng)).collect();
        names.join("/")
    };
    (0..rng.usize(..3)).map(|_| path(rng)).collect()
}

/// A pattern with seeks, a pattern that skips a subtree, and a pattern that reads everything.
fn patterns() -> Result<[PathPattern; 3]> {
    let lquery = "*{1}.lib|usr.*".parse::<Lquery>()?;
    let ltxtquery = "!usr & (bin | lib*)".parse::<Ltxtquery>()?;
    let open = r#"*."a."*|"".*"#.parse::<Lquery>()?;
    Ok([lquery.into(), ltxtquery.into(), open.into()])
}

impl Workload for Files {
    type Operation = Change;
    type Model = Model;

    fn name(&self) -> &'static str {
        "files"
    }

    fn records(&self) -> Vec<Subspace> {
        vec![self.table.space().clone()]
    }

    fn derived(&self) -> Vec<Subspace> {
        vec![self.by_path.space()]
    }

    fn operation(&self, rng: &mut Rng) -> Change {
        match rng.u8(..4) {
            0 => Change::Delete(rng.u8(..30)),
            _ => Change::Put(
                (0..rng.usize(1..5)).map(|_| (rng.u8(..30), random_paths(rng))).collect(),
            ),
        }
    }

    fn perform(&self, operation: &Change, txn: &mut DynWriter<'_>) -> Result<()> {
        match operation {
            Change::Put(files) => self.table.put_many(txn, files),
            Change::Delete(id) => self.table.delete(txn, id).map(drop),
        }
    }

    fn imitate(&self, operation: &Change, model: &mut Model) {
        match operation {
            Change::Put(files) => model.extend(files.iter().cloned()),
            Change::Delete(id) => drop(model.remove(id)),
        }
    }

    fn check(&self, txn: &DynWriter<'_>) -> Result<Vec<String>> {
        Ok(super::reported(&self.by_path.check(txn)?))
    }

    fn judge(&self, txn: &DynWriter<'_>, model: &Model) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        let there = self.table.range(txn, ..)?.collect::<Result<Model>>()?;
        compare(&mut wrong, "the files", &there, model);
        let by_path = self.by_path.at(txn)?;
        let tokenizer = by_path.tokenizer();
        let of = |(id, paths): (&u8, &Vec<String>)| {
            paths.iter().map(|path| (tokenizer.path(path), *id)).collect::<Vec<_>>()
        };
        let mut entries: Vec<(LabelPath, u8)> = model.iter().flat_map(of).collect();
        entries.sort();
        entries.dedup();
        for token in ["", "/usr", "usr", "/usr/lib"] {
            let above = tokenizer.path_of_token(token);
            let below = entries.iter().filter(|(path, _)| above.is_ancestor_of(path));
            let found = by_path.below(token).entries(txn)?;
            let found = found.map(|found| found?.record_key()).collect::<Result<Vec<u8>>>()?;
            compare(&mut wrong, token, found, below.clone().map(|(_, id)| *id).collect());
            let counts = by_path.facets(txn, token)?;
            let deeper = below.filter(|(path, _)| path.nlevel() > above.nlevel());
            let counted = counts.iter().map(|(_, count)| count).sum::<u64>();
            compare(&mut wrong, "the sum of facets", counted, deeper.count() as u64);
        }
        for pattern in patterns()? {
            let matching = entries.iter().filter(|(path, _)| pattern.matches(path));
            let mut wanted: Vec<u8> = matching.map(|(_, id)| *id).collect();
            for order in [Order::Ascending, Order::Descending] {
                let found = by_path.matching(txn, in_order(&pattern, order))?;
                let found = found.map(|found| found?.record_key()).collect::<Result<Vec<u8>>>()?;
                compare(&mut wrong, &pattern.to_string(), found, wanted.clone());
                wanted.reverse();
            }
        }
        Ok(wrong)
    }

    fn rebuild(&self, model: &Model, txn: &mut DynWriter<'_>) -> Result<()> {
        self.table.put_many(txn, model.clone())
    }
}
