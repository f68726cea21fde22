//! tantivy: a document per user, numbers in inverted and fast fields, one segment, one thread.

use std::path::Path;

use serde_json::json;
use tantivy::aggregation::AggregationCollector;
use tantivy::aggregation::Key;
use tantivy::aggregation::agg_req::Aggregations;
use tantivy::aggregation::agg_result::{AggregationResult, BucketResult};
use tantivy::indexer::NoMergePolicy;
use tantivy::query::{BooleanQuery, Occur, Query, TermQuery};
use tantivy::schema::{FAST, Field, INDEXED, IndexRecordOption, Schema};
use tantivy::{Index, IndexWriter, Searcher, TantivyDocument, Term};

use crate::clicks::{Audience, CATEGORIES, Clicks};

pub struct Tantivy {
    searcher: Searcher,
    site: Field,
    city: Field,
    category: Field,
    by_category: Aggregations,
}

impl Tantivy {
    pub fn open(path: &Path, clicks: &Clicks) -> Self {
        std::fs::create_dir(path).unwrap();
        let mut schema = Schema::builder();
        let site = schema.add_u64_field("site", INDEXED);
        let city = schema.add_u64_field("city", INDEXED);
        let category = schema.add_u64_field("category", INDEXED | FAST);
        let index = Index::create_in_dir(path, schema.build()).unwrap();
        let mut writer: IndexWriter<TantivyDocument> =
            index.writer_with_num_threads(1, 1 << 30).unwrap();
        writer.set_merge_policy(Box::new(NoMergePolicy));
        for user in clicks.users() {
            let mut document = TantivyDocument::new();
            document.add_u64(city, clicks.cities[user].into());
            clicks.sites.of(user).iter().for_each(|one| document.add_u64(site, (*one).into()));
            let categories = clicks.categories.of(user).iter();
            categories.for_each(|one| document.add_u64(category, (*one).into()));
            writer.add_document(document).unwrap();
        }
        writer.commit().unwrap();
        let segments = index.searchable_segment_ids().unwrap();
        if segments.len() > 1 {
            writer.merge(&segments).wait().unwrap();
        }
        writer.wait_merging_threads().unwrap();
        let searcher = index.reader().unwrap().searcher();
        assert_eq!(searcher.segment_readers().len(), 1, "one merged segment");
        let terms = json!({ "terms": { "field": "category", "size": CATEGORIES } });
        let by_category = serde_json::from_value(json!({ "by": terms })).unwrap();
        Self { searcher, site, city, category, by_category }
    }

    fn query(&self, audience: &Audience) -> BooleanQuery {
        let term = |field, value: u32| -> Box<dyn Query> {
            let term = Term::from_field_u64(field, value.into());
            Box::new(TermQuery::new(term, IndexRecordOption::Basic))
        };
        BooleanQuery::new(vec![
            (Occur::Must, term(self.site, audience.site)),
            (Occur::Must, term(self.city, audience.city)),
            (Occur::MustNot, term(self.category, audience.not_category)),
        ])
    }

    pub fn report(&self, audience: &Audience) -> Vec<(u32, u64)> {
        let collector =
            AggregationCollector::from_aggs(self.by_category.clone(), Default::default());
        let mut results = self.searcher.search(&self.query(audience), &collector).unwrap();
        let Some(AggregationResult::BucketResult(BucketResult::Terms { buckets, .. })) =
            results.0.remove("by")
        else {
            unreachable!("terms were asked for")
        };
        let counted = buckets.into_iter().map(|bucket| match bucket.key {
            Key::I64(category) => (category as u32, bucket.doc_count),
            Key::U64(category) => (category as u32, bucket.doc_count),
            other => unreachable!("{other:?} is no number"),
        });
        let mut counted: Vec<(u32, u64)> = counted.collect();
        counted.sort_unstable();
        counted
    }
}
