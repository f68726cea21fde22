//! What every index of this pattern hands on to the [`Index`](crate::Index) that it stands on.

/// `check`, `repair` and [`DerivedEntries`](crate::DerivedEntries), for a type with a field `index`.
macro_rules! stands_on_index {
    ($name:ident $(, $constant:ident)?) => {
        impl<K: RecordKey, V $(, const $constant: usize)?> $name<K, V $(, $constant)?> {
            /// The entries as an [`Index`].
            pub fn as_index(&self) -> &Index<K, V, AnyParts> {
                &self.index
            }

            /// Everything that is not as it should be between `table` and this index.
            ///
            /// # Errors
            /// As [`Index::check`].
            pub fn check<C: keyloom::value::Codec<V>>(
                &self,
                reader: &impl keyloom::Reader,
                table: &$crate::Table<K, V, C>,
            ) -> Result<Vec<$crate::Inconsistency>> {
                self.index.check(reader, table)
            }

            /// Where the entries are.
            pub(crate) fn space(&self) -> &Subspace {
                self.index.space()
            }

            /// Makes the index what it should be, or builds it; see
            /// [`derived::repair`](crate::derived::repair()).
            ///
            /// # Errors
            /// As [`Index::repair`].
            pub fn repair<S: keyloom::Store, C: keyloom::value::Codec<V>>(
                &self,
                store: &S,
                table: &$crate::Table<K, V, C>,
                options: &$crate::RepairOptions,
                progress: impl FnMut(&$crate::RepairProgress) -> std::ops::ControlFlow<()>,
            ) -> Result<$crate::RepairProgress> {
                self.index.repair(store, table, options, progress)
            }
        }

        impl<K: RecordKey, V $(, const $constant: usize)?> $crate::DerivedEntries<K, V>
            for $name<K, V $(, $constant)?>
        {
            fn space(&self) -> &Subspace {
                self.index.space()
            }

            fn entries(&self, key: &K, value: &V) -> Vec<$crate::derived::DerivedEntry> {
                self.index.entries(key, value)
            }

            fn record_key(&self, key: &[u8], value: &[u8]) -> Result<K> {
                self.index.record_key(key, value)
            }

            fn maintain(
                &self,
                txn: &mut keyloom::DynWriter<'_>,
                changes: &[$crate::RecordChange<'_, K, V>],
                writes: &mut $crate::derived::SortedWrites,
            ) -> Result<()> {
                self.index.maintain(txn, changes, writes)
            }

            fn validate(&self, changes: &[$crate::RecordChange<'_, K, V>]) -> Result<()> {
                self.index.validate(changes)
            }
        }
    };
}

pub(crate) use stands_on_index;
