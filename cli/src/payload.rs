//! Codecs for payloads whose type only their program has.
//!
//! `WorkQueue` opens the table of the payloads with a codec. The schema accepts a codec whose name
//! and shape are those that it stores. So the codecs here have the names of keyloom's codecs, and
//! return the stored shape. They decode nothing, and refuse to encode: a job is requeued without
//! its payload.

use std::cell::RefCell;
use std::marker::PhantomData;

use keyloom::value::Codec;
use keyloom::value::shape::Shape;
use keyloom::{Error, Result};
use keyloom_tables::schema::TableDefinition;

/// A payload that was not decoded.
#[derive(Clone, Copy, Debug)]
pub struct Payload;

thread_local! {
    static STORED: RefCell<Option<Shape>> = const { RefCell::new(None) };
}

/// Sets the shape that the codecs return in this thread: the stored shape of the payloads.
///
/// A stored shape of records with versions has only the versions that the store holds. If it lacks
/// the version 0, which means records without a version, this adds the version 0, unless the
/// definition [forgets](TableDefinition::forgets_plain) such records. Without it, the schema would
/// take this command for a program that forgets them.
pub fn set_shape(payloads: &TableDefinition) {
    let of = |shape: &Shape| match shape.version_numbers() {
        Some(numbers) if !numbers.contains(&0) && !payloads.forgets_plain => {
            let stored =
                numbers.iter().filter_map(|number| Some((*number, shape.version(*number)?)));
            Shape::versions([(0, Shape::named("plain", 1))].into_iter().chain(stored))
        }
        _ => shape.clone(),
    };
    STORED.with(|stored| *stored.borrow_mut() = payloads.shape.as_ref().map(of));
}

fn refused(why: &'static str) -> Error {
    Error::InvalidArgument { what: "the payload", value: "of a job".into(), why }
}

macro_rules! stand_in {
    ($name:ident $(<$inner:ident>)?, $doc:literal) => {
        #[doc = $doc]
        #[derive(Clone, Copy, Debug)]
        pub struct $name $(<$inner>(PhantomData<$inner>))?;

        impl $(<$inner: 'static>)? Codec<Payload> for $name $(<$inner>)? {
            fn encode(_: &Payload, _: &mut Vec<u8>) -> Result<()> {
                Err(refused("this command does not have its type; write it by its program"))
            }

            fn decode(_: &[u8]) -> Result<Payload> {
                Ok(Payload)
            }

            fn shape() -> Result<Shape> {
                let stored = STORED.with(|stored| stored.borrow().clone());
                stored.ok_or_else(|| refused("the schema stores no shape of it; adopt the table"))
            }
        }
    };
}

stand_in!(Postcard, "Stands for `keyloom::value::Postcard`.");
stand_in!(MessagePack, "Stands for `keyloom::value::MessagePack`.");
stand_in!(Json, "Stands for `keyloom::value::Json`.");
stand_in!(Raw, "Stands for `keyloom::value::Raw`.");
stand_in!(Upgrading<C>, "Stands for `keyloom::value::Upgrading`.");
