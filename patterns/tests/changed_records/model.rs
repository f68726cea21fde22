//! Record types that are created at run time, and the conversion of values between them.

use fastrand::Rng;

/// The maximum number of types in a record: see [`Part`](crate::dynamic::Part).
pub const MOST: usize = 24;

/// A record type. The first of its types is that of the record.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    pub types: Vec<Type>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Leaf {
    Bool,
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F64,
    Text,
    Unit,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    Leaf(Leaf),
    Option(usize),
    List(usize),
    Tuple(Vec<usize>),
    Newtype(usize),
    Struct(Struct),
    Enum(Vec<Variant>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Struct {
    pub fields: Vec<Field>,
    /// Corresponds to `deny_unknown_fields`.
    pub is_strict: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub name: &'static str,
    pub alias: Option<&'static str>,
    pub has_default: bool,
    pub of: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    pub name: &'static str,
    pub alias: Option<&'static str>,
    pub of: Option<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    Unit,
    None,
    Some(Box<Value>),
    List(Vec<Value>),
    Struct(Vec<(&'static str, Value)>),
    Variant(&'static str, Option<Box<Value>>),
}

const LEAVES: [Leaf; 12] = [
    Leaf::Bool,
    Leaf::U8,
    Leaf::U16,
    Leaf::U32,
    Leaf::U64,
    Leaf::I8,
    Leaf::I16,
    Leaf::I32,
    Leaf::I64,
    Leaf::F64,
    Leaf::Text,
    Leaf::Unit,
];

const NAMES: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "aa", "ab"];

impl Leaf {
    pub fn range(self) -> Option<(i128, i128)> {
        Some(match self {
            Self::U8 => (0, u8::MAX.into()),
            Self::U16 => (0, u16::MAX.into()),
            Self::U32 => (0, u32::MAX.into()),
            Self::U64 => (0, u64::MAX.into()),
            Self::I8 => (i8::MIN.into(), i8::MAX.into()),
            Self::I16 => (i16::MIN.into(), i16::MAX.into()),
            Self::I32 => (i32::MIN.into(), i32::MAX.into()),
            Self::I64 => (i64::MIN.into(), i64::MAX.into()),
            _ => return None,
        })
    }
}

impl Model {
    /// A random record type: a struct or an enum, rarely another type.
    pub fn any(rng: &mut Rng) -> Self {
        let mut model = Self { types: Vec::new() };
        let kind = if rng.u8(..) < 230 { rng.u8(5..7) } else { rng.u8(0..5) };
        model.add(rng, kind, 0);
        model
    }

    fn add_any(&mut self, rng: &mut Rng, depth: usize) -> usize {
        let is_full = self.types.len() + 8 > MOST || depth >= 4;
        let kind = if is_full || rng.bool() { 0 } else { rng.u8(0..7) };
        self.add(rng, kind, depth)
    }

    fn add(&mut self, rng: &mut Rng, kind: u8, depth: usize) -> usize {
        let place = self.types.len();
        self.types.push(Type::Leaf(LEAVES[rng.usize(..LEAVES.len())]));
        let room = |model: &Self| MOST.saturating_sub(model.types.len() + 4).min(4);
        self.types[place] = match kind {
            0 => return place,
            1 => Type::Option(self.add_plain(rng, depth)),
            2 => Type::List(self.add_any(rng, depth + 1)),
            3 => {
                let parts = rng.usize(0..=room(self).min(3));
                Type::Tuple((0..parts).map(|_| self.add_any(rng, depth + 1)).collect())
            }
            4 => Type::Newtype(self.add_any(rng, depth + 1)),
            5 => {
                let names = some_names(rng, room(self));
                let fields = names.into_iter().map(|name| self.field(rng, name, depth));
                Type::Struct(Struct { fields: fields.collect(), is_strict: rng.u8(..) < 20 })
            }
            _ => {
                let names = some_names(rng, room(self).max(1));
                let variants = names.into_iter().map(|name| {
                    let of = rng.bool().then(|| self.add_any(rng, depth + 1));
                    Variant { name, alias: None, of }
                });
                Type::Enum(variants.collect())
            }
        };
        place
    }

    /// Adds a type whose values no codec confuses with `None`.
    fn add_plain(&mut self, rng: &mut Rng, depth: usize) -> usize {
        loop {
            let before = self.types.len();
            let place = self.add_any(rng, depth + 1);
            if !self.may_be_null(place) {
                return place;
            }
            self.types.truncate(before);
        }
    }

    fn may_be_null(&self, of: usize) -> bool {
        match &self.types[of] {
            Type::Leaf(Leaf::Unit) | Type::Option(_) => true,
            Type::Newtype(of) => self.may_be_null(*of),
            _ => false,
        }
    }

    fn field(&mut self, rng: &mut Rng, name: &'static str, depth: usize) -> Field {
        let of = match rng.u8(..) {
            // A list of the record itself.
            0..=15 if self.types.len() + 6 < MOST => {
                self.types.push(Type::List(0));
                self.types.len() - 1
            }
            _ => self.add_any(rng, depth + 1),
        };
        Field { name, alias: None, has_default: rng.u8(..) < 60, of }
    }

    /// A value, with integers of all magnitudes of their type.
    pub fn value(&self, rng: &mut Rng, of: usize, depth: usize) -> Value {
        let is_deep = depth > 5;
        match &self.types[of] {
            Type::Leaf(leaf) => leaf_value(rng, *leaf),
            Type::Option(_) if is_deep || rng.bool() => Value::None,
            Type::Option(of) => Value::Some(Box::new(self.value(rng, *of, depth + 1))),
            Type::List(of) => {
                let len = if is_deep { 0 } else { rng.usize(0..3) };
                Value::List((0..len).map(|_| self.value(rng, *of, depth + 1)).collect())
            }
            Type::Tuple(parts) => {
                Value::List(parts.iter().map(|of| self.value(rng, *of, depth + 1)).collect())
            }
            Type::Newtype(of) => self.value(rng, *of, depth),
            Type::Struct(Struct { fields, .. }) => {
                let one = |field: &Field| (field.name, self.value(rng, field.of, depth + 1));
                Value::Struct(fields.iter().map(one).collect())
            }
            Type::Enum(variants) => {
                let one = &variants[rng.usize(..variants.len())];
                let content = one.of.map(|of| Box::new(self.value(rng, of, depth + 1)));
                Value::Variant(one.name, content)
            }
        }
    }

    /// The default value of a field that is missing in a record.
    pub fn default_of(&self, of: usize) -> Value {
        match &self.types[of] {
            Type::Leaf(Leaf::Bool) => Value::Bool(false),
            Type::Leaf(Leaf::F64) => Value::Float(0.0),
            Type::Leaf(Leaf::Text) => Value::Text(String::new()),
            Type::Leaf(Leaf::Unit) => Value::Unit,
            Type::Leaf(_) => Value::Integer(0),
            Type::Option(_) => Value::None,
            Type::List(_) => Value::List(Vec::new()),
            Type::Tuple(parts) => {
                Value::List(parts.iter().map(|of| self.default_of(*of)).collect())
            }
            Type::Newtype(of) => self.default_of(*of),
            Type::Struct(Struct { fields, .. }) => Value::Struct(
                fields.iter().map(|field| (field.name, self.default_of(field.of))).collect(),
            ),
            Type::Enum(variants) => {
                let first = &variants[0];
                Value::Variant(first.name, first.of.map(|of| Box::new(self.default_of(of))))
            }
        }
    }

    /// Whether the field may be missing in a record.
    pub fn is_optional(&self, field: &Field) -> bool {
        field.has_default || matches!(self.types[field.of], Type::Option(_))
    }

    /// Converts a value of another model to this one. Fields and variants correspond by name.
    /// Returns `None` if there is no conversion.
    pub fn read(&self, of: usize, value: &Value) -> Option<Value> {
        Some(match (&self.types[of], value) {
            (Type::Newtype(of), _) => self.read(*of, value)?,
            (Type::Option(_), Value::None) => Value::None,
            (Type::Option(of), Value::Some(value)) => Value::Some(Box::new(self.read(*of, value)?)),
            (Type::Option(of), _) => Value::Some(Box::new(self.read(*of, value)?)),
            (Type::Leaf(leaf), Value::Integer(n)) => {
                let (least, most) = leaf.range()?;
                (least..=most).contains(n).then_some(Value::Integer(*n))?
            }
            (Type::Leaf(Leaf::Bool), Value::Bool(_))
            | (Type::Leaf(Leaf::F64), Value::Float(_))
            | (Type::Leaf(Leaf::Text), Value::Text(_))
            | (Type::Leaf(Leaf::Unit), Value::Unit) => value.clone(),
            (Type::List(of), Value::List(all)) => {
                Value::List(all.iter().map(|one| self.read(*of, one)).collect::<Option<_>>()?)
            }
            (Type::Tuple(parts), Value::List(all)) if parts.len() == all.len() => {
                let parts = parts.iter().zip(all).map(|(of, one)| self.read(*of, one));
                Value::List(parts.collect::<Option<_>>()?)
            }
            (Type::Struct(Struct { fields, is_strict }), Value::Struct(all)) => {
                let is_of = |field: &Field, name| field.name == name || field.alias == Some(name);
                let is_known = |name| fields.iter().any(|field| is_of(field, name));
                if *is_strict && !all.iter().all(|(name, _)| is_known(*name)) {
                    return None;
                }
                let one = |field: &Field| {
                    let mut found = all.iter().filter(|(name, _)| is_of(field, *name));
                    let value = match (found.next(), found.next()) {
                        (Some((_, value)), None) => self.read(field.of, value)?,
                        (None, None) if self.is_optional(field) => self.default_of(field.of),
                        _ => return None,
                    };
                    Some((field.name, value))
                };
                Value::Struct(fields.iter().map(one).collect::<Option<_>>()?)
            }
            (Type::Enum(variants), Value::Variant(name, content)) => {
                let mut found =
                    variants.iter().filter(|one| one.name == *name || one.alias == Some(*name));
                let one = found.next()?;
                let content = match (one.of, content) {
                    (None, None) => None,
                    (Some(of), Some(content)) => Some(Box::new(self.read(of, content)?)),
                    _ => return None,
                };
                Value::Variant(one.name, content)
            }
            _ => return None,
        })
    }
}

fn some_names(rng: &mut Rng, most: usize) -> Vec<&'static str> {
    let mut names = NAMES.to_vec();
    rng.shuffle(&mut names);
    names.truncate(rng.usize(0..=most).max(usize::from(most > 0)));
    names
}

fn leaf_value(rng: &mut Rng, leaf: Leaf) -> Value {
    match leaf {
        Leaf::Bool => Value::Bool(rng.bool()),
        Leaf::F64 => Value::Float(f64::from(rng.i32(..)) / 8.0),
        Leaf::Text => Value::Text("ab\u{e9}".chars().cycle().take(rng.usize(0..4)).collect()),
        Leaf::Unit => Value::Unit,
        _ => {
            let (least, most) = leaf.range().unwrap();
            let n = match rng.u8(..4) {
                0 => rng.i128(-3..=3),
                1 => rng.i128(-200..=300),
                2 => rng.i128(least..=most),
                _ => [least, most][rng.usize(..2)],
            };
            Value::Integer(n.clamp(least, most))
        }
    }
}

/// Typical changes of a model.
impl Model {
    pub fn changed(&self, rng: &mut Rng) -> Self {
        let mut changed = self.clone();
        for _ in 0..rng.u8(0..3) {
            changed.change(rng);
        }
        changed
    }

    fn change(&mut self, rng: &mut Rng) {
        let place = rng.usize(..self.types.len());
        let is_null = self.may_be_null(place);
        let fresh = |taken: &[&'static str], rng: &mut Rng| {
            let mut free = NAMES.to_vec();
            free.retain(|name| !taken.contains(name));
            free[rng.usize(..free.len())]
        };
        let room = self.types.len() + 1 < MOST;
        // Wraps or unwraps any type.
        match rng.u8(..20) {
            0 if room && !is_null => return self.wrap(place, Type::Option),
            1 if room => return self.wrap(place, Type::Newtype),
            2 if room => return self.wrap(place, Type::List),
            3 => {
                if let Type::Option(of) | Type::Newtype(of) = self.types[place] {
                    self.types[place] = self.types[of].clone();
                }
                return;
            }
            _ => {}
        }
        let added = self.types.len();
        match &mut self.types[place] {
            Type::Leaf(leaf) => {
                *leaf = LEAVES[rng.usize(..LEAVES.len())];
                // Codecs with field names refuse an option of a unit.
                if *leaf == Leaf::Unit {
                    *leaf = Leaf::U8;
                }
            }
            Type::Tuple(parts) if parts.len() > 1 => parts.reverse(),
            Type::Struct(of) => {
                let taken: Vec<_> = of
                    .fields
                    .iter()
                    .flat_map(|one| [Some(one.name), one.alias])
                    .flatten()
                    .collect();
                let at = rng.usize(..of.fields.len().max(1));
                let is_empty = of.fields.is_empty();
                match rng.u8(..10) {
                    0 => of.is_strict = !of.is_strict,
                    1 | 2 if !is_empty => rng.shuffle(&mut of.fields),
                    3 if !is_empty => of.fields[at].name = fresh(&taken, rng),
                    4 if !is_empty => {
                        of.fields[at].alias = Some(of.fields[at].name);
                        of.fields[at].name = fresh(&taken, rng);
                    }
                    5 if !is_empty => drop(of.fields.remove(at)),
                    6 if !is_empty => of.fields[at].has_default = !of.fields[at].has_default,
                    7 if of.fields.len() > 1 => {
                        let other = (at + 1) % of.fields.len();
                        let (a, b) = (of.fields[at].of, of.fields[other].of);
                        (of.fields[at].of, of.fields[other].of) = (b, a);
                    }
                    _ if room => {
                        let name = fresh(&taken, rng);
                        let has_default = rng.u8(..4) > 0;
                        let field = Field { name, alias: None, has_default, of: added };
                        of.fields.insert(rng.usize(..=of.fields.len()), field);
                        self.types.push(Type::Leaf(LEAVES[rng.usize(..LEAVES.len() - 1)]));
                    }
                    _ => {}
                }
            }
            Type::Enum(variants) => {
                let taken: Vec<_> =
                    variants.iter().flat_map(|one| [Some(one.name), one.alias]).flatten().collect();
                let at = rng.usize(..variants.len());
                match rng.u8(..7) {
                    0 => rng.shuffle(variants),
                    1 => variants[at].name = fresh(&taken, rng),
                    2 => {
                        variants[at].alias = Some(variants[at].name);
                        variants[at].name = fresh(&taken, rng);
                    }
                    3 if variants.len() > 1 => drop(variants.remove(at)),
                    4 => variants[at].of = None,
                    _ => {
                        let variant = Variant { name: fresh(&taken, rng), alias: None, of: None };
                        let end = variants.len();
                        variants.insert(if rng.bool() { end } else { rng.usize(..=end) }, variant);
                    }
                }
            }
            _ => {}
        }
    }

    fn wrap(&mut self, place: usize, wrapper: fn(usize) -> Type) {
        let of = self.types.len();
        self.types.push(self.types[place].clone());
        self.types[place] = wrapper(of);
    }

    /// Whether the record type has any value: no struct may contain itself.
    pub fn has_value(&self) -> bool {
        fn has(model: &Model, of: usize, above: &mut Vec<usize>) -> bool {
            if above.contains(&of) {
                return false;
            }
            above.push(of);
            let is = match &model.types[of] {
                Type::Leaf(_) | Type::Option(_) | Type::List(_) => true,
                Type::Newtype(of) => has(model, *of, above),
                Type::Tuple(parts) => parts.iter().all(|of| has(model, *of, above)),
                Type::Struct(all) => all.fields.iter().all(|field| has(model, field.of, above)),
                Type::Enum(all) => {
                    all.iter().all(|one| one.of.is_none_or(|of| has(model, of, above)))
                }
            };
            above.pop();
            is
        }
        has(self, 0, &mut Vec::new())
    }

    /// The type as seen by a mutant that ignores the order of fields.
    pub fn with_sorted_fields(&self) -> Self {
        let mut sorted = self.clone();
        for one in &mut sorted.types {
            match one {
                Type::Struct(of) => of.fields.sort_by_key(|field| field.name),
                Type::Enum(variants) => variants.sort_by_key(|one| one.name),
                _ => {}
            }
        }
        sorted
    }

    /// The type as seen by a mutant that ignores the widths of integers.
    pub fn with_one_integer(&self) -> Self {
        let mut widened = self.clone();
        for one in &mut widened.types {
            if let Type::Leaf(leaf) = one
                && leaf.range().is_some()
            {
                *leaf = Leaf::I64;
            }
        }
        widened
    }
}
