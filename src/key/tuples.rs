//! Tuples of up to twelve elements. For more elements, use a nested tuple or a struct.

use std::ops::RangeFull;

use super::{DecodeError, Pack, Packer, Unpack, Unpacker};

macro_rules! tuple {
    ($($element:ident)*) => {
        impl<$($element: Pack),*> Pack for ($($element,)*) {
            #[inline]
            #[allow(non_snake_case, unused_variables, reason = "one variable per element, () has none")]
            fn pack(&self, out: &mut Packer) {
                let ($($element,)*) = self;
                $($element.pack_element(out);)*
            }
        }

        impl<'k, $($element: Unpack<'k>),*> Unpack<'k> for ($($element,)*) {
            #[inline(always)]
            #[allow(unused_variables, clippy::unused_unit, reason = "() has no elements")]
            fn unpack(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
                Ok(($($element::unpack_element(input)?,)*))
            }
        }
    };
}

tuple!();

/// `..` is packed as zero bytes. As a prefix, `..` selects all keys, and `("FR", ..)` selects the
/// same keys as `("FR",)`.
impl Pack for RangeFull {
    #[inline]
    fn pack(&self, _: &mut Packer) {}

    #[inline]
    fn pack_element(&self, _: &mut Packer) {}
}

tuple!(A);
tuple!(A B);
tuple!(A B C);
tuple!(A B C D);
tuple!(A B C D E);
tuple!(A B C D E F);
tuple!(A B C D E F G);
tuple!(A B C D E F G H);
tuple!(A B C D E F G H I);
tuple!(A B C D E F G H I J);
tuple!(A B C D E F G H I J K);
tuple!(A B C D E F G H I J K L);
