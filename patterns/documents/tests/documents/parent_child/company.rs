//! The company of the guide: countries have branches, and branches have employees.

use keyloom::{Result, Store};
use keyloom_bitmaps::one;
use keyloom_documents::Documents;
use keyloom_documents::parent_child::{Children, Link, OnParentDelete};
use keyloom_tables::Schema;
use keyloom_testing::laws::clear;
use keyloom_text::Analyzer;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Branch {
    pub name: String,
    /// The key of the parent, which is not part of the record's key.
    pub country: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Employee {
    pub name: String,
    /// A date as a number: 19701024.
    pub born: i64,
    pub hobby: String,
}

pub type Key = (String, u32);
pub type Countries = Documents<String, String>;
pub type Branches = Children<String, String, String, Branch>;
pub type Employees = Children<String, Branch, Key, Employee>;

#[derive(Clone)]
pub struct Company {
    pub countries: Countries,
    pub branches: Branches,
    pub employees: Employees,
}

impl Company {
    pub fn declare(
        store: &impl Store,
        of_branches: OnParentDelete<String>,
        of_employees: OnParentDelete<String>,
    ) -> Result<Self> {
        let schema = Schema::open(store, "company")?;
        let countries = Countries::declare(&schema, "countries", 1, |index| {
            index.field("name", Analyzer::names(), |_, name: &String, add| add(name))
        })?;
        let of_country = Link::new(
            |_: &String, branch: &Branch| branch.country.clone(),
            |key: &String, branch, country: &String| {
                (key.clone(), Branch { country: Some(country.clone()), ..branch })
            },
        );
        let branches = Branches::declare(
            &schema,
            &countries,
            "branches",
            1,
            of_country,
            of_branches,
            |index| {
                index
                    .field("name", Analyzer::names(), |_, branch: &Branch, add| add(&branch.name))
                    .values("country", |_, branch| one(branch.country.as_ref()))
            },
        )?;
        let employees = Employees::declare(
            &schema,
            branches.documents(),
            "employees",
            1,
            Link::by_key(),
            of_employees,
            |index| {
                index
                    .field("name", Analyzer::names(), |_, one: &Employee, add| add(&one.name))
                    .integers("born", |_, one| Some(one.born))
                    .values("hobby", |_, employee| one(&employee.hobby))
            },
        )?;
        Ok(Self { countries, branches, employees })
    }

    /// All inconsistencies of all tables.
    pub fn faults(&self, store: &impl Store) -> Vec<String> {
        let snapshot = store.snapshot().unwrap();
        let mut found = self.countries.text().check(&snapshot).unwrap();
        found.extend(self.branches.check(&snapshot).unwrap());
        found.extend(self.employees.check(&snapshot).unwrap());
        found.iter().map(ToString::to_string).collect()
    }
}

pub fn key(branch: &str, number: u32) -> Key {
    (branch.to_owned(), number)
}

pub fn branch(name: &str, country: &str) -> Branch {
    Branch { name: name.to_owned(), country: Some(country.to_owned()) }
}

pub fn employee(name: &str, born: i64, hobby: &str) -> Employee {
    Employee { name: name.to_owned(), born, hobby: hobby.to_owned() }
}

/// The documents of the chapter "Parent-Child Relationship".
pub fn guide(
    store: &impl Store,
    of_branches: OnParentDelete<String>,
    of_employees: OnParentDelete<String>,
) -> Company {
    clear(store);
    let company = Company::declare(store, of_branches, of_employees).unwrap();
    store
        .transact(|txn| {
            for (key, name) in [("uk", "UK"), ("france", "France")] {
                company.countries.put(txn, &key.to_owned(), &name.to_owned())?;
            }
            for (key, name, country) in [
                ("london", "London Westminster", "uk"),
                ("liverpool", "Liverpool Central", "uk"),
                ("paris", "Champs Élysées", "france"),
            ] {
                company.branches.put(txn, &key.to_owned(), &branch(name, country))?;
            }
            for (at, name, born, hobby) in [
                (key("london", 1), "Alice Smith", 19701024, "hiking"),
                (key("london", 2), "Mark Thomas", 19820516, "diving"),
                (key("liverpool", 3), "Barry Smith", 19790401, "hiking"),
                (key("paris", 4), "Adrien Grand", 19870511, "horses"),
            ] {
                company.employees.put(txn, &at, &employee(name, born, hobby))?;
            }
            Ok(())
        })
        .unwrap();
    company
}
