//! Negative controls: the codecs of the format crates, which do not read back what they write.

use keyloom::value::Codec;
use keyloom::value::shape::{Shape, type_name};
use keyloom::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

macro_rules! unproven {
    ($($name:ident, $write:path, $read:path;)*) => {$(
        pub struct $name;

        impl<V: Serialize + DeserializeOwned> Codec<V> for $name {
            fn encode(value: &V, out: &mut Vec<u8>) -> Result<()> {
                let bytes = $write(value).map_err(|error| refused(error.to_string()))?;
                out.extend_from_slice(&bytes);
                Ok(())
            }

            fn decode(bytes: &[u8]) -> Result<V> {
                $read(bytes).map_err(|error| refused(error.to_string()))
            }

            fn shape() -> Result<Shape> {
                Ok(Shape::named(type_name::<V>(), 1))
            }
        }
    )*};
}

fn refused(error: String) -> Error {
    Error::Value { codec: "unproven", action: "encode", source: error.into() }
}

unproven! {
    UnprovenPostcard, postcard::to_stdvec, postcard::from_bytes;
    UnprovenJson, serde_json::to_vec, serde_json::from_slice;
    UnprovenMessagePack, rmp_serde::to_vec_named, rmp_serde::from_slice;
}
