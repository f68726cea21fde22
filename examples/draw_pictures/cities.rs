//! The positions of the cities.

use std::fs::File;
use std::path::Path;

use csv::StringRecord;
use flate2::read::MultiGzDecoder;
use keyloom_patterns::LatLng;

use crate::Drawn;

/// The columns of the file, from 0.
const LATITUDE: usize = 6;
const LONGITUDE: usize = 7;

/// The positions of all cities of the tour.
pub fn read() -> Drawn<Vec<LatLng>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/cities.csv.gz");
    let mut rows = csv::Reader::from_reader(MultiGzDecoder::new(File::open(file)?));
    let mut row = StringRecord::new();
    let mut cities = Vec::new();
    while rows.read_record(&mut row)? {
        let degrees = |column| row.get(column).unwrap_or_default().parse::<f64>();
        cities.push(LatLng::new(degrees(LATITUDE)?, degrees(LONGITUDE)?)?);
    }
    Ok(cities)
}
