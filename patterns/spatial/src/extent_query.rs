//! Queries for the extents that overlap a shape, or are inside it.

use std::fmt;

use keyloom::{Reader, Result, Subspace};
use keyloom_kit::{Continuation, Page, RecordKey, Scan, scan};

use super::area::BoundingBox;
use super::code_walk::{CodeWalk, Only};
use super::cover::Cover;
use super::located::Located;
use super::nearest::{self, NearExtents, Nearest, NearestExtent, Rank};
use super::page::page;
use super::position::LatLng;
use super::query::{RANGES, at_most, count};
use super::shape::Shape;
use super::xz::{Query, Wanted, cover};

/// A query for extents by the [`Shape`] `A`; see
/// [`ExtentIndex::overlapping`](super::ExtentIndex::overlapping).
pub struct ExtentQuery<'q, K, A = BoundingBox> {
    space: Subspace,
    area: A,
    wanted: Wanted,
    ranges: usize,
    only: Option<Only<'q, K>>,
}

impl<K, A: Clone> Clone for ExtentQuery<'_, K, A> {
    fn clone(&self) -> Self {
        Self { space: self.space.clone(), area: self.area.clone(), ..*self }
    }
}

impl<K, A: fmt::Debug> fmt::Debug for ExtentQuery<'_, K, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtentQuery")
            .field("space", &self.space)
            .field("area", &self.area)
            .field("wanted", &self.wanted)
            .field("ranges", &self.ranges)
            .finish_non_exhaustive()
    }
}

impl<'q, K, A: Shape> ExtentQuery<'q, K, A> {
    pub(super) fn new(space: &Subspace, area: A, wanted: Wanted) -> Self {
        Self { space: space.clone(), area, wanted, ranges: RANGES, only: None }
    }

    /// The same query, which plans at most this many ranges, instead of 16. On a local store, the
    /// query also begins another range after 8 keys in a row that do not match.
    ///
    /// With more ranges, fewer keys that do not match are read, but more ranges are begun. Use many
    /// ranges if the result is large. Use few ranges if the result is small, or on a store behind a
    /// network, where each range is a round trip.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) for 0.
    pub fn in_ranges(self, most: usize) -> Result<Self> {
        Ok(Self { ranges: at_most(most)?, ..self })
    }

    /// The same query, limited to records with keys that `only` accepts.
    #[must_use]
    pub fn only(self, only: &'q dyn Fn(&K) -> bool) -> Self {
        Self { only: Some(only), ..self }
    }

    fn cover(&self) -> Cover {
        match self.wanted {
            // An extent that contains the area contains every position of the area, so one position
            // is enough.
            Wanted::Containing => {
                let area = self.area.bounds();
                let latitude = area.south() / 2.0 + area.north() / 2.0;
                let longitude = area.west();
                let position = BoundingBox::of_position(&LatLng::stored(latitude, longitude));
                cover(&position, Wanted::Overlapping, self.ranges)
            }
            wanted => cover(&self.area, wanted, self.ranges),
        }
    }

    /// The number of ranges of the query.
    pub fn ranges(&self) -> usize {
        self.cover().ranges.len()
    }

    /// A name of this query, independent of the number of its ranges: the kind of the query, and
    /// the bounding box of its area.
    fn name(&self) -> Subspace {
        let area = self.area.bounds();
        let edges = (area.south(), area.west(), area.north(), area.east());
        match self.wanted {
            Wanted::Containing => Subspace::new(&("containing", edges)),
            wanted => Subspace::new(&(wanted == Wanted::Inside, edges)),
        }
    }
}

impl<'q, K: RecordKey, A: Shape> ExtentQuery<'q, K, A> {
    /// The extents in code order.
    ///
    /// # Errors
    /// Any error of the store, here or from the iterator. The iterator also returns
    /// [`Error::At`](keyloom::Error::At) for a malformed entry.
    pub fn extents<'r, R: Reader>(
        self,
        reader: &'r R,
    ) -> Result<
        impl Scan<Item = Result<Located<R::Bytes<'r>, K, BoundingBox>>> + use<'r, 'q, R, K, A>,
    > {
        let cover = self.cover();
        Ok(self.walk(reader, cover, None))
    }

    fn walk<'r, R: Reader>(
        self,
        reader: &'r R,
        cover: Cover,
        after: Option<&[u8]>,
    ) -> impl Scan<Item = Result<Located<R::Bytes<'r>, K, BoundingBox>>> + use<'r, 'q, R, K, A>
    {
        scan(CodeWalk::new(reader, &self.space, cover).after(after), move |walk| {
            let needs = |extent: &_| self.wanted.has(&self.area, extent);
            Ok(walk.next_placed(needs, self.only)?.map(|(_, extent)| extent))
        })
    }

    /// The number of extents. Reads all of them.
    ///
    /// # Errors
    /// Errors of [`extents`](ExtentQuery::extents).
    pub fn count(self, reader: &impl Reader) -> Result<u64> {
        count(self.extents(reader)?)
    }

    /// A page of at most `limit` extents in code order, beginning after the continuation `after`.
    ///
    /// A continuation belongs to the kind of the query, the index, the group and the
    /// [box around the area](super::Area::bounds). The number of ranges may differ from page to page.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) for a continuation of another
    /// query; errors of [`extents`](ExtentQuery::extents).
    pub fn page<'r, R: Reader>(
        self,
        reader: &'r R,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<Page<Located<R::Bytes<'r>, K, BoundingBox>>> {
        let (query, space) = (self.name(), self.space.clone());
        let walk = |last: Option<(u64, &[u8])>| {
            let (code, key) = last.unzip();
            let cover = self.cover().from(code);
            Ok(self.walk(reader, cover, key))
        };
        page(&query, (&space, 1), limit, after, walk)
    }

    /// The extents, the nearest to `from` first: those that contain `from`, and then the others by
    /// the [distance](BoundingBox::distance) of their nearest position. Extents at one distance are
    /// sorted by the key of the entry. The iterator reads on demand. The number of ranges has no
    /// effect.
    ///
    /// # Errors
    /// Errors of [`extents`](ExtentQuery::extents).
    pub fn by_distance<'r, R: Reader>(
        self,
        reader: &'r R,
        from: LatLng,
    ) -> Result<impl Scan<Item = Result<NearestExtent<R::Bytes<'r>, K>>> + use<'r, 'q, R, K, A>>
    {
        Ok(scan(self.nearest(reader, from, None), Nearest::step))
    }

    fn nearest<R: Reader>(
        self,
        reader: &R,
        from: LatLng,
        after: Option<Rank>,
    ) -> Nearest<'_, 'q, R, K, NearExtents<A>> {
        let places = NearExtents(Query::new(self.area, self.wanted));
        Nearest::new(reader, &self.space, from, places, self.only, after)
    }

    /// A page of at most `limit` extents, the nearest to `from` first, beginning after the
    /// continuation `after`.
    ///
    /// The continuation holds the distance and the key of the last extent. A page reads the
    /// elements of its own extents, and the elements that are crossed by the circle around `from`
    /// through the nearest position of the last extent of the previous page. For many pages in one
    /// program, keep the iterator of [`by_distance`](ExtentQuery::by_distance): it reads each
    /// element once.
    ///
    /// # Errors
    /// Errors of [`page`](ExtentQuery::page).
    pub fn page_by_distance<'r, R: Reader>(
        self,
        reader: &'r R,
        from: LatLng,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<Page<NearestExtent<R::Bytes<'r>, K>>> {
        let from_there = (self.space.prefix(), from.latitude(), from.longitude());
        let query = self.name().child(&from_there);
        nearest::page(&query, limit, after, |after| self.nearest(reader, from, after))
    }
}
