//! The attributes of a record.

use proc_macro2::TokenStream;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::token::Paren;
use syn::{
    Data, DeriveInput, Error, Expr, Field, Fields, FieldsNamed, Ident, LitStr, Path, Result, Token,
    Type, Visibility, parenthesized, parse_quote,
};

use super::derived::{Derived, Word, Written};
use super::reserved::refuse_reserved;
use super::words::{parse_derived, parse_field_index, parse_word};
use crate::errors::Errors;
use crate::options::{
    crate_path, default_crate, parse_options, refuse_generics, set, value, version,
};

const OPTIONS: [&str; 16] = [
    "table",
    "key",
    "codec",
    "version",
    "from",
    "from_plain",
    "name",
    "index",
    "ranked",
    "totals",
    "points",
    "text",
    "inverted",
    "expiry",
    "derived",
    "crate",
];

/// `Upgrade` reserves the greater numbers.
const MAX_VERSION: u32 = 250;

pub(super) struct Record {
    pub(super) ident: Ident,
    pub(super) vis: Visibility,
    pub(super) name: Ident,
    pub(super) table: LitStr,
    pub(super) key: Key,
    pub(super) codec: Option<Path>,
    pub(super) upgrade: Option<Upgrade>,
    pub(super) data: Vec<Derived>,
    pub(super) patterns: Path,
}

pub(super) enum Key {
    /// The key is made of these fields.
    Fields(Vec<Field>),
    /// The key has this type and is not in the record.
    Outside(Type),
}

pub(super) struct Upgrade {
    pub(super) version: u32,
    pub(super) from: From,
}

pub(super) enum From {
    Version(Type),
    Plain(Type),
    Nothing,
}

#[derive(Default)]
struct Options {
    table: Option<LitStr>,
    key: Option<WrittenKey>,
    codec: Option<Path>,
    version: Option<u32>,
    from: Option<Type>,
    from_plain: Option<Type>,
    name: Option<Ident>,
    patterns: Option<Path>,
    written: Vec<Written>,
    derived: Vec<Derived>,
}

enum WrittenKey {
    Fields(Vec<Ident>),
    Outside(Type),
}

pub(super) fn parse(input: &DeriveInput) -> Result<Record> {
    let fields = named_fields(input)?;
    let mut errors = Errors::default();
    errors.keep(refuse_generics(&input.generics, "a record"));
    let mut options = options(input, &mut errors);
    // An attribute that does not parse may have contained the missing option.
    let is_complete = errors.is_empty();
    options.written.extend(field_indexes(fields, &mut errors));
    let upgrade = errors.keep(upgrade(&options)).flatten();
    let table = (is_complete || options.table.is_some()).then(|| table(&options, &input.ident));
    let table = table.and_then(|table| errors.keep(table));
    let key =
        (is_complete || options.key.is_some()).then(|| key(options.key, &input.ident, fields));
    let key = key.and_then(|key| errors.keep(key));
    let find = |name: &Ident| {
        let field = find_field(name, &input.ident, fields)?;
        refuse_skipped(field, "the data derived from it").map(|()| field)
    };
    let data = options.written.into_iter().filter_map(|written| errors.keep(written.resolve(find)));
    let mut data: Vec<Derived> = data.collect();
    data.extend(options.derived);
    refuse_names(data.iter().map(|one| &one.name), &mut errors);
    errors.finish()?;
    let (Some(table), Some(key)) = (table, key) else {
        return Err(Error::new(input.ident.span(), "the record has no table and no key"));
    };
    let default_name = || Ident::new(&format!("{}Table", input.ident), input.ident.span());
    Ok(Record {
        ident: input.ident.clone(),
        vis: input.vis.clone(),
        name: options.name.unwrap_or_else(default_name),
        table,
        key,
        codec: options.codec,
        upgrade,
        data,
        patterns: options.patterns.unwrap_or_else(default_crate),
    })
}

fn named_fields(input: &DeriveInput) -> Result<&FieldsNamed> {
    let refuse = |span, what: &str| {
        let message = format!(
            "`Record` is for structs with named fields, since indexes refer to \
                               fields by name; {what}"
        );
        Err(Error::new(span, message))
    };
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => Ok(fields),
            _ => refuse(input.ident.span(), "give the fields names"),
        },
        Data::Enum(data) => refuse(data.enum_token.span, "put the enum into a field of a struct"),
        Data::Union(data) => refuse(data.union_token.span, "use a struct"),
    }
}

fn options(input: &DeriveInput, errors: &mut Errors) -> Options {
    let mut options = Options::default();
    for attr in &input.attrs {
        if attr.path().is_ident("record") {
            errors.keep(attr.parse_args_with(|input: ParseStream<'_>| options.parse(input)));
        } else if attr.path().is_ident("index") || attr.path().is_ident("unique") {
            let message = "on the struct, declare an index as `#[record(index(by_status = \
                           (status, opened)))]`";
            errors.push(Error::new(attr.span(), message));
        }
    }
    options
}

impl Options {
    fn parse(&mut self, input: ParseStream<'_>) -> Result<()> {
        parse_options(input, &OPTIONS, |name, input| match name.to_string().as_str() {
            "table" => set(&mut self.table, name, value(input)?),
            "key" => set(&mut self.key, name, parse_key(input)?),
            "codec" => set(&mut self.codec, name, value(input)?),
            "version" => set(&mut self.version, name, version(input, MAX_VERSION)?),
            "from" => set(&mut self.from, name, value(input)?),
            "from_plain" => set(&mut self.from_plain, name, value(input)?),
            "name" => set(&mut self.name, name, value(input)?),
            "crate" => set(&mut self.patterns, name, crate_path(input)?),
            _ => {
                match Word::named(name) {
                    Some(word) => {
                        self.written
                            .push(in_parentheses(input, |content| parse_word(word, content))?);
                    }
                    None => self.derived.push(in_parentheses(input, parse_derived)?),
                }
                Ok(())
            }
        })
    }
}

fn in_parentheses<T>(
    input: ParseStream<'_>,
    parse: impl FnOnce(ParseStream<'_>) -> Result<T>,
) -> Result<T> {
    let content;
    parenthesized!(content in input);
    parse(&content)
}

/// Reads `(tenant, id)` or `= u64`.
fn parse_key(input: ParseStream<'_>) -> Result<WrittenKey> {
    if input.peek(Token![=]) {
        return value(input).map(WrittenKey::Outside);
    }
    let content;
    let parens = parenthesized!(content in input);
    let fields = Punctuated::<Ident, Token![,]>::parse_terminated_with(&content, Ident::parse_any)?;
    let message = match fields.len() {
        0 => "name the fields of the key, or its type: `key(id)`, `key = u64`",
        1..=12 => return Ok(WrittenKey::Fields(fields.into_iter().collect())),
        _ => "a key has at most 12 fields; put several into a struct that derives `Key`",
    };
    Err(Error::new(parens.span.join(), message))
}

fn field_indexes(fields: &FieldsNamed, errors: &mut Errors) -> Vec<Written> {
    let mut indexes = Vec::new();
    for field in &fields.named {
        for attr in &field.attrs {
            if attr.path().is_ident("index") || attr.path().is_ident("unique") {
                indexes.extend(errors.keep(parse_field_index(attr, field)));
            } else if attr.path().is_ident("record") {
                let message = "`record` is for the struct; a field has `#[index]` or `#[unique]`";
                errors.push(Error::new(attr.span(), message));
            }
        }
    }
    indexes
}

fn table(options: &Options, record: &Ident) -> Result<LitStr> {
    let message = match &options.table {
        Some(name) if !name.value().is_empty() => return Ok(name.clone()),
        Some(name) => return Err(Error::new(name.span(), "the name of a table is not empty")),
        None => "a record has a table: add `#[record(table = \"..\")]` with its name in the schema",
    };
    Err(Error::new(record.span(), message))
}

fn key(written: Option<WrittenKey>, record: &Ident, fields: &FieldsNamed) -> Result<Key> {
    let names = match written {
        Some(WrittenKey::Outside(ty)) => return Ok(Key::Outside(ty)),
        Some(WrittenKey::Fields(names)) => names,
        None => {
            let message = "a record has a key: add `key(..)` with fields of the struct, or \
                           `key = u64` for a key that is not in it, to `#[record(..)]`";
            return Err(Error::new(record.span(), message));
        }
    };
    let mut errors = Errors::default();
    let mut key: Vec<Field> = Vec::new();
    for name in &names {
        let Some(field) = errors.keep(find_field(name, record, fields)) else { continue };
        errors.keep(refuse_skipped(field, "the key"));
        if key.iter().any(|other| other.ident == field.ident) {
            let message = format!("`{name}` is in the key already; remove one");
            errors.push(Error::new(name.span(), message));
        }
        key.push(field.clone());
    }
    errors.finish()?;
    Ok(Key::Fields(key))
}

fn find_field<'f>(name: &Ident, record: &Ident, fields: &'f FieldsNamed) -> Result<&'f Field> {
    // A keyword as a field is `r#type` in the struct, and may be `type` in an attribute.
    let is_named = |field: &&Field| field.ident.as_ref().map(Ident::unraw) == Some(name.unraw());
    fields.named.iter().find(is_named).ok_or_else(|| {
        let names = fields.named.iter().filter_map(|field| field.ident.as_ref());
        let names: Vec<String> = names.map(|name| format!("`{}`", name.unraw())).collect();
        let message = match names.as_slice() {
            [] => format!("`{record}` has no fields"),
            names => {
                format!("`{record}` has no field `{name}`; its fields are {}", names.join(", "))
            }
        };
        Error::new(name.span(), message)
    })
}

/// Refuses a field that serde does not write: it would have a different value when the record is
/// read again.
fn refuse_skipped(field: &Field, of: &str) -> Result<()> {
    let mut skipped = None;
    for attr in field.attrs.iter().filter(|attr| attr.path().is_ident("serde")) {
        // Serde itself reports an attribute that does not parse.
        let _ = attr.parse_nested_meta(|meta| {
            let words = ["skip", "skip_serializing", "skip_deserializing"];
            if words.iter().any(|word| meta.path.is_ident(word)) {
                skipped = Some(meta.path.span());
            }
            if meta.input.peek(Token![=]) {
                meta.value()?.parse::<Expr>()?;
            } else if meta.input.peek(Paren) {
                in_parentheses(meta.input, |content| content.parse::<TokenStream>())?;
            }
            Ok(())
        });
    }
    let message =
        format!("serde leaves this field out of the stored record, and {of} needs it; remove this");
    skipped.map_or(Ok(()), |span| Err(Error::new(span, message)))
}

fn upgrade(options: &Options) -> Result<Option<Upgrade>> {
    let older = options.from.as_ref().or(options.from_plain.as_ref());
    let from = match (&options.from, &options.from_plain) {
        (Some(_), Some(plain)) => {
            let message = "a version has one type before it: `from` for one with a version, or \
                           `from_plain` for records that were written without; remove one";
            return Err(Error::new(plain.span(), message));
        }
        (Some(from), None) => From::Version(from.clone()),
        (None, Some(plain)) => From::Plain(plain.clone()),
        (None, None) => From::Nothing,
    };
    match (options.version, older) {
        (Some(version), _) => Ok(Some(Upgrade { version, from })),
        (None, None) => Ok(None),
        (None, Some(older)) => {
            let message = "a record with an earlier type has a version: add `version = ..`, \
                           greater than that of the earlier type";
            Err(Error::new(older.span(), message))
        }
    }
}

fn refuse_names<'i>(names: impl Iterator<Item = &'i Ident>, errors: &mut Errors) {
    let mut before: Vec<&Ident> = Vec::new();
    for name in names {
        errors.keep(refuse_reserved(name));
        if before.iter().any(|other| other.unraw() == name.unraw()) {
            let message = format!("other derived data is named `{name}`; rename one");
            errors.push(Error::new(name.span(), message));
        }
        before.push(name);
    }
}

impl Record {
    pub(super) fn support(&self) -> Path {
        let patterns = &self.patterns;
        parse_quote!(#patterns::derive_support)
    }
}
