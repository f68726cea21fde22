//! Every step between parents and children compared with nested loops.

use std::collections::BTreeMap;

use keyloom::Store;
use keyloom_documents::parent_child::OnParentDelete;
use keyloom_documents::{Matches, ScoreMode};
use keyloom_testing::ids::{number, text};
use keyloom_testing::laws::{clear, very_long_property};
use proptest::prelude::*;

use super::company::{Branch, Company, Employee, Key, branch, employee, key};

#[derive(Clone, Debug)]
enum Step {
    Hire(u8, u32, i64, u8),
    HireMany(Vec<(u8, u32)>),
    Leave(u8, u32),
    Move(u8, u32, u8),
    Close(u8),
    Open(u8, u8),
}

type Staff = BTreeMap<Key, Employee>;

#[derive(Debug, Default)]
struct Model {
    branches: BTreeMap<String, Branch>,
    staff: Staff,
}

const COUNTRIES: [&str; 2] = ["a", "a\0"];
const HOBBIES: [&str; 3] = ["hiking", "diving", "horses"];

/// The keys of branches share prefixes and suffixes.
fn name(n: u8) -> String {
    text(usize::from(n))
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let branch = || 0..4u8;
    let employee = || (0..9_u64).prop_map(|n| number(n) as u32);
    let step = prop_oneof![
        6 => (branch(), employee(), 1970..1990i64, 0..3u8).prop_map(|(b, n, born, h)| Step::Hire(b, n, born, h)),
        2 => prop::collection::vec((branch(), employee()), 0..4).prop_map(Step::HireMany),
        1 => (branch(), employee()).prop_map(|(b, n)| Step::Leave(b, n)),
        3 => (branch(), employee(), branch()).prop_map(|(b, n, to)| Step::Move(b, n, to)),
        1 => branch().prop_map(Step::Close),
        3 => (branch(), 0..2u8).prop_map(|(b, c)| Step::Open(b, c)),
    ];
    prop::collection::vec(step, 1..30)
}

impl Model {
    /// Applies a step to both, and expects that both refuse the same steps.
    fn make(&mut self, company: &Company, store: &impl Store, step: &Step) {
        let Company { branches, employees, .. } = company;
        match *step {
            Step::HireMany(ref all) => {
                let all: Vec<_> = all
                    .iter()
                    .map(|(b, n)| (key(&name(*b), *n), employee("cy", 1970, HOBBIES[0])))
                    .collect();
                let done = store.transact(|txn| employees.put_many(txn, &all));
                let are_open = all.iter().all(|(at, _)| self.branches.contains_key(&at.0));
                assert_eq!(done.is_ok(), are_open);
                if are_open {
                    self.staff.extend(all);
                }
            }
            Step::Hire(b, n, born, hobby) => {
                let one = employee("ann", born, HOBBIES[usize::from(hobby)]);
                let done = store.transact(|txn| employees.put(txn, &key(&name(b), n), &one));
                assert_eq!(done.is_ok(), self.branches.contains_key(&name(b)));
                if done.is_ok() {
                    self.staff.insert(key(&name(b), n), one);
                }
            }
            Step::Leave(b, n) => {
                let at = key(&name(b), n);
                let was = store.transact(|txn| employees.delete(txn, &at)).unwrap();
                assert_eq!(was, self.staff.remove(&at).is_some());
            }
            Step::Move(b, n, to) => {
                let (from, to) = (key(&name(b), n), key(&name(to), n));
                let done = store.transact(|txn| employees.move_to(txn, &from, &to.0));
                let is_free = from == to || !self.staff.contains_key(&to);
                let is_possible = self.branches.contains_key(&to.0) && is_free;
                assert_eq!(done.is_ok(), self.staff.contains_key(&from) && is_possible);
                if let Ok(new) = done {
                    assert_eq!(new, to);
                    let one = self.staff.remove(&from).unwrap();
                    self.staff.insert(to, one);
                }
            }
            Step::Close(b) => {
                let was = store.transact(|txn| branches.delete(txn, &name(b))).unwrap();
                assert_eq!(was, self.branches.remove(&name(b)).is_some());
                self.staff.retain(|at, _| at.0 != name(b));
            }
            Step::Open(b, country) => {
                let one = branch(&name(b), COUNTRIES[usize::from(country)]);
                store.transact(|txn| branches.put(txn, &name(b), &one)).unwrap();
                self.branches.insert(name(b), one);
            }
        }
    }
}

pub fn queries_find_what_nested_loops_find(store: &impl Store) {
    very_long_property(steps(), |steps| {
        clear(store);
        let company =
            Company::declare(store, OnParentDelete::Refuse, OnParentDelete::Delete).unwrap();
        let mut model = Model::default();
        let countries = COUNTRIES.map(str::to_owned);
        let put = |txn: &mut keyloom::DynWriter<'_>| {
            countries.iter().try_for_each(|one| company.countries.put(txn, one, one))
        };
        store.transact(|txn| put(&mut keyloom::DynWriter::new(txn))).unwrap();
        steps.iter().for_each(|step| model.make(&company, store, step));
        assert_eq!(company.faults(store), [""; 0]);
        for hobby in HOBBIES {
            parents_of_children(&company, store, &model, hobby);
        }
        children_of_parents(&company, store, &model);
    });
}

fn parents_of_children(company: &Company, store: &impl Store, model: &Model, hobby: &str) {
    let snapshot = store.snapshot().unwrap();
    let index = company.employees.at(&snapshot).unwrap();
    let term = index.records().term("hobby", hobby).unwrap();
    let found = Matches::of_ids(index, &term, 1.0, &snapshot).unwrap();
    let is_one = |one: &Employee| one.hobby == hobby;
    let mut born = BTreeMap::<String, Vec<f64>>::new();
    for (at, one) in model.staff.iter().filter(|(_, one)| is_one(one)) {
        born.entry(at.0.clone()).or_default().push(one.born as f64);
    }
    for (least, most) in [(1, u64::MAX), (2, 3), (1, 1)] {
        let parents = company
            .employees
            .to_parents_with(&snapshot, &found, ScoreMode::Sum, least..=most)
            .unwrap();
        let mut hits = parents.top(&snapshot, 0, 100).unwrap();
        hits.sort_by(|a, b| a.key.cmp(&b.key));
        let hits: Vec<(String, f64)> = hits.into_iter().map(|hit| (hit.key, hit.score)).collect();
        let counts = born.iter().map(|(branch, all)| (branch.clone(), all.len() as f64));
        let wanted = counts.filter(|(_, count)| (least as f64..=most as f64).contains(count));
        assert_eq!(hits, wanted.collect::<Vec<_>>());
    }
    let oldest = company
        .employees
        .values_of_children(&snapshot, &found, "born", ScoreMode::Minimum)
        .unwrap();
    let mut hits = oldest.top(&snapshot, 0, 100).unwrap();
    hits.sort_by(|a, b| a.key.cmp(&b.key));
    let hits: Vec<(String, f64)> = hits.into_iter().map(|hit| (hit.key, hit.score)).collect();
    let least = |all: &Vec<f64>| all.iter().copied().fold(f64::MAX, f64::min);
    let wanted: Vec<(String, f64)> =
        born.iter().map(|(branch, all)| (branch.clone(), least(all))).collect();
    assert_eq!(hits, wanted);

    // Steps from the employees to the countries.
    let branches = company.employees.to_parents(&snapshot, &found, ScoreMode::Sum).unwrap();
    let countries = company.branches.to_parents(&snapshot, &branches, ScoreMode::Sum).unwrap();
    let mut wanted = BTreeMap::<String, f64>::new();
    for (branch, all) in &born {
        let country = model.branches[branch].country.clone().unwrap();
        *wanted.entry(country).or_default() += all.len() as f64;
    }
    let hits = countries.top(&snapshot, 0, 100).unwrap();
    assert!(hits.is_sorted_by(|a, b| a.score >= b.score));
    let hits: BTreeMap<String, f64> = hits.into_iter().map(|hit| (hit.key, hit.score)).collect();
    assert_eq!(hits, wanted);
}

fn children_of_parents(company: &Company, store: &impl Store, model: &Model) {
    let snapshot = store.snapshot().unwrap();
    let branches = company.branches.at(&snapshot).unwrap();
    for country in COUNTRIES {
        let term = branches.records().term("country", country).unwrap();
        let parents = Matches::of_ids(branches, &term, 2.0, &snapshot).unwrap();
        let children = company.employees.to_children(&snapshot, &parents).unwrap();
        let mut keys = children.keys(&snapshot).unwrap();
        keys.sort_unstable();
        let is_there = |at: &&Key| model.branches[&at.0].country.as_deref() == Some(country);
        let wanted: Vec<Key> = model.staff.keys().filter(is_there).cloned().collect();
        assert_eq!(keys, wanted);
        assert!(children.scores().is_sorted_by(|a, b| a.0 < b.0));
        assert!(children.scores().iter().all(|(_, score)| *score == 2.0));
    }
}
