//! Implementations for patterns that are built on an [`Index`]($crate::Index) and delegate to that
//! index.

/// Implements `check`, `repair` and [`DerivedEntries`]($crate::DerivedEntries) for a type with a
/// field `index`. `$group` is a type parameter for the leading parts of the entries.
#[macro_export]
macro_rules! stands_on_index {
    ($name:ident $(<$group:ident>)? $(, $constant:ident)?; $($described:tt)*) => {
        impl<K: RecordKey, V $(, const $constant: usize)? $(, $group)?>
            $name<K, V $(, $constant)? $(, $group)?>
        {
            /// The entries as an [`Index`].
            pub fn as_index(&self) -> &Index<K, V, AnyParts> {
                &self.index
            }

            /// The subspace of the entries.
            pub(crate) fn space(&self) -> &Subspace {
                self.index.space()
            }
        }

        impl<K: RecordKey, V $(, const $constant: usize)? $(, $group)?>
            $crate::DerivedEntries<K, V> for $name<K, V $(, $constant)? $(, $group)?>
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

        impl<
            K: RecordKey,
            V: 'static
            $(, const $constant: usize)?
            $(, $group: $crate::parts::KeyShape + 'static)?
        > $crate::Maintained for $name<K, V $(, $constant)? $(, $group)?>
        {
            $crate::described!($($described)*);

            fn check<C: keyloom::value::Codec<V>>(
                &self,
                reader: &impl keyloom::Reader,
                table: &$crate::Table<K, V, C>,
            ) -> Result<Vec<$crate::Inconsistency>> {
                self.index.check(reader, table)
            }

            fn check_in_parallel<S: keyloom::Store, C: keyloom::value::Codec<V>>(
                &self,
                store: &S,
                table: &$crate::Table<K, V, C>,
                threads: usize,
                guard: impl Fn(&S::Snapshot<'_>) -> Result<()> + Sync,
            ) -> Result<Vec<$crate::Inconsistency>> {
                self.index.check_in_parallel(store, table, threads, guard)
            }

            fn repair_with<S: keyloom::Store, C: keyloom::value::Codec<V>>(
                &self,
                store: &S,
                table: &$crate::Table<K, V, C>,
                options: &$crate::RepairOptions,
                progress: impl FnMut(&$crate::Progress) -> std::ops::ControlFlow<()>,
            ) -> Result<$crate::Progress> {
                self.index.repair_with(store, table, options, progress)
            }
        }
    };
}
