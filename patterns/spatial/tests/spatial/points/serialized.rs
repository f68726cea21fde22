//! Positions, boxes and cells with serde.

use keyloom::value::{Codec, Json, MessagePack, Postcard};
use keyloom_spatial::{BoundingBox, GeoCell, LatLng};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::fixture::{place, position};
use keyloom_testing::laws::property;

fn round_trip<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug + 'static>(one: &T) {
    fn by<C: Codec<T>, T: PartialEq + std::fmt::Debug>(one: &T) {
        let mut bytes = Vec::new();
        C::encode(one, &mut bytes).unwrap();
        assert_eq!(C::decode(&bytes).unwrap(), *one);
    }
    by::<Json, T>(one);
    by::<MessagePack, T>(one);
    by::<Postcard, T>(one);
}

#[test]
fn positions_boxes_and_cells_survive_every_codec() {
    property((place(), place(), 0_u32..=64), |(a, b, bits)| {
        let at = position(a);
        round_trip(&at);
        let (south, north) = (a.0.min(b.0), a.0.max(b.0));
        round_trip(&BoundingBox::wrapping(south, a.1, north, b.1).unwrap());
        round_trip(&GeoCell::of(&at, bits).unwrap());
    });
    round_trip(&BoundingBox::WORLD);
    round_trip(&GeoCell::WORLD);
}

#[test]
fn invalid_serialized_values_are_refused() {
    fn error<T: DeserializeOwned + Serialize + std::fmt::Debug + 'static>(json: &str) -> String {
        let decoded: keyloom::Result<T> = Json::decode(json.as_bytes());
        decoded.unwrap_err().to_string()
    }
    assert!(error::<LatLng>(r#"{"latitude": 91, "longitude": 0}"#).contains("latitude"));
    assert!(error::<LatLng>(r#"{"latitude": 0, "longitude": 181}"#).contains("longitude"));
    let swapped = r#"{"south": 2, "west": 0, "north": 1, "east": 0}"#;
    assert!(error::<BoundingBox>(swapped).contains("south"));
    assert!(error::<GeoCell>(r#"{"first": 1, "bits": 63}"#).contains("cell"));
    assert!(error::<GeoCell>(r#"{"first": 0, "bits": 65}"#).contains("cell"));
    let paris: LatLng = Json::decode(br#"{"latitude": 48.85, "longitude": 2.35}"#).unwrap();
    assert_eq!(paris, position((48.85, 2.35)));
}
