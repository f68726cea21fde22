//! The structure of expressions.

use std::fmt;
use std::ops::{BitAnd, BitOr, BitXor, RangeInclusive, Sub};
use std::sync::Arc;

use keyloom::Subspace;

use super::BitmapExpr;
use super::held::Held;
use crate::comparison::Comparison;

/// An expression as constructed. Combining two expressions takes constant time: nested operators of
/// one kind are merged when the expression is [planned](super::plan).
pub(super) enum Tree {
    /// The bitmap in a subspace.
    Stored(Subspace),
    Held(Arc<Held>),
    Range(RangeInclusive<u64>),
    /// Integers in a range.
    Compared(Comparison),
    /// The ids that are in all of `with`, which is not empty, and in none of `without`.
    All {
        with: Vec<BitmapExpr>,
        without: Vec<BitmapExpr>,
    },
    Any(Vec<BitmapExpr>),
    /// The ids in an odd number of operands.
    Odd(Vec<BitmapExpr>),
}

impl Tree {
    pub(super) fn operands(&self) -> impl Iterator<Item = &BitmapExpr> {
        let (some, others): (&[_], &[_]) = match self {
            Self::All { with, without } => (with, without),
            Self::Any(of) | Self::Odd(of) => (of, &[]),
            Self::Stored(_) | Self::Held(_) | Self::Range(_) | Self::Compared(_) => (&[], &[]),
        };
        some.iter().chain(others)
    }

    fn take_operands(&mut self) -> Vec<BitmapExpr> {
        match self {
            Self::All { with, without } => {
                let mut operands = std::mem::take(with);
                operands.append(without);
                operands
            }
            Self::Any(of) | Self::Odd(of) => std::mem::take(of),
            Self::Stored(_) | Self::Held(_) | Self::Range(_) | Self::Compared(_) => Vec::new(),
        }
    }
}

/// Drops iteratively, because an expression may be deeper than the stack.
impl Drop for Tree {
    fn drop(&mut self) {
        let mut rest = self.take_operands();
        while let Some(operand) = rest.pop() {
            if let Some(mut tree) = Arc::into_inner(operand.tree) {
                rest.append(&mut tree.take_operands());
            }
        }
    }
}

/// The remaining output of an expression.
enum Piece<'e> {
    Text(&'static str),
    Of(&'e BitmapExpr),
}

impl<'e> Piece<'e> {
    /// Pushes operands in parentheses, with an operator before each operand but the first. The
    /// piece that is pushed last is written first.
    fn operators(
        rest: &mut Vec<Self>,
        operands: impl Iterator<Item = (&'static str, &'e BitmapExpr)>,
    ) {
        let begin = rest.len();
        rest.push(Self::Text("("));
        for (operator, operand) in operands {
            if rest.len() > begin + 1 {
                rest.push(Self::Text(operator));
            }
            rest.push(Self::Of(operand));
        }
        rest.push(Self::Text(")"));
        if let Some(added) = rest.get_mut(begin..) {
            added.reverse();
        }
    }
}

/// Prints the operators, iteratively. For a bitmap in memory, prints only the number of its chunks.
impl fmt::Debug for BitmapExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = vec![Piece::Of(self)];
        while let Some(piece) = rest.pop() {
            let expr = match piece {
                Piece::Text(text) => {
                    f.write_str(text)?;
                    continue;
                }
                Piece::Of(expr) => expr,
            };
            match expr.tree() {
                Tree::Stored(space) => write!(f, "{space}")?,
                Tree::Held(held) => write!(f, "<{} chunks in memory>", held.chunks().count())?,
                Tree::Range(ids) => write!(f, "{ids:?}")?,
                Tree::Compared(comparison) => {
                    write!(f, "{} in {:?}", comparison.space(), comparison.values())?;
                }
                Tree::All { with, without } => {
                    let with = with.iter().map(|expr| (" & ", expr));
                    Piece::operators(&mut rest, with.chain(without.iter().map(|e| (" - ", e))));
                }
                Tree::Any(of) if of.is_empty() => f.write_str("none")?,
                Tree::Any(of) => Piece::operators(&mut rest, of.iter().map(|e| (" | ", e))),
                Tree::Odd(of) => Piece::operators(&mut rest, of.iter().map(|e| (" ^ ", e))),
            }
        }
        Ok(())
    }
}

impl BitmapExpr {
    /// The ids in all of `exprs`; every id if `exprs` is empty.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_bitmaps::BitmapExpr;
    /// use roaring::RoaringBitmap;
    /// let even = RoaringBitmap::from_iter((0..100).step_by(2));
    /// let third = RoaringBitmap::from_iter((0..100).step_by(3));
    /// let sixth = BitmapExpr::all_of([even, third]);
    /// assert_eq!(sixth.count(&Memory::new().snapshot()?)?, 17);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn all_of<T: Into<Self>>(exprs: impl IntoIterator<Item = T>) -> Self {
        let with: Vec<Self> = exprs.into_iter().map(Into::into).collect();
        match with.as_slice() {
            [] => Self::range(..),
            [only] => only.clone(),
            _ => Self::new(Tree::All { with, without: Vec::new() }),
        }
    }

    /// The ids in at least one of `exprs`; no id if `exprs` is empty.
    pub fn any_of<T: Into<Self>>(exprs: impl IntoIterator<Item = T>) -> Self {
        let of: Vec<Self> = exprs.into_iter().map(Into::into).collect();
        match of.as_slice() {
            [only] => only.clone(),
            _ => Self::new(Tree::Any(of)),
        }
    }

    fn odd_of(exprs: [Self; 2]) -> Self {
        Self::new(Tree::Odd(exprs.into()))
    }

    fn minus(self, other: Self) -> Self {
        Self::new(Tree::All { with: vec![self], without: vec![other] })
    }
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
