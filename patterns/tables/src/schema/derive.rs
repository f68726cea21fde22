//! Declares derived data.

use std::sync::Arc;

use keyloom::value::Codec;
use keyloom::{DynWriter, Error, Reader, Result, Store, Subspace, Writer};
use keyloom_kit::RecordKey;
use keyloom_kit::parts::KeyShape;

use super::attached::Attached;
use super::error::SchemaError;
use super::former::{former_derived, refuse_former};
use super::migrate::refuse_changed_sample;
use super::owned::{Declared, Owned, owned_by};
use super::state::State;
use super::stored::{Definition, Id, StoredDerived, StoredTable, space_of};
use super::{Known, Schema, new_id};
use crate::aggregate::{Contributions, Totals};
use crate::derived::Maintained;
use crate::index::{Index, IndexEntries};
use crate::table::Table;

impl<S: Store> Schema<'_, S> {
    /// Declares data derived from the records of `table`, and adds it to the schema if it is new.
    /// `make` returns the pattern in the given subspace; it may run twice.
    ///
    /// If the table is empty, new derived data is readable at once. Otherwise
    /// [build](Attached::build) it.
    ///
    /// `version` is the version of the function that computes the data. Raise it whenever the
    /// function returns a different result for the same record, and build again.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_tables::aggregate::{Event, RollUp};
    /// use keyloom_tables::Schema;
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "weather")?;
    /// let rain = schema.table::<(String, i64), u32>("rain")?;
    /// let by_day = schema.derive(&rain, "by_day", 1, |space| {
    ///     let event = |(town, time): &(String, i64), mm: &u32| Some(Event::new(town, *time, i64::from(*mm)));
    ///     RollUp::new(space, &[86_400], event)
    /// })?;
    /// store.transact(|txn| rain.put(txn, &("Bern".into(), 3_600), &7))?;
    /// let snapshot = store.snapshot()?;
    /// assert!(by_day.check(&snapshot)?.is_empty());
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// While the store may hold records of earlier [versions](keyloom::value::upgrade), data that
    /// consists of plain entries, such as an index, is compared with up to 102 such records. This
    /// costs up to 202 ranges of one key, and one more round trip.
    ///
    /// # Errors
    /// [`SchemaError::Contradiction`]; [`SchemaError::DeclaredTwice`]; [`SchemaError::NotOwned`]
    /// for a table outside of this schema; [`SchemaError::Outside`];
    /// [`SchemaError::UpgradeChanges`]; the errors of `make`; any error of the store.
    pub fn derive<D: Maintained, C: Codec<D::Value>>(
        &self,
        table: &Table<D::Key, D::Value, C>,
        name: &str,
        version: u32,
        make: impl Fn(&Subspace) -> Result<D>,
    ) -> Result<Attached<D, C>> {
        self.declare(table, name, version, false, make)
    }

    pub(super) fn declare<D: Maintained, C: Codec<D::Value>>(
        &self,
        table: &Table<D::Key, D::Value, C>,
        name: &str,
        version: u32,
        is_deferred: bool,
        make: impl Fn(&Subspace) -> Result<D>,
    ) -> Result<Attached<D, C>> {
        let define = |derived: &D| define(derived, version, is_deferred);
        let owned = owned_by(table).filter(|owned| owned.schema == self.name);
        let Some(owned) = owned else {
            let (schema, name) = (self.name.to_string(), name.into());
            return Err(SchemaError::NotOwned { schema, name }.into());
        };
        let made = |stored: StoredDerived| -> Result<_> {
            let derived = make_in(stored.id, owned, name, &make)?;
            Ok((define(&derived)?, stored, derived))
        };
        let mut known = self.known();
        let before = known.stored.get(&*owned.name).and_then(|table| table.get(name)).cloned();
        let before = before.map(made).transpose()?;
        let is_entered = |(definition, stored, _): &(Definition, StoredDerived, D)| {
            stored.definition.widened(definition).is_none()
        };
        let (definition, stored, derived) = match before.filter(is_entered) {
            Some(before) => before,
            None => {
                let defined = |id| {
                    let derived = make_in(id, owned, name, &make)?;
                    Ok((define(&derived)?, derived.has_data()))
                };
                let (table, entered) = self
                    .enter(|txn| enter_derived(&mut DynWriter::new(txn), owned, name, &defined))?;
                known.stored.insert(owned.name.to_string(), table);
                made(entered)?
            }
        };
        let (stored, definition) = match derived.has_data() {
            true => (stored, definition),
            false => self.renewed(&mut known, owned, name, stored, definition)?,
        };
        let [is, was] = [&definition, &stored.definition];
        if is.version == was.version && !was.covers(is) {
            return Err(SchemaError::Contradiction {
                schema: self.name.to_string(),
                name: owned.name_of(name),
                stored: was.to_string(),
                declared: is.to_string(),
            }
            .into());
        }
        let declared = Declared::new(&owned.name, &stored, definition, derived.derived());
        let has_earlier = known.stored.get(&*owned.name).is_some_and(StoredTable::has_earlier);
        let is_complete = stored.state == State::Readable && stored.queue.is_none();
        if has_earlier && is_complete && declared.is(&stored) {
            self.enter(|txn| {
                // Another program may have disabled the data since this program opened the schema.
                match owned.read(txn)?.get(name) {
                    Some(one) if one.state == State::Readable && declared.is(one) => {
                        refuse_changed_sample(txn, owned, &declared, table)
                    }
                    _ => Ok(()),
                }
            })?;
        }
        let declared = owned.declare(declared)?;
        let attached = Attached::new(derived, declared, table.clone());
        self.works.add(&owned.name, attached.clone());
        Ok(attached)
    }

    /// Updates the stored definition of data that needs no build. Returns the stored data and the
    /// definition of this program.
    fn renewed<K, V>(
        &self,
        known: &mut Known,
        owned: &Owned<K, V>,
        name: &str,
        stored: StoredDerived,
        definition: Definition,
    ) -> Result<(StoredDerived, Definition)> {
        // If only the version differs, nothing has changed, and no program needs to be excluded.
        let as_stored = Definition { version: stored.definition.version, ..definition.clone() };
        let definition = if as_stored == stored.definition { as_stored } else { definition };
        let is_newer = stored.definition.version < definition.version;
        let is_disabled = stored.state == State::Disabled && stored.definition == definition;
        if !is_newer && !is_disabled {
            return Ok((stored, definition));
        }
        let (table, renewed) = self.enter(|txn| renew(txn, owned, name, &definition))?;
        known.stored.insert(owned.name.to_string(), table);
        Ok((renewed, definition))
    }

    /// Declares an [`Index`]; `function` returns the entries of a record. See
    /// [`derive`](Schema::derive).
    ///
    /// # Errors
    /// [`SchemaError::Contradiction`], [`SchemaError::DeclaredTwice`], [`SchemaError::NotOwned`];
    /// any error of the store.
    pub fn index<K: RecordKey, V: 'static, P: KeyShape + 'static, C: Codec<V>>(
        &self,
        table: &Table<K, V, C>,
        name: &str,
        version: u32,
        function: impl Fn(&K, &V) -> IndexEntries<P> + Send + Sync + 'static,
    ) -> Result<Attached<Index<K, V, P>, C>> {
        let function = shared(function);
        self.derive(table, name, version, |space| Ok(Index::new(space, function.clone())))
    }

    /// Declares a [unique](Index::unique) index; see [`derive`](Schema::derive).
    ///
    /// # Errors
    /// [`SchemaError::Contradiction`], [`SchemaError::DeclaredTwice`], [`SchemaError::NotOwned`];
    /// any error of the store.
    pub fn unique_index<K: RecordKey, V: 'static, P: KeyShape + 'static, C: Codec<V>>(
        &self,
        table: &Table<K, V, C>,
        name: &str,
        version: u32,
        function: impl Fn(&K, &V) -> IndexEntries<P> + Send + Sync + 'static,
    ) -> Result<Attached<Index<K, V, P>, C>> {
        let function = shared(function);
        self.derive(table, name, version, |space| Ok(Index::new(space, function.clone()).unique()))
    }

    /// Declares [`Totals`] of the contributions that `function` returns for each record; see
    /// [`derive`](Schema::derive).
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_tables::aggregate::contribution;
    /// use keyloom_tables::Schema;
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "shop")?;
    /// let shoes = schema.table::<u32, u8>("shoes")?;
    /// let by_size = schema.totals(&shoes, "by_size", 1, |_, size| contribution(size, 1))?;
    /// store.transact(|txn| shoes.put_many(txn, [(1, 42), (2, 42), (3, 40)]))?;
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(by_size.at(&snapshot)?.get(&snapshot, 42)?, 2);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`SchemaError::Contradiction`], [`SchemaError::DeclaredTwice`], [`SchemaError::NotOwned`];
    /// any error of the store.
    pub fn totals<K: RecordKey, V: 'static, P: KeyShape + 'static, C: Codec<V>>(
        &self,
        table: &Table<K, V, C>,
        name: &str,
        version: u32,
        function: impl Fn(&K, &V) -> Contributions<P> + Send + Sync + 'static,
    ) -> Result<Attached<Totals<K, V, P>, C>> {
        let function = shared(function);
        self.derive(table, name, version, |space| Ok(Totals::new(space, function.clone())))
    }
}

/// Makes a function cloneable, since [`make`](Schema::derive) may run more than once.
fn shared<K, V, T>(
    function: impl Fn(&K, &V) -> T + Send + Sync + 'static,
) -> impl Fn(&K, &V) -> T + Clone + Send + Sync + 'static {
    let function = Arc::new(function);
    move |key: &K, value: &V| function(key, value)
}

fn define<D: Maintained>(derived: &D, version: u32, is_deferred: bool) -> Result<Definition> {
    let kind = derived.kind();
    if is_deferred && !derived.can_be_deferred() {
        return Err(Error::InvalidArgument {
            what: "deferred derived data",
            value: kind.into(),
            why: "this kind decides whether a record may be written, or defers its work itself; declare it with `derive`",
        });
    }
    let (kind, format, options) = (kind.into(), derived.format(), derived.options());
    Ok(Definition { kind, format, version, options, parts: Some(derived.parts()), is_deferred })
}

/// Calls `make` with the subspace of `id`, and refuses a pattern outside of it.
fn make_in<D: Maintained>(
    id: Id,
    owned: &Owned<D::Key, D::Value>,
    name: &str,
    make: impl Fn(&Subspace) -> Result<D>,
) -> Result<D> {
    let space = space_of(id);
    let derived = make(&space)?;
    if space.contains(derived.space().prefix()) {
        return Ok(derived);
    }
    let (name, space) = (owned.name_of(name), derived.space().named());
    Err(SchemaError::Outside { name, space }.into())
}

/// Adds derived data to the table's entry, unless another program has already added it. `defined`
/// returns the definition of the data in the subspace of an id, and whether the data has keys.
// `defined` is a trait object, so that this function is compiled once per record type: a program
// declares more kinds of derived data than types of records.
fn enter_derived<K, V>(
    txn: &mut DynWriter<'_>,
    owned: &Owned<K, V>,
    name: &str,
    defined: &dyn Fn(Id) -> Result<(Definition, bool)>,
) -> Result<(StoredTable, StoredDerived)> {
    let mut table = owned.read(txn)?;
    if let Some(stored) = table.get_mut(name) {
        let (definition, _) = defined(stored.id)?;
        let widened = stored.definition.widened(&definition);
        let is_widened = widened.is_some();
        stored.definition = widened.unwrap_or_else(|| stored.definition.clone());
        let stored = stored.clone();
        if is_widened {
            owned.write(txn, &table)?;
        }
        return Ok((table, stored));
    }
    let renamed = txn.get(&former_derived(table.id, name))?.map(|new| new.to_vec());
    refuse_former(renamed.as_deref(), &owned.name_of(name))?;
    let id = new_id(txn)?;
    let (definition, has_data) = defined(id)?;
    let queue = definition.is_deferred.then(|| new_id(txn)).transpose()?;
    let is_built = !has_data || txn.first(table.space().self_and_children())?.is_none();
    let state = if is_built { State::Readable } else { State::Disabled };
    let (name, built_to) = (name.into(), None);
    let all_visited = false;
    let entered = StoredDerived {
        name,
        id,
        definition,
        state,
        built_to,
        all_visited,
        queue,
        fenced_until: None,
    };
    table.insert(entered.clone());
    owned.write(txn, &table)?;
    Ok((table, entered))
}

/// Writes a new version of derived data that needs no build, or enables the data again.
fn renew<K, V>(
    txn: &mut impl Writer,
    owned: &Owned<K, V>,
    name: &str,
    definition: &Definition,
) -> Result<(StoredTable, StoredDerived)> {
    let mut table = owned.read(txn)?;
    let gone = || SchemaError::Gone { name: owned.name_of(name) };
    let stored = table.get_mut(name).ok_or_else(gone)?;
    // Another program may have declared a later version meanwhile, which the caller then refuses.
    if stored.definition.version < definition.version || stored.definition == *definition {
        stored.definition = definition.clone();
        stored.state = State::Readable;
    }
    let stored = stored.clone();
    owned.write(txn, &table)?;
    Ok((table, stored))
}
