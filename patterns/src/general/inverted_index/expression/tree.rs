//! What an expression is made of.

use std::ops::{BitAnd, BitOr, BitXor, RangeInclusive, Sub};
use std::sync::Arc;

use keyloom::Subspace;

use super::BitmapExpr;
use super::held::Held;
use crate::fnv::Fnv;
use crate::general::inverted_index::integers::Comparison;

/// An expression. Operands that are of the same kind as what they are in are part of it: `a & (b & c)` has
/// three operands.
#[derive(Clone, Debug)]
pub(super) enum Tree {
    /// The bitmap in a subspace.
    Stored(Subspace),
    Held(Arc<Held>),
    Range(RangeInclusive<u64>),
    /// Integers in a range.
    Compared(Comparison),
    /// What all of `with`, of which there is at least one, have and none of `without`.
    All {
        with: Vec<BitmapExpr>,
        without: Vec<BitmapExpr>,
    },
    Any(Vec<BitmapExpr>),
    /// What an odd number of operands have.
    Odd(Vec<BitmapExpr>),
}

impl Tree {
    /// Adds what tells this expression from others.
    pub(super) fn hash(&self, hash: &mut Fnv) {
        let mut add = |kind: u8, bytes: &[u8]| {
            hash.add(&[kind]);
            hash.add(&(bytes.len() as u64).to_be_bytes());
            hash.add(bytes);
        };
        match self {
            Self::Stored(space) => add(1, space.prefix()),
            Self::Held(held) => {
                for (chunk, container) in held.chunks() {
                    add(2, &chunk.to_be_bytes());
                    add(2, container);
                }
            }
            Self::Range(ids) => {
                add(3, &[ids.start().to_be_bytes(), ids.end().to_be_bytes()].concat());
            }
            Self::Compared(comparison) => {
                add(7, &[]);
                comparison.hash(hash);
            }
            Self::All { with, without } => {
                add(4, &[with.len().to_be_bytes(), without.len().to_be_bytes()].concat());
                with.iter().chain(without).for_each(|expr| expr.tree().hash(hash));
            }
            Self::Any(of) | Self::Odd(of) => {
                let kind = if matches!(self, Self::Any(_)) { 5 } else { 6 };
                add(kind, &of.len().to_be_bytes());
                of.iter().for_each(|expr| expr.tree().hash(hash));
            }
        }
    }
}

impl BitmapExpr {
    /// Whether all ids, whatever they are, are ids of stored operands of which `is_bounded` says so.
    pub(in crate::general::inverted_index) fn is_within(
        &self,
        is_bounded: &impl Fn(&Subspace) -> bool,
    ) -> bool {
        match self.tree() {
            Tree::Stored(space) => is_bounded(space),
            Tree::Compared(comparison) => is_bounded(comparison.space()),
            Tree::Held(_) | Tree::Range(_) => false,
            Tree::All { with, .. } => with.iter().any(|expr| expr.is_within(is_bounded)),
            Tree::Any(of) | Tree::Odd(of) => of.iter().all(|expr| expr.is_within(is_bounded)),
        }
    }

    /// The operands of an intersection, those that are taken away apart.
    fn into_all(self) -> (Vec<Self>, Vec<Self>) {
        match Arc::unwrap_or_clone(self.0) {
            Tree::All { with, without } => (with, without),
            tree => (vec![Self(Arc::new(tree))], Vec::new()),
        }
    }

    fn into_any(self) -> Vec<Self> {
        match Arc::unwrap_or_clone(self.0) {
            Tree::Any(of) => of,
            tree => vec![Self(Arc::new(tree))],
        }
    }

    fn into_odd(self) -> Vec<Self> {
        match Arc::unwrap_or_clone(self.0) {
            Tree::Odd(of) => of,
            tree => vec![Self(Arc::new(tree))],
        }
    }

    /// The ids that all of `exprs` have; of none at all, every id.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_patterns::general::inverted_index::BitmapExpr;
    /// use roaring::RoaringBitmap;
    /// let even = RoaringBitmap::from_iter((0..100).step_by(2));
    /// let third = RoaringBitmap::from_iter((0..100).step_by(3));
    /// let sixth = BitmapExpr::all_of([even, third]);
    /// assert_eq!(sixth.count(&Memory::new().snapshot()?)?, 17);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn all_of<T: Into<Self>>(exprs: impl IntoIterator<Item = T>) -> Self {
        let parts = exprs.into_iter().map(|expr| expr.into().into_all());
        let (with, without): (Vec<_>, Vec<_>) = parts.unzip();
        let (mut with, without) = (with.concat(), without.concat());
        if with.is_empty() {
            with.push(Self::range(..));
        }
        Self::all(with, without)
    }

    fn all(with: Vec<Self>, without: Vec<Self>) -> Self {
        let mut with = one_range(with);
        match with.pop() {
            Some(only) if with.is_empty() && without.is_empty() => only,
            last => {
                with.extend(last);
                Self(Arc::new(Tree::All { with, without }))
            }
        }
    }

    /// The ids that at least one of `exprs` has; of none at all, no id.
    pub fn any_of<T: Into<Self>>(exprs: impl IntoIterator<Item = T>) -> Self {
        let mut of: Vec<Self> = exprs.into_iter().flat_map(|expr| expr.into().into_any()).collect();
        if let [_] = of.as_slice()
            && let Some(only) = of.pop()
        {
            return only;
        }
        Self(Arc::new(Tree::Any(of)))
    }

    fn odd_of(exprs: [Self; 2]) -> Self {
        Self(Arc::new(Tree::Odd(exprs.into_iter().flat_map(Self::into_odd).collect())))
    }

    fn minus(self, other: Self) -> Self {
        let (with, mut without) = self.into_all();
        without.extend(other.into_any());
        Self::all(with, without)
    }
}

/// Operands of an intersection, where what all ranges among them have in common is one of them.
fn one_range(with: Vec<BitmapExpr>) -> Vec<BitmapExpr> {
    let (ranges, mut others): (Vec<_>, Vec<_>) =
        with.into_iter().partition(|expr| matches!(expr.tree(), Tree::Range(_)));
    let ends = ranges.iter().filter_map(|range| match range.tree() {
        Tree::Range(ids) => Some((*ids.start(), *ids.end())),
        _ => None,
    });
    let common = ends.reduce(|a, b| (a.0.max(b.0), a.1.min(b.1)));
    match common {
        Some((0, u64::MAX)) if !others.is_empty() => {}
        // In front, so that nothing is read before it.
        Some((first, last)) => others.insert(0, BitmapExpr::range(first..=last)),
        None => {}
    }
    others
}

macro_rules! operators {
    ($($trait:ident $method:ident $combine:expr;)*) => { $(
        impl<T: Into<BitmapExpr>> $trait<T> for BitmapExpr {
            type Output = BitmapExpr;

            fn $method(self, other: T) -> BitmapExpr {
                $combine(self, other.into())
            }
        }

        impl<T: Into<BitmapExpr>> $trait<T> for &BitmapExpr {
            type Output = BitmapExpr;

            fn $method(self, other: T) -> BitmapExpr {
                $combine(self.clone(), other.into())
            }
        }
    )* };
}

operators! {
    BitAnd bitand |a, b| BitmapExpr::all_of([a, b]);
    BitOr bitor |a, b| BitmapExpr::any_of([a, b]);
    BitXor bitxor |a, b| BitmapExpr::odd_of([a, b]);
    Sub sub BitmapExpr::minus;
}
