//! The cities of the world below their regions and countries.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use keyloom_patterns::trees::{NestedNode, NodeId};

/// City ids are those of GeoNames, below 2^32; ids of countries and regions are larger.
const COUNTRIES: NodeId = 1 << 40;
const REGIONS: NodeId = 1 << 41;

pub struct Cities {
    /// The countries, each with its regions and cities.
    pub forest: Vec<NestedNode<u64>>,
    pub cities: Vec<NodeId>,
    /// The regions that together contain about a thousand cities, with their countries.
    pub regions: Vec<(NodeId, NodeId)>,
}

impl Cities {
    pub fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/cities.csv.gz");
        let file = BufReader::new(File::open(path).unwrap());
        let mut rows = csv::Reader::from_reader(MultiGzDecoder::new(file));
        type Regions = BTreeMap<String, Vec<NestedNode<u64>>>;
        let mut countries: BTreeMap<String, Regions> = BTreeMap::new();
        let mut cities = Vec::new();
        for row in rows.records() {
            let row = row.unwrap();
            let id = row[0].parse().unwrap();
            cities.push(id);
            let regions = countries.entry(row[2].to_owned()).or_default();
            let city = NestedNode::new(id, &row[1], row[5].parse().unwrap());
            regions.entry(row[3].to_owned()).or_default().push(city);
        }
        let mut next_region = REGIONS;
        let region = |(name, cities): (String, Vec<NestedNode<u64>>)| {
            next_region += 1;
            NestedNode { children: cities.into(), ..NestedNode::new(next_region, name, 0) }
        };
        let mut region = region;
        let forest: Vec<NestedNode<u64>> = countries
            .into_iter()
            .zip(COUNTRIES..)
            .map(|((name, regions), id)| {
                let regions = regions.into_iter().map(&mut region).collect();
                NestedNode { children: regions, ..NestedNode::new(id, name, 0) }
            })
            .collect();
        let all =
            forest.iter().flat_map(|country| country.children.iter().map(|r| (r, country.id)));
        let of_some = all.filter(|(region, _)| (900..1_300).contains(&region.children.len()));
        let regions = of_some.map(|(region, country)| (region.id, country)).collect();
        Self { forest, cities, regions }
    }
}
