//! Random pairs of record types: one program writes, the other declares the table and reads.

use std::marker::PhantomData;
use std::rc::Rc;

use keyloom::value::shape::{FieldsBy, Shape};
use keyloom::value::{Codec, Json, MessagePack, Postcard};
use keyloom::{Error, Memory, Result, Store};
use keyloom_patterns::{Schema, SchemaError, Table};
use proptest::test_runner::Config;

use crate::dynamic::{Part, model, with};
use crate::model::{Model, Value};

type Record = Part<0>;

/// How often the second program was accepted, needed a higher version, or was refused.
#[derive(Clone, Copy, Debug, Default)]
struct Outcomes {
    read: usize,
    raised: usize,
    refused: usize,
    changed: usize,
}

fn declare<C: Codec<Record>>(store: &Memory, version: u32) -> Result<Table<u32, Record, C>> {
    Schema::open(store, "desk")?.table_with("records", version)
}

/// Writes values under consecutive keys from `first`. Returns the values that the codec can
/// express.
fn write<C: Codec<Record>>(
    store: &Memory,
    table: &Table<u32, Record, C>,
    first: u32,
    values: &[Value],
) -> Result<Vec<(u32, Value)>> {
    let mut written = Vec::new();
    for (id, value) in (first..).zip(values) {
        match store.transact(|txn| table.put(txn, &id, &Part(value.clone()))) {
            Ok(()) => written.push((id, value.clone())),
            // Such as `Some(None)` in JSON.
            Err(Error::Value { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}

/// Records of another model must be read as their converted values.
fn reads<C: Codec<Record>>(
    store: &Memory,
    table: &Table<u32, Record, C>,
    written: &[(u32, Value)],
) -> Result<(), String> {
    for (id, value) in written {
        let wanted = model().read(0, value);
        match (table.get(&store.snapshot().unwrap(), id), wanted) {
            (Ok(Some(Part(read))), Some(wanted)) if read == wanted => {}
            (read, wanted) => return Err(format!("{value:?}: {read:?}, not {wanted:?}")),
        }
    }
    Ok(())
}

/// The old program reads records of the new one. A codec by position may read a field that the new
/// program has renamed: then the value read must convert to the written value.
fn reads_back<C: Codec<Record>>(
    store: &Memory,
    table: &Table<u32, Record, C>,
    written: &[(u32, Value)],
    new: &Model,
) -> Result<(), String> {
    if reads(store, table, written).is_ok() {
        return Ok(());
    }
    for (id, value) in written {
        let read = table.get(&store.snapshot().unwrap(), id);
        let is_right = match &read {
            Ok(Some(Part(read))) => new.read(0, read).as_ref() == Some(value),
            _ => false,
        };
        if !is_right {
            return Err(format!("{value:?}: {read:?}"));
        }
    }
    Ok(())
}

/// The law: an accepted program reads the converted values of all records.
fn law<C: Codec<Record>>(rng: &mut fastrand::Rng, outcomes: &mut Outcomes) -> Result<(), String> {
    let old = Rc::new(Model::any(rng));
    let new = Rc::new(if rng.u8(..8) == 0 { Model::any(rng) } else { old.changed(rng) });
    if !old.has_value() || !new.has_value() {
        return Ok(());
    }
    let store = Memory::new();
    let case = || format!("{old:#?}\n{new:#?}");
    let table =
        with(&old, || declare::<C>(&store, 1)).map_err(|error| format!("{error}: {old:#?}"))?;
    let values: Vec<_> = (0..4).map(|_| old.value(rng, 0, 0)).collect();
    let written = with(&old, || write(&store, &table, 0, &values)).map_err(|e| e.to_string())?;
    if written.is_empty() {
        return Ok(());
    }
    let own: Vec<_> = (0..4).map(|_| new.value(rng, 0, 0)).collect();
    let wrong = |said: String| Err(format!("{said}\n{}", case()));
    match with(&new, || declare::<C>(&store, 1)) {
        Ok(changed) => {
            outcomes.read += 1;
            outcomes.changed += usize::from(old != new);
            if let Err(said) = with(&new, || reads(&store, &changed, &written)) {
                return wrong(format!("the new program: {said}"));
            }
            let own =
                with(&new, || write(&store, &changed, 10, &own)).map_err(|e| e.to_string())?;
            // The old program reads the new records, continues, and is accepted again.
            if let Err(said) = with(&old, || reads_back(&store, &table, &own, &new)) {
                return wrong(format!("the old program: {said}"));
            }
            if let Err(error) = with(&old, || write(&store, &table, 20, &values)) {
                return wrong(format!("the old program: {error}"));
            }
            match with(&old, || declare::<C>(&store, 1)) {
                Ok(_) => Ok(()),
                Err(error) => wrong(format!("the old program: {error}")),
            }
        }
        Err(error) => {
            let is_one_way = match error.downcast_ref::<SchemaError>() {
                Some(SchemaError::OneWay { .. }) => true,
                Some(SchemaError::ChangedRecord { .. }) => false,
                _ => return wrong(error.to_string()),
            };
            match with(&new, || declare::<C>(&store, 2)) {
                Ok(changed) if is_one_way => {
                    outcomes.raised += 1;
                    if let Err(said) = with(&new, || reads(&store, &changed, &written)) {
                        return wrong(format!("with a raised version: {said}"));
                    }
                    match with(&old, || write(&store, &table, 20, &values[..1])) {
                        Ok(written) if !written.is_empty() => {
                            wrong("the old program writes beside a raised version".into())
                        }
                        _ => Ok(()),
                    }
                }
                Err(_) if !is_one_way => {
                    outcomes.refused += 1;
                    // Nothing has changed for the old program.
                    let goes_on = with(&old, || write(&store, &table, 20, &values));
                    goes_on.map(drop).or_else(|error| wrong(error.to_string()))
                }
                said => wrong(format!("{said:?} after {error}")),
            }
        }
    }
}

fn cases() -> usize {
    match Config::default().cases as usize {
        cases @ ..256 => 6 * cases,
        cases => 80 * cases,
    }
}

fn law_holds<C: Codec<Record>>() {
    let mut outcomes = Outcomes::default();
    for seed in 0..cases() {
        let mut rng = fastrand::Rng::with_seed(seed as u64);
        if let Err(said) = law::<C>(&mut rng, &mut outcomes) {
            panic!("case {seed}: {said}");
        }
    }
    // The law would be vacuous if all programs were refused.
    let Outcomes { read, raised, refused, changed } = outcomes;
    println!("{outcomes:?}");
    assert!(read > cases() / 8 && refused > cases() / 8, "{outcomes:?}");
    assert!(changed > cases() / 50 && raised > cases() / 200, "{outcomes:?}");
}

#[test]
fn postcard_reads_rightly_or_refuses() {
    law_holds::<Seen<Postcard, All>>();
}

#[test]
fn json_reads_rightly_or_refuses() {
    law_holds::<Seen<Json, All>>();
}

#[test]
fn message_pack_reads_rightly_or_refuses() {
    law_holds::<Seen<MessagePack, All>>();
}

/// A codec with the shape of the current model, as `M` sees it. The codecs themselves trace each
/// Rust type once, but here one Rust type stands for many models.
struct Seen<C, M>(PhantomData<(C, M)>);

trait Traced: Codec<Record> {
    const HOW: (FieldsBy, bool);
}

impl Traced for Postcard {
    const HOW: (FieldsBy, bool) = (FieldsBy::Position, false);
}

impl Traced for Json {
    const HOW: (FieldsBy, bool) = (FieldsBy::Name, true);
}

impl Traced for MessagePack {
    const HOW: (FieldsBy, bool) = (FieldsBy::Name, false);
}

trait Ignores: 'static {
    fn seen(model: &Model) -> Model;
}

/// The unmodified view.
struct All;
/// The views of mutants: the negative controls.
struct Order;
struct Widths;

impl Ignores for All {
    fn seen(model: &Model) -> Model {
        model.clone()
    }
}

impl Ignores for Order {
    fn seen(model: &Model) -> Model {
        model.with_sorted_fields()
    }
}

impl Ignores for Widths {
    fn seen(model: &Model) -> Model {
        model.with_one_integer()
    }
}

impl<C: Traced, M: Ignores> Codec<Record> for Seen<C, M> {
    fn encode(value: &Record, out: &mut Vec<u8>) -> Result<()> {
        C::encode(value, out)
    }

    fn decode(bytes: &[u8]) -> Result<Record> {
        C::decode(bytes)
    }

    fn shape() -> Result<Shape> {
        let (fields_by, is_human_readable) = C::HOW;
        with(&Rc::new(M::seen(&model())), || Shape::of::<Record>(fields_by, is_human_readable))
    }
}

/// The number of cases, out of 2,000, that expose a mutant.
fn caught<C: Codec<Record>>() -> usize {
    let is_caught = |seed: &u64| {
        law::<C>(&mut fastrand::Rng::with_seed(*seed), &mut Outcomes::default()).is_err()
    };
    (0..2_000).filter(is_caught).count()
}

#[test]
fn a_codec_that_ignores_the_order_of_fields_is_caught() {
    assert!(caught::<Seen<Postcard, Order>>() > 0);
}

#[test]
fn a_codec_that_ignores_widths_of_integers_is_caught() {
    assert!(caught::<Seen<Postcard, Widths>>() > 0);
    assert!(caught::<Seen<Json, Widths>>() > 0);
}
