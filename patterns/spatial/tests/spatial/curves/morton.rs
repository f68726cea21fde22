//! A code interleaves the bits of the coordinates.

use keyloom_spatial::curve::Morton;
use proptest::prelude::*;

/// The code, bit by bit: the highest bits first, and coordinate 0 first among equal bits.
pub fn interleaved<const N: usize>(coordinates: [u64; N], bits: u32) -> u128 {
    (0..bits)
        .rev()
        .flat_map(|bit| coordinates.map(|coordinate| coordinate >> bit & 1))
        .fold(0, |code, bit| code << 1 | u128::from(bit))
}

fn low_bits<const N: usize>(coordinates: [u64; N], bits: u32) -> [u64; N] {
    coordinates.map(|coordinate| coordinate & (u64::MAX >> (64 - bits)))
}

fn short_code_is_the_bits_in_turn<const N: usize>(
    coordinates: [u64; N],
) -> Result<(), TestCaseError>
where
    u64: Morton<N, Coordinate = u32>,
{
    let bits = <u64 as Morton<N>>::BITS;
    let code: u64 = Morton::encode(coordinates.map(|coordinate| coordinate as u32));
    prop_assert_eq!(u128::from(code), interleaved(coordinates, bits));
    prop_assert!(code <= <u64 as Morton<N>>::LAST);
    let decoded = Morton::<N>::decode(code).map(u64::from);
    prop_assert_eq!(decoded, low_bits(coordinates, bits));
    Ok(())
}

fn long_code_is_the_bits_in_turn<const N: usize>(coordinates: [u64; N]) -> Result<(), TestCaseError>
where
    u128: Morton<N, Coordinate = u64>,
{
    let bits = <u128 as Morton<N>>::BITS;
    let code: u128 = Morton::encode(coordinates);
    prop_assert_eq!(code, interleaved(coordinates, bits));
    prop_assert!(code <= <u128 as Morton<N>>::LAST);
    prop_assert_eq!(Morton::<N>::decode(code), low_bits(coordinates, bits));
    Ok(())
}

/// Numbers of all lengths, including those with all bits set.
pub fn coordinate() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64_u32, any::<bool>())
        .prop_map(|(bits, shift, is_full)| if is_full { u64::MAX } else { bits } >> shift)
}

proptest! {
    #[test]
    fn a_code_of_2_dimensions_is_the_bits_in_turn(at in [coordinate(), coordinate()]) {
        short_code_is_the_bits_in_turn(at)?;
        long_code_is_the_bits_in_turn(at)?;
    }

    #[test]
    fn a_code_of_3_dimensions_is_the_bits_in_turn(at in [coordinate(), coordinate(), coordinate()]) {
        short_code_is_the_bits_in_turn(at)?;
        long_code_is_the_bits_in_turn(at)?;
    }

    #[test]
    fn a_code_of_4_dimensions_is_the_bits_in_turn(
        at in [coordinate(), coordinate(), coordinate(), coordinate()],
    ) {
        short_code_is_the_bits_in_turn(at)?;
        long_code_is_the_bits_in_turn(at)?;
    }

    #[test]
    fn a_cell_follows_from_its_code_and_spare_bits_are_ignored(code: u128) {
        let short = code as u64;
        prop_assert_eq!(<u64 as Morton<2>>::encode(Morton::<2>::decode(short)), short);
        prop_assert_eq!(<u64 as Morton<3>>::encode(Morton::<3>::decode(short)), short & u64::MAX >> 1);
        prop_assert_eq!(<u64 as Morton<4>>::encode(Morton::<4>::decode(short)), short);
        prop_assert_eq!(<u128 as Morton<2>>::encode(Morton::<2>::decode(code)), code);
        prop_assert_eq!(<u128 as Morton<3>>::encode(Morton::<3>::decode(code)), code & u128::MAX >> 2);
        prop_assert_eq!(<u128 as Morton<4>>::encode(Morton::<4>::decode(code)), code);
    }
}

/// The table of the documentation.
#[test]
fn codes_have_as_many_bits_as_the_documentation_says() {
    fn sizes<M: Morton<N>, const N: usize>() -> (u32, M) {
        (M::BITS, M::LAST)
    }
    assert_eq!(sizes::<u64, 2>(), (32, u64::MAX));
    assert_eq!(sizes::<u64, 3>(), (21, u64::MAX >> 1));
    assert_eq!(sizes::<u64, 4>(), (16, u64::MAX));
    assert_eq!(sizes::<u128, 2>(), (64, u128::MAX));
    assert_eq!(sizes::<u128, 3>(), (42, u128::MAX >> 2));
    assert_eq!(sizes::<u128, 4>(), (32, u128::MAX));
}
