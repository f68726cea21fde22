//! A walk through the points in an area.

use keyloom::{Reader, Result};
use keyloom_kit::{Explain, Reading, RecordKey};

use super::area::Area;
use super::cell::OnSphere;
use super::code_walk::{CodeWalk, Only};
use super::cover::Cover;
use super::located::Located;
use super::position::LatLng;

/// A walk through the points in an area.
pub(super) struct Points<'r, 'q, R: Reader, K, A> {
    pub(super) walk: CodeWalk<'r, R>,
    pub(super) area: A,
    pub(super) only: Option<Only<'q, K>>,
}

pub(super) type CodedPoint<B, K> = (u64, Located<B, K, LatLng>);

impl<'r, R: Reader, K: RecordKey, A: Area> Points<'r, '_, R, K, A> {
    /// The next point with its code.
    pub(super) fn step(&mut self) -> Result<Option<CodedPoint<R::Bytes<'r>, K>>> {
        let area = &self.area;
        self.walk.next_in_finer(
            |position: &LatLng| area.contains(position),
            self.only,
            |ranges| Cover::of(&OnSphere(area), ranges),
        )
    }
}

impl<R: Reader, K, A> Reading for Points<'_, '_, R, K, A> {
    fn reads(&self) -> Explain {
        self.walk.reads()
    }
}
