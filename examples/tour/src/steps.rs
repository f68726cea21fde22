//! The steps of the tour, and what each is about.

use keyloom::{Order, Reader, Store, Subspace};
use keyloom_patterns::schema::TableInfo;
use serde::Serialize;

#[cfg(feature = "documents")]
use crate::documents;
#[cfg(feature = "graph")]
use crate::graph;
use crate::options::Options;
use crate::{Tour, TourResult, TourStore};
use crate::{
    aggregate, bitmaps, denormalize, entity, extents, feed, index, index_table, join,
    property_index, schema_changes, sequence, spatial, trees, versioned,
};
#[cfg(feature = "locking")]
use crate::{locking, queue};
#[cfg(feature = "text")]
use crate::{text, text_groups};

/// What a newcomer needs to know of a step.
#[derive(Debug, Serialize)]
pub struct About {
    /// The name of the pattern, as in the catalogue.
    #[serde(rename = "step")]
    pub name: &'static str,
    /// The problem that the pattern solves.
    pub title: &'static str,
    /// The file of the chapter, from the root of the repository.
    pub chapter: &'static str,
    /// The keys of the pattern, with the names of the schema.
    pub layout: &'static str,
    /// What the step stores: tables, their derived data, and subspaces of `tour`.
    #[serde(skip)]
    pub data: &'static [&'static str],
    /// A part of the question that the summary shows.
    #[serde(skip)]
    pub shown: &'static str,
}

/// One pattern on real data.
pub trait Step {
    /// Stores the data of the step, if it is not stored yet.
    fn load(&self, store: &TourStore, options: &Options) -> TourResult;

    /// Runs the queries of the step.
    fn ask(&self, store: &TourStore) -> TourResult;
}

/// Creates a step, and declares its derived data.
type NewStep = fn(&Tour<'_>) -> keyloom::Result<Box<dyn Step>>;

pub const STEPS: &[(&About, NewStep)] = &[
    (&index::ABOUT, |tour| Ok(Box::new(index::CompositeKeyIndex::new(tour)))),
    (&index_table::ABOUT, |_| Ok(Box::new(index_table::IndexTable))),
    (&schema_changes::ABOUT, |_| Ok(Box::new(schema_changes::SchemaChange))),
    (&aggregate::ABOUT, |tour| Ok(Box::new(aggregate::Aggregation::new(tour)?))),
    (&entity::ABOUT, |tour| Ok(Box::new(entity::Aggregated::new(tour)))),
    (&versioned::ABOUT, |tour| Ok(Box::new(versioned::AtomicAggregates::new(tour)))),
    (&sequence::ABOUT, |tour| Ok(Box::new(sequence::EnumerableKeys::new(tour)))),
    (&feed::ABOUT, |tour| Ok(Box::new(feed::Feeds::new(tour)))),
    (&spatial::ABOUT, |tour| Ok(Box::new(spatial::DimensionalityReduction::new(tour)?))),
    (&extents::ABOUT, |tour| Ok(Box::new(extents::Extents::new(tour)?))),
    (&bitmaps::ABOUT, |tour| Ok(Box::new(bitmaps::Inverted::new(tour)?))),
    #[cfg(feature = "text")]
    (&text::ABOUT, |tour| Ok(Box::new(text::FullText::new(tour)?))),
    #[cfg(feature = "text")]
    (&text_groups::ABOUT, |tour| Ok(Box::new(text_groups::TextsOfGroups::new(tour)?))),
    #[cfg(feature = "documents")]
    (&documents::ABOUT, |tour| Ok(Box::new(documents::Relations::new(tour)?))),
    (&trees::ABOUT, |tour| Ok(Box::new(trees::Hierarchies::new(tour)?))),
    #[cfg(feature = "graph")]
    (&graph::ABOUT, |tour| Ok(Box::new(graph::AdjacencyLists::new(tour)?))),
    (&join::ABOUT, |tour| Ok(Box::new(join::JoinsStep::new(tour)))),
    (&denormalize::ABOUT, |tour| Ok(Box::new(denormalize::Denormalization::new(tour)?))),
    #[cfg(feature = "locking")]
    (&locking::ABOUT, |tour| Ok(Box::new(locking::LocksAndWork::new(tour)?))),
    #[cfg(feature = "locking")]
    (&queue::ABOUT, |tour| Ok(Box::new(queue::Mails::new(tour)?))),
    (&property_index::ABOUT, |tour| {
        Ok(Box::new(property_index::IndexWithoutTransactions::new(tour)))
    }),
];

/// The number of the step with this name, or of the first step whose name, chapter or title
/// contains this word.
pub fn choose(wanted: &str) -> TourResult<usize> {
    let find = |is_it: &dyn Fn(&About) -> bool| STEPS.iter().position(|(about, _)| is_it(about));
    let found = find(&|about| about.name == wanted)
        .or_else(|| find(&|about| about.name.contains(wanted)))
        .or_else(|| find(&|about| about.chapter.contains(wanted)))
        .or_else(|| find(&|about| about.title.contains(wanted)));
    let names = || STEPS.iter().map(|(about, _)| about.name).collect::<Vec<_>>().join("; ");
    found.ok_or_else(|| {
        format!("there is no step {wanted:?}; `tour --list` lists the steps: {}", names()).into()
    })
}

impl About {
    /// The number of keys of the step, and of their bytes with those of the values.
    pub fn size(&self, tour: &Tour<'_>, store: &TourStore) -> TourResult<(u64, u64)> {
        let tables = tour.schema.tables()?;
        let snapshot = store.snapshot()?;
        let (mut keys, mut bytes) = (0, 0);
        for name in self.data {
            let range = space(&tables, name).self_and_children();
            for entry in snapshot.range(range, Order::Ascending)? {
                let (key, value) = entry?;
                keys += 1;
                bytes += (key.len() + value.len()) as u64;
            }
        }
        Ok((keys, bytes))
    }
}

/// The subspace of a table (`cities`), of derived data (`cities.by_name`), or of a step.
fn space(tables: &[TableInfo], name: &str) -> Subspace {
    let of_table = |table: &TableInfo| {
        let derived = name.strip_prefix(&*table.name).and_then(|rest| rest.strip_prefix('.'));
        match derived {
            _ if table.name == name => Some(table.space.clone()),
            Some(derived) => {
                let mut all = table.derived.iter();
                all.find(|one| one.name == derived).map(|one| one.space.clone())
            }
            None => None,
        }
    };
    tables.iter().find_map(of_table).unwrap_or_else(|| Subspace::new("tour").child(name))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::STEPS;

    #[test]
    fn chapters_exist_and_are_in_the_summary() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let summary = std::fs::read_to_string(root.join("book/src/SUMMARY.md"));
        let summary = summary.unwrap_or_default();
        for (about, _) in STEPS {
            let file = about.chapter.strip_prefix("book/src/").unwrap_or_default();
            assert!(summary.contains(&format!("]({file})")), "{about:?} is not in the summary");
            assert!(root.join(about.chapter).is_file(), "{about:?} has no chapter");
        }
    }
}
