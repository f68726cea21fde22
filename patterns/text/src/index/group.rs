//! Indexes whose keys begin with the group of a record.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use keyloom::{Error, KeyBuf, Result, Subspace, pack};
use keyloom_bitmaps::{BitmapExpr, InvertedIndex, single};
use keyloom_kit::RecordKey;
use keyloom_kit::parts::{Group, PackAs};

use super::{GROUP, GroupFunction, Groups, TextError, TextIndex, keys};

impl<K: RecordKey, V: 'static, G: 'static> TextIndex<K, V, G> {
    /// Creates an index in `space`. The keys of its entries begin with the [`Group`] of the record,
    /// such as its tenant, or its tenant and its category. **Nothing else may be in `space`.**
    /// Every record is assigned a dense id.
    ///
    /// Each group has its own posting lists, dictionary and statistics. A search names one
    /// [`group`](TextIndex::group). The search reads only the entries of this group, and its scores
    /// are the same as in an index with only the records of this group.
    ///
    /// `group` returns the group of a record. The function must be pure. If the group of a record
    /// changes, its postings move from the lists of the old group to those of the new one.
    ///
    /// A filter field cannot be named `(group)`: writes, checks and repairs of an index with such a
    /// field return [`TextError::ReservedField`].
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::Table;
    /// use keyloom_text::{Analyzer, Group, Query, TextIndex};
    /// type Post = (String, String);
    /// let texts = TextIndex::grouped(&Subspace::new("text"), |_id, post: &Post| Group::of(&post.0))
    ///     .field("body", Analyzer::english(), |_id: &u32, post: &Post, add| add(&post.1));
    /// let posts = Table::<u32, Post>::new(&Subspace::new("posts")).with(&texts);
    /// let store = Memory::new();
    /// let post = |tenant: &str, body: &str| (tenant.to_owned(), body.to_owned());
    /// store.transact(|txn| {
    ///     posts.put(txn, &1, &post("acme", "a white rabbit"))?;
    ///     posts.put(txn, &2, &post("globex", "the rabbits"))?;
    ///     posts.put(txn, &3, &post("acme", "raspberry tea"))
    /// })?;
    /// let snapshot = store.snapshot()?;
    /// let of_acme = texts.group("acme");
    /// let hits = of_acme.search(Query::term("body", "rabbit")).hits(&snapshot)?.items;
    /// assert_eq!(hits.iter().map(|hit| hit.key).collect::<Vec<_>>(), [1]);
    /// let terms = texts.group("globex").complete(&snapshot, "body", "ra", 5)?;
    /// assert_eq!(terms.iter().map(|term| &*term.term).collect::<Vec<_>>(), ["rabbit"]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// A search without a group does not compile:
    ///
    /// ```compile_fail,E0599
    /// # use keyloom::Subspace;
    /// # use keyloom_text::{Group, Query, TextIndex};
    /// let texts = TextIndex::grouped(&Subspace::new("text"), |_: &u32, tenant: &String| {
    ///     Group::of(tenant)
    /// });
    /// let search = texts.search(Query::All); // not `texts.group("acme").search(..)`
    /// ```
    pub fn grouped(
        space: &Subspace,
        group: impl Fn(&K, &V) -> Group<G> + Send + Sync + 'static,
    ) -> Self {
        Self::with_groups(space, InvertedIndex::new(&space.child(&keys::RECORDS)), group)
    }

    /// As [`grouped`](TextIndex::grouped), for records whose keys are ids. See
    /// [`with_keys_as_ids`](TextIndex::with_keys_as_ids).
    pub fn grouped_with_keys_as_ids(
        space: &Subspace,
        group: impl Fn(&K, &V) -> Group<G> + Send + Sync + 'static,
    ) -> Self
    where
        K: Copy + Into<u64> + TryFrom<u64>,
    {
        let records = InvertedIndex::with_keys_as_ids(&space.child(&keys::RECORDS));
        Self::with_groups(space, records, group)
    }

    fn with_groups(
        space: &Subspace,
        records: InvertedIndex<K, V>,
        group: impl Fn(&K, &V) -> Group<G> + Send + Sync + 'static,
    ) -> Self {
        let group: Arc<GroupFunction<K, V>> =
            Arc::new(move |key, value| group(key, value).into_packed());
        let of = Arc::clone(&group);
        let records = records.single_value(GROUP, move |key, value| single(&of(key, value)[..]));
        Self::with(space, records, Groups::Of(group))
    }

    /// The texts of the group with these parts, for searches, suggestions and similarity queries.
    /// Only the entries of this group are read. The result has all read methods of an index, but
    /// only the whole index can be attached to a table, checked or repaired.
    ///
    /// The [`records`](TextIndex::records) of the result are those of all groups. Their expressions
    /// can be used as filters: the search leaves out the records of other groups.
    ///
    /// A group without records is empty. All parts must be given. A call with only some of them
    /// does not compile:
    ///
    /// ```compile_fail,E0277
    /// # use keyloom::Subspace;
    /// # use keyloom_text::{Group, TextIndex};
    /// let texts = TextIndex::grouped(&Subspace::new("text"), |tenant: &String, category: &u8| {
    ///     Group::of((tenant, *category))
    /// });
    /// let group = texts.group("acme"); // not `("acme", 7)`
    /// ```
    pub fn group(&self, parts: impl PackAs<G>) -> TextGroup<K, V> {
        let group = pack(&parts);
        TextGroup(TextIndex {
            space: self.space.clone(),
            spaces: self.spaces.of_group(&group),
            records: self.records.clone(),
            fields: Arc::clone(&self.fields),
            groups: Groups::One(group),
            group_is_replaced: self.group_is_replaced,
            of: PhantomData,
        })
    }
}

impl<K: RecordKey, V, G> TextIndex<K, V, G> {
    /// The packed group of a record.
    pub(super) fn group_of(&self, key: &K, value: &V) -> KeyBuf {
        match &self.groups {
            Groups::Of(function) => function(key, value),
            Groups::All | Groups::One(_) => KeyBuf::new(),
        }
    }

    /// Returns an error if this index is a single group, or if a filter field has replaced the
    /// field of the groups.
    pub(super) fn check_groups(&self) -> Result<()> {
        self.check_group_field()?;
        match self.groups {
            Groups::One(_) => Err(Error::InvalidArgument {
                what: "the index",
                value: self.space.named(),
                why: "it is one group of an index; attach, check and repair the whole index",
            }),
            Groups::All | Groups::Of(_) => Ok(()),
        }
    }

    /// Returns [`TextError::ReservedField`] if a grouped index declares a field with the reserved
    /// name.
    fn check_group_field(&self) -> Result<()> {
        match self.group_is_replaced {
            true => {
                let (index, field) = (self.space.named(), GROUP.to_owned());
                Err(TextError::ReservedField { index, field }.into())
            }
            false => Ok(()),
        }
    }

    /// The ids of all records of a group.
    pub(super) fn all_of_group(&self, group: &[u8]) -> Result<BitmapExpr> {
        self.check_group_field()?;
        self.records.term(GROUP, group)
    }
}

pub struct TextGroup<K, V>(TextIndex<K, V>);

impl<K, V> Deref for TextGroup<K, V> {
    type Target = TextIndex<K, V>;

    fn deref(&self) -> &TextIndex<K, V> {
        &self.0
    }
}

impl<K, V> Clone for TextGroup<K, V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K, V> fmt::Debug for TextGroup<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TextGroup").field(&self.0).finish()
    }
}
