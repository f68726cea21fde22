//! The data derived from a record: as written in the attribute, and with its fields resolved.

use proc_macro2::Span;
use syn::{Error, Expr, Field, Ident, Result, Type};

use super::parts::{Form, Part, WrittenPart, refuse_second_each, resolve};

/// Derived data with its fields.
pub(super) struct Derived {
    pub(super) name: Ident,
    pub(super) version: u32,
    pub(super) when: Option<Expr>,
    pub(super) is_deferred: bool,
    pub(super) kind: Kind,
}

pub(super) enum Kind {
    Index {
        parts: Vec<Part>,
        is_unique: bool,
        covering: Vec<Field>,
    },
    Ranked {
        parts: Vec<Part>,
    },
    /// Adds `of` for each record, or 1.
    Totals {
        parts: Vec<Part>,
        of: Option<Box<Expr>>,
    },
    /// Points at a latitude and a longitude.
    Points {
        at: Box<[Field; 2]>,
    },
    Text {
        fields: Vec<Part>,
        analyzer: Box<Expr>,
        /// The fields by which a search can filter.
        filters: Vec<Part>,
        keys_as_ids: bool,
    },
    Inverted {
        fields: Vec<Part>,
        keys_as_ids: bool,
    },
    Expiry {
        deadline: Box<Field>,
    },
    /// Data from a function of the program.
    Other {
        ty: Box<Type>,
        make: Box<Expr>,
    },
}

/// The word that declares data of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Index,
    Ranked,
    Totals,
    Points,
    Text,
    Inverted,
    Expiry,
}

impl Word {
    pub(super) const ALL: [(&'static str, Self); 7] = [
        ("index", Self::Index),
        ("ranked", Self::Ranked),
        ("totals", Self::Totals),
        ("points", Self::Points),
        ("text", Self::Text),
        ("inverted", Self::Inverted),
        ("expiry", Self::Expiry),
    ];

    pub(super) fn named(name: &Ident) -> Option<Self> {
        Self::ALL.iter().find(|(word, _)| name == word).map(|(_, word)| *word)
    }

    pub(super) fn options(self) -> &'static [&'static str] {
        match self {
            Self::Index => &["covering", "deferred", "unique", "version", "when"],
            Self::Ranked | Self::Points => &["deferred", "version", "when"],
            Self::Totals => &["deferred", "of", "version", "when"],
            Self::Text => &["analyzer", "deferred", "filters", "keys_as_ids", "version"],
            Self::Inverted => &["deferred", "keys_as_ids", "version"],
            Self::Expiry => &["version"],
        }
    }

    /// An example, for errors.
    pub(super) fn example(self) -> &'static str {
        match self {
            Self::Index => "by_status = (status, opened)",
            Self::Ranked => "by_score = (game, desc(score))",
            Self::Totals => "sold = (town, day), of = self.cents",
            Self::Points => "near = (latitude, longitude)",
            Self::Text => "search = (title, body), analyzer = Analyzer::english()",
            Self::Inverted => "facets = (status, each(tags), integer(cents))",
            Self::Expiry => "by_deadline = until",
        }
    }

    /// Whether a part of this kind may have the form.
    fn allows(self, form: Form) -> bool {
        match form {
            Form::Plain => true,
            Form::Desc => matches!(self, Self::Index | Self::Ranked | Self::Totals),
            Form::Each => !matches!(self, Self::Points | Self::Expiry),
            Form::Integer => self == Self::Inverted,
        }
    }
}

/// Derived data before its fields are found.
pub(super) struct Written {
    pub(super) word: Word,
    pub(super) name: Ident,
    pub(super) parts: Vec<WrittenPart>,
    pub(super) options: Options,
}

#[derive(Default)]
pub(super) struct Options {
    pub(super) version: Option<u32>,
    pub(super) when: Option<Expr>,
    /// The position of the option `unique`, if present.
    pub(super) unique: Option<Span>,
    pub(super) deferred: Option<Span>,
    pub(super) covering: Option<Vec<Ident>>,
    pub(super) of: Option<Expr>,
    pub(super) analyzer: Option<Expr>,
    pub(super) filters: Option<Vec<WrittenPart>>,
    pub(super) keys_as_ids: Option<Span>,
}

impl Written {
    /// Resolves the names of fields to fields.
    pub(super) fn resolve<'f>(self, find: impl Fn(&Ident) -> Result<&'f Field>) -> Result<Derived> {
        self.refuse_forms()?;
        let Self { word, name, parts, options } = self;
        let fields: Vec<Ident> = parts.iter().map(|part| part.field.clone()).collect();
        let kind = match word {
            Word::Index => {
                let covering = options.covering.unwrap_or_default();
                Kind::Index {
                    parts: resolve(parts, &find)?,
                    is_unique: options.unique.is_some(),
                    covering: covering
                        .iter()
                        .map(|name| find(name).cloned())
                        .collect::<Result<_>>()?,
                }
            }
            Word::Ranked => Kind::Ranked { parts: resolve(parts, &find)? },
            Word::Totals => {
                Kind::Totals { parts: resolve(parts, &find)?, of: options.of.map(Box::new) }
            }
            Word::Points => {
                let [latitude, longitude] = exactly(&fields, word, &name)?;
                let at = [find(latitude)?.clone(), find(longitude)?.clone()];
                Kind::Points { at: Box::new(at) }
            }
            Word::Text => {
                let missing = "say how texts become words: `analyzer = Analyzer::english()`";
                Kind::Text {
                    fields: resolve(parts, &find)?,
                    analyzer: options
                        .analyzer
                        .map(Box::new)
                        .ok_or_else(|| Error::new(name.span(), missing))?,
                    filters: resolve(options.filters.unwrap_or_default(), &find)?,
                    keys_as_ids: options.keys_as_ids.is_some(),
                }
            }
            Word::Inverted => Kind::Inverted {
                fields: resolve(parts, &find)?,
                keys_as_ids: options.keys_as_ids.is_some(),
            },
            Word::Expiry => {
                let [deadline] = exactly(&fields, word, &name)?;
                Kind::Expiry { deadline: Box::new(find(deadline)?.clone()) }
            }
        };
        let (version, is_deferred) = (options.version.unwrap_or(1), options.deferred.is_some());
        Ok(Derived { name, version, when: options.when, is_deferred, kind })
    }

    fn refuse_forms(&self) -> Result<()> {
        let Self { word, name, parts, options } = self;
        let filters = options.filters.iter().flatten();
        if let Some(part) = filters.into_iter().find(|part| part.is_desc) {
            let message =
                "a filter has no order; write `filters = (status, each(tags), integer(cents))`";
            return Err(Error::new(part.field.span(), message));
        }
        if let Some(part) = parts.iter().find(|part| part.forms().any(|form| !word.allows(form))) {
            let message =
                format!("this form of a part does not fit here; write `{}`", word.example());
            return Err(Error::new(part.field.span(), message));
        }
        if parts.is_empty() && *word != Word::Totals {
            let message = format!("name at least one field: `{}`", word.example());
            return Err(Error::new(name.span(), message));
        }
        if matches!(word, Word::Index | Word::Ranked | Word::Totals) {
            refuse_second_each(parts)?;
        }
        if let Some(unique) = options.unique {
            if parts.iter().any(|part| part.is_each) {
                let message = "a unique index has one entry for each record, and `each` makes \
                               several; remove one of them";
                return Err(Error::new(unique, message));
            }
            if options.deferred.is_some() {
                let message = "a unique index decides whether a record may be written, so it is \
                               not deferred; remove one of them";
                return Err(Error::new(unique, message));
            }
        }
        Ok(())
    }
}

fn exactly<'f, const N: usize>(
    fields: &'f [Ident],
    word: Word,
    name: &Ident,
) -> Result<&'f [Ident; N]> {
    fields.try_into().map_err(|_| {
        let s = if N == 1 { "" } else { "s" };
        let message = format!("give {N} field{s}: `{}`", word.example());
        Error::new(name.span(), message)
    })
}
