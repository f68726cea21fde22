//! Keys: any bytes decode or are refused, decoded values pack to the same bytes, and the order of
//! bytes is the order of values.

use std::borrow::Cow;

use arbitrary::{Arbitrary, Result, Unstructured};
use keyloom::key::{
    BigInt, DecodeError, Desc, Element, List, Pack, Subspace, Unpack, Versionstamp, display,
    elements, pack, unpack, unpack_strict,
};

type Strict = fn(&[u8]) -> std::result::Result<Vec<Element>, DecodeError>;

/// The first byte is the offset of the second key.
pub(crate) fn bytes(data: &[u8]) {
    check_bytes(data, |bytes| unpack_strict::<List<Vec<Element>>>(bytes).map(|list| list.0));
}

/// The control: a strict decoder that accepts integers with leading zeros, like the lenient one.
pub(crate) fn with_a_decoder_that_is_not_strict(data: &[u8]) {
    check_bytes(data, elements);
}

fn check_bytes(data: &[u8], strict: Strict) {
    let Some((&at, rest)) = data.split_first() else { return };
    let (first, second) = rest.split_at(usize::from(at).min(rest.len()));
    let found = [first, second].map(|bytes| alone(bytes, strict));
    let [Ok(a), Ok(b)] = found else { return };
    assert_eq!(pack(&List(&a[..])).cmp(&pack(&List(&b[..]))), a.cmp(&b));
    if strict(first).is_ok() && strict(second).is_ok() {
        assert_eq!(first.cmp(second), a.cmp(&b));
    }
}

fn alone(bytes: &[u8], strict: Strict) -> std::result::Result<Vec<Element>, DecodeError> {
    let lenient = elements(bytes);
    match &lenient {
        Ok(found) => {
            let packed = pack(&List(&found[..]));
            assert_eq!(elements(&packed).as_ref(), Ok(found));
            assert_eq!(strict(bytes).is_ok(), packed[..] == *bytes, "{found:?}");
        }
        Err(error) => {
            assert!(error.offset <= bytes.len(), "{error}");
            assert!(strict(bytes).is_err());
        }
    }
    assert!(!display(bytes).to_string().is_empty());
    typed::<()>(bytes);
    typed::<(&str, u64)>(bytes);
    typed::<(Option<&[u8]>, (i8, Option<bool>), u128)>(bytes);
    typed::<(Desc<(String, Option<u8>)>, List<Vec<f32>>)>(bytes);
    typed::<(Cow<'_, str>, Cow<'_, [u8]>, [u8; 3])>(bytes);
    typed::<(i64, f64, uuid::Uuid, Versionstamp, BigInt)>(bytes);
    typed::<(i128, Desc<Desc<u16>>, (i32, (Vec<u8>,)))>(bytes);
    lenient
}

/// Decodes as a type without a panic. Strict decoding accepts only the output of packing.
fn typed<'k, K: Pack + Unpack<'k>>(bytes: &'k [u8]) {
    let lenient = unpack::<K>(bytes);
    match unpack_strict::<K>(bytes) {
        Ok(key) => {
            assert_eq!(pack(&key)[..], *bytes);
            assert!(lenient.is_ok());
            assert!(elements(bytes).is_ok());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Two keys of any elements.
pub(crate) fn order(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let Ok((mut a, b)) = keys(&mut input) else { return };
    let shared = input.int_in_range(0..=b.len()).unwrap_or(0);
    a.splice(..shared.min(a.len()), b[..shared].iter().cloned());
    let packed = [&a, &b].map(|key| pack(&List(&key[..])));
    assert_eq!(packed[0].cmp(&packed[1]), a.cmp(&b), "{a:?} {b:?}");
    for (key, packed) in [&a, &b].into_iter().zip(&packed) {
        assert_eq!(
            unpack_strict::<List<Vec<Element>>>(packed).map(|list| list.0).as_ref(),
            Ok(key)
        );
    }
    let descending = [&a, &b].map(|key| pack(&Desc(List(&key[..]))));
    assert_eq!(descending[0].cmp(&descending[1]), b.cmp(&a), "{a:?} {b:?}");
    let space = Subspace::new(&List(&a[..]));
    assert_eq!(space.contains(&packed[1]), b.starts_with(&a));
    assert_eq!(space.self_and_children().contains(&packed[1]), b.starts_with(&a));
    match space.unpack::<List<Vec<Element>>>(&packed[1]) {
        Ok(rest) => assert_eq!(rest.0, b[a.len()..]),
        Err(_) => assert!(!b.starts_with(&a)),
    }
}

fn keys(input: &mut Unstructured<'_>) -> Result<(Vec<Element>, Vec<Element>)> {
    Ok((tuple(input, 4)?, tuple(input, 4)?))
}

fn tuple(input: &mut Unstructured<'_>, depth: u8) -> Result<Vec<Element>> {
    let count = input.int_in_range(0..=3)?;
    (0..count).map(|_| element(input, depth)).collect()
}

fn element(input: &mut Unstructured<'_>, depth: u8) -> Result<Element> {
    let kinds = if depth == 0 { 9 } else { 11 };
    Ok(match input.int_in_range(0..=kinds)? {
        0 => Element::Null,
        1 => Element::Bytes(Arbitrary::arbitrary(input)?),
        2 => Element::Str(Arbitrary::arbitrary(input)?),
        3 => Element::Int(i128::from(i64::arbitrary(input)?) >> input.int_in_range(0..=63)?),
        4 => Element::Int(i128::arbitrary(input)? >> input.int_in_range(0..=127)?),
        5 => {
            let magnitude = input.bytes(input.len().min(255))?;
            Element::BigInt(BigInt::new(input.arbitrary()?, magnitude).expect("few enough bytes"))
        }
        6 => Element::F32(f32::from_bits(input.arbitrary()?)),
        7 => Element::F64(f64::from_bits(input.arbitrary()?)),
        8 => Element::Bool(input.arbitrary()?),
        9 => match input.arbitrary()? {
            true => Element::Uuid(uuid::Uuid::from_bytes(input.arbitrary()?)),
            false => Element::Versionstamp(Versionstamp(input.arbitrary()?)),
        },
        10 => Element::Tuple(tuple(input, depth - 1)?),
        _ => Element::Desc(Box::new(element(input, depth - 1)?)),
    })
}
