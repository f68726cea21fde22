//! tantivy: a document per user, numbers in inverted and fast fields, one segment, one thread.

use std::path::Path;

use serde_json::json;
use tantivy::aggregation::AggregationCollector;
use tantivy::aggregation::Key;
use tantivy::aggregation::agg_req::Aggregations;
use tantivy::aggregation::agg_result::{AggregationResult, BucketResult, MetricResult};
use tantivy::aggregation::metric::{PercentileValues, PercentilesMetricResult};
use tantivy::collector::TopDocs;
use tantivy::indexer::NoMergePolicy;
use tantivy::query::{BooleanQuery, Occur, Query, TermQuery};
use tantivy::schema::{FAST, Field, INDEXED, IndexRecordOption, Schema};
use tantivy::{DocAddress, Index, IndexWriter, Order, Searcher, TantivyDocument, Term};

use crate::clicks::{Audience, CATEGORIES, Clicks};

pub struct Tantivy {
    searcher: Searcher,
    site: Field,
    city: Field,
    category: Field,
    by_category: Aggregations,
    by_site: Aggregations,
}

impl Tantivy {
    pub fn open(path: &Path, clicks: &Clicks) -> Self {
        std::fs::create_dir(path).unwrap();
        let mut schema = Schema::builder();
        let site = schema.add_u64_field("site", INDEXED | FAST);
        let city = schema.add_u64_field("city", INDEXED);
        let category = schema.add_u64_field("category", INDEXED | FAST);
        let cents = schema.add_i64_field("cents", FAST);
        let id = schema.add_u64_field("id", FAST);
        let index = Index::create_in_dir(path, schema.build()).unwrap();
        let mut writer: IndexWriter<TantivyDocument> =
            index.writer_with_num_threads(1, 1 << 30).unwrap();
        writer.set_merge_policy(Box::new(NoMergePolicy));
        for user in clicks.users() {
            let mut document = TantivyDocument::new();
            document.add_u64(city, clicks.cities[user].into());
            document.add_i64(cents, clicks.cents[user]);
            document.add_u64(id, user as u64);
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
        let by = |field: &str, size: u32| {
            let terms = json!({ "terms": { "field": field, "size": size } });
            serde_json::from_value(json!({ "by": terms })).unwrap()
        };
        let (by_category, by_site) = (by("category", CATEGORIES), by("site", 10));
        Self { searcher, site, city, category, by_category, by_site }
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

    /// The only result of an aggregation of `cents`.
    fn metric(&self, audience: &Audience, asked: serde_json::Value) -> MetricResult {
        let asked: Aggregations = serde_json::from_value(json!({ "of": asked })).unwrap();
        let collector = AggregationCollector::from_aggs(asked, Default::default());
        let mut results = self.searcher.search(&self.query(audience), &collector).unwrap();
        match results.0.remove("of") {
            Some(AggregationResult::MetricResult(found)) => found,
            other => unreachable!("{other:?} is no metric"),
        }
    }

    pub fn sum(&self, audience: &Audience) -> f64 {
        match self.metric(audience, json!({ "sum": { "field": "cents" } })) {
            MetricResult::Sum(sum) => sum.value.unwrap(),
            other => unreachable!("{other:?} is no sum"),
        }
    }

    pub fn percentiles(&self, audience: &Audience, percents: &[f64]) -> Vec<f64> {
        let asked = json!({ "field": "cents", "percents": percents, "keyed": false });
        match self.metric(audience, json!({ "percentiles": asked })) {
            MetricResult::Percentiles(PercentilesMetricResult {
                values: PercentileValues::Vec(values),
            }) => values.into_iter().map(|entry| entry.value).collect(),
            other => unreachable!("{other:?} are no percentiles"),
        }
    }

    /// The users who have spent most, with their cents.
    pub fn top(&self, audience: &Audience) -> Vec<(u64, i64)> {
        let by_cents = TopDocs::with_limit(10).order_by_fast_field::<i64>("cents", Order::Desc);
        let found = self.searcher.search(&self.query(audience), &by_cents).unwrap();
        let ids = self.searcher.segment_reader(0).fast_fields().u64("id").unwrap();
        let row = |(cents, at): (Option<i64>, DocAddress)| {
            (ids.first(at.doc_id).unwrap(), cents.unwrap())
        };
        found.into_iter().map(row).collect()
    }

    pub fn report(&self, audience: &Audience) -> Vec<(u32, u64)> {
        self.counts(audience, &self.by_category)
    }

    /// The ten sites that most of the audience has visited. Ties are broken arbitrarily.
    pub fn top_sites(&self, audience: &Audience) -> Vec<(u32, u64)> {
        self.counts(audience, &self.by_site)
    }

    fn counts(&self, audience: &Audience, by: &Aggregations) -> Vec<(u32, u64)> {
        let collector = AggregationCollector::from_aggs(by.clone(), Default::default());
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
