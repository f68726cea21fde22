//! Translates the input of a search box to the query language.

use super::parser::QueryParser;

/// Characters that begin and end a phrase.
const QUOTES: [char; 6] = ['"', '“', '”', '„', '«', '»'];

/// Operators, and their form in the query language. An operator that is a word, but has no clause
/// to act on, is searched for as a term.
const OPERATORS: [(&str, &str); 6] =
    [("AND", "AND"), ("&&", "AND"), ("OR", "OR"), ("||", "OR"), ("|", "OR"), ("NOT", "NOT")];

enum Token<'t> {
    Operator {
        typed: &'t str,
        meaning: &'static str,
    },
    /// A clause of the query language, without its sign.
    Clause {
        sign: Option<char>,
        text: String,
    },
}

/// The text in the query language; empty if the input has no words.
pub(super) fn translated(parser: &QueryParser, text: &str) -> String {
    let mut reading = Reading { parser, rest: text, of_group: None, tokens: Vec::new() };
    while reading.token() {}
    joined(&parts(reading.tokens))
}

struct Reading<'t> {
    parser: &'t QueryParser,
    rest: &'t str,
    /// The sign of the parentheses around the next character.
    of_group: Option<char>,
    tokens: Vec<Token<'t>>,
}

impl<'t> Reading<'t> {
    /// Reads the next token. Returns `false` at the end of the input.
    fn token(&mut self) -> bool {
        self.rest = self.rest.trim_start();
        let sign = self.sign();
        match self.rest.chars().next() {
            None => return false,
            Some('(') => {
                self.of_group = sign;
                self.skip(1);
            }
            Some(')') => {
                self.of_group = None;
                self.skip(1);
            }
            Some(_) => {
                let field = self.field();
                match self.rest.starts_with(QUOTES) {
                    true => self.phrase(sign.or(self.of_group), &field),
                    false if sign.is_none() && field.is_empty() && self.operator() => {}
                    false => self.word(sign.or(self.of_group), &field),
                }
            }
        }
        true
    }

    fn skip(&mut self, bytes: usize) -> &'t str {
        let (skipped, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        skipped
    }

    /// A sign directly before a word, a phrase or parentheses. A dash elsewhere is not a sign.
    fn sign(&mut self) -> Option<char> {
        let sign = self.rest.chars().next().filter(|c| "+-".contains(*c))?;
        let next = self.rest.chars().nth(1)?;
        if !(next.is_alphanumeric() || next == '(' || QUOTES.contains(&next)) {
            return None;
        }
        self.skip(1);
        Some(sign)
    }

    /// The name of a known field with its colon, if a value follows directly.
    fn field(&mut self) -> String {
        let end = self.rest.find(|c: char| c.is_whitespace() || QUOTES.contains(&c) || c == ':');
        let Some((name, value)) = end.and_then(|end| self.rest.split_at_checked(end)) else {
            return String::new();
        };
        let is_value = value.strip_prefix(':').is_some_and(|value| {
            value.starts_with(|c: char| c.is_alphanumeric() || QUOTES.contains(&c))
        });
        if !is_value || !self.parser.declares(name) {
            return String::new();
        }
        self.skip(name.len() + 1);
        format!("{}:", escaped(name))
    }

    /// A phrase, up to the next quotation mark or to the end.
    fn phrase(&mut self, sign: Option<char>, field: &str) {
        self.skip(self.rest.chars().next().map_or(0, char::len_utf8));
        let phrase = self.skip(self.rest.find(QUOTES).unwrap_or(self.rest.len()));
        self.skip(self.rest.chars().next().map_or(0, char::len_utf8));
        if self.rest.starts_with(['~', '^']) {
            let end = self.rest.find(|c: char| !is_number(c) && c != '~' && c != '^');
            self.skip(end.unwrap_or(self.rest.len()));
        }
        if phrase.chars().any(|c| !is_mark(c) && !c.is_whitespace()) {
            let quoted = phrase.replace('\\', "\\\\").replace('"', "\\\"");
            self.tokens.push(Token::Clause { sign, text: format!("{field}\"{quoted}\"") });
        }
    }

    /// An operator, if one comes next.
    fn operator(&mut self) -> bool {
        let end = self.rest.find(char::is_whitespace).unwrap_or(self.rest.len());
        let typed = self.rest.get(..end).unwrap_or_default();
        let found = OPERATORS.into_iter().find(|(operator, _)| *operator == typed);
        if let Some((_, meaning)) = found {
            self.skip(end);
            self.tokens.push(Token::Operator { typed, meaning });
        }
        found.is_some()
    }

    /// A word, up to the next space or quotation mark.
    fn word(&mut self, sign: Option<char>, field: &str) {
        let end = self.rest.find(|c: char| c.is_whitespace() || QUOTES.contains(&c));
        let typed = self.skip(end.unwrap_or(self.rest.len()));
        let without_number = typed.trim_end_matches(is_number);
        let word = without_number.strip_suffix(['~', '^']).unwrap_or(typed);
        let word = word.trim_start_matches(is_mark);
        let word = word.trim_end_matches(|c| is_mark(c) && c != '*');
        let stem = word.trim_end_matches(is_mark);
        if !stem.is_empty() {
            let star = if word.len() > stem.len() { "*" } else { "" };
            let text = format!("{field}{}{star}", escaped(stem));
            self.tokens.push(Token::Clause { sign, text });
        }
        if typed.ends_with(is_mark) && typed.contains(')') {
            self.of_group = None;
        }
    }
}

/// Whether a character is a punctuation mark. At the beginning or the end of a word, such a
/// character is not part of the word.
fn is_mark(c: char) -> bool {
    c.is_ascii_punctuation() || "…–—¿¡‘’".contains(c) || QUOTES.contains(&c)
}

/// Whether a character may be in the number after `~` or `^`.
fn is_number(c: char) -> bool {
    c.is_ascii_digit() || "./=".contains(c)
}

/// A word without any special meaning.
fn escaped(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    if ["AND", "OR", "NOT"].contains(&word) {
        out.push('\\');
    }
    for c in word.chars() {
        if c.is_ascii_punctuation() {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A clause, and the operator between the previous clause and this one.
struct Part {
    operator: Option<&'static str>,
    sign: Option<char>,
    text: String,
}

/// Assigns each operator its clauses. If an operator has no clauses, a word such as `OR` becomes a
/// term to search for, and a symbol is dropped.
fn parts(tokens: Vec<Token<'_>>) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let (mut between, mut negation) = (None, None);
    for token in tokens {
        match token {
            Token::Operator { typed, meaning: "NOT" } => negation = Some(typed),
            Token::Operator { typed, .. } if parts.is_empty() => parts.extend(of_word(typed)),
            Token::Operator { typed, meaning } => between = Some((typed, meaning)),
            Token::Clause { sign, text } => {
                let operator = between.take().map(|(_, meaning)| meaning);
                let sign = if negation.take().is_some() { Some('-') } else { sign };
                parts.push(Part { operator, sign, text });
            }
        }
    }
    let left = between.map(|(typed, _)| typed).into_iter().chain(negation);
    parts.extend(left.filter_map(of_word));
    parts
}

fn of_word(typed: &str) -> Option<Part> {
    let is_word = typed.chars().all(char::is_alphabetic);
    is_word.then(|| Part { operator: None, sign: None, text: escaped(typed) })
}

/// The clauses as a text.
fn joined(parts: &[Part]) -> String {
    let mut out = String::new();
    for (at, Part { operator, sign, text }) in parts.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| parts.get(at));
        let is_excluded = |part: &Part| part.sign == Some('-');
        // Documents contain none of the excluded words, so operators between these words are
        // dropped.
        let operator =
            operator.filter(|_| !(*sign == Some('-') && before.is_some_and(is_excluded)));
        if let Some(operator) = operator {
            out.push_str(operator);
            out.push(' ');
        }
        let next = parts.get(at + 1).and_then(|next| next.operator);
        // The language does not allow `+` next to an operator.
        let sign = sign.filter(|sign| *sign == '-' || operator.or(next).is_none());
        out.extend(sign);
        out.push_str(text);
        out.push(' ');
    }
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::query::Operator;

    fn parser(operator: Operator) -> QueryParser {
        QueryParser::new(["body"]).fields(["title"]).operator(operator)
    }

    /// Inputs and their queries, if all words must match.
    const TYPED: &[(&str, &str)] = &[
        ("white rabbit", "+body:white +body:rabbit"),
        ("(white", "body:white"),
        ("white)", "body:white"),
        ("(white rabbit", "+body:white +body:rabbit"),
        ("10:30", r"body:10\:30"),
        ("at 10:30?", r"+body:at +body:10\:30"),
        ("http://example.org/a?b=c#d", r"body:http\:\/\/example.org\/a\?b\=c\#d"),
        ("rabbit?", "body:rabbit"),
        ("where is the rabbit?", "+body:where +body:is +body:the +body:rabbit"),
        ("\"white rabbit\"", r#"body:"white rabbit""#),
        ("\"white rabbit", r#"body:"white rabbit""#),
        ("“white rabbit” hole", r#"+body:"white rabbit" +body:hole"#),
        ("\"\"", ""),
        ("\"white rabbit\"~2 hole", r#"+body:"white rabbit" +body:hole"#),
        ("rabit~1", "body:rabit"),
        ("rabbit^2 hole", "+body:rabbit +body:hole"),
        ("rab*", "body:rab*"),
        ("rab*.", "body:rab*"),
        ("*bit", "body:bit"),
        ("*", ""),
        ("C++ or C#?", "+body:C +body:or +body:C"),
        ("AT&T", r"body:AT\&T"),
        ("rock & roll", "+body:rock +body:roll"),
        ("rock && roll", "+body:rock +body:roll"),
        ("rock | roll", "body:rock OR body:roll"),
        ("rock OR roll", "body:rock OR body:roll"),
        ("rock || roll music", "+(body:rock OR body:roll) +body:music"),
        ("rock or roll", "+body:rock +body:or +body:roll"),
        ("OR", r"body:\OR"),
        ("NOT", r"body:\NOT"),
        ("rock AND", r"+body:rock +body:\AND"),
        ("AND rock", r"+body:\AND +body:rock"),
        ("rock AND NOT roll", "+body:rock -body:roll"),
        ("rock NOT roll", "+body:rock -body:roll"),
        ("rock -roll", "+body:rock -body:roll"),
        ("rock - roll", "+body:rock +body:roll"),
        ("rock – roll", "+body:rock +body:roll"),
        ("rock --roll", "+body:rock +body:roll"),
        ("rock -\"roll over\"", r#"+body:rock -body:"roll over""#),
        ("tea -(green OR black)", "+body:tea -body:green -body:black"),
        ("tea -(green black) cup", "+body:tea -body:green -body:black +body:cup"),
        ("tea -(green) cup", "+body:tea -body:green +body:cup"),
        ("(tea OR coffee) cup", "+(body:tea OR body:coffee) +body:cup"),
        ("+tea OR coffee", "body:tea OR body:coffee"),
        ("+tea coffee", "+body:tea +body:coffee"),
        ("tea OR -coffee", "body:tea OR (-body:coffee)"),
        ("e-mail", r"body:e\-mail"),
        ("well-known -unknown", r"+body:well\-known -body:unknown"),
        ("title:rabbit", "title:rabbit"),
        ("title: rabbit", "+body:title +body:rabbit"),
        ("title:\"white rabbit\" hole", r#"+title:"white rabbit" +body:hole"#),
        ("-title:rabbit hole", "-title:rabbit +body:hole"),
        ("author:carroll", r"body:author\:carroll"),
        ("size:>10", r"body:size\:\>10"),
        ("[draft] letter", "+body:draft +body:letter"),
        ("<b>bold</b>", r"body:b\>bold\<\/b"),
        ("a/b/c", r"body:a\/b\/c"),
        ("/usr/bin", r"body:usr\/bin"),
        ("C:\\temp\\x", r"body:C\:\\temp\\x"),
        ("user@example.org", r"body:user\@example.org"),
        ("#hashtag", "body:hashtag"),
        ("@name", "body:name"),
        ("$5.00", "body:5.00"),
        ("100%", "body:100"),
        ("50€", "body:50€"),
        ("don't", r"body:don\'t"),
        ("'quoted'", "body:quoted"),
        ("the dog's bone", r"+body:the +body:dog\'s +body:bone"),
        ("x = y + z", "+body:x +body:y +body:z"),
        ("2 + 2 = 4", "+body:2 +body:2 +body:4"),
        ("1/2", r"body:1\/2"),
        ("f(x)", r"body:f\(x"),
        ("what?!", "body:what"),
        ("...", ""),
        ("?", ""),
        ("", ""),
        ("   ", ""),
        (":", ""),
        (":-)", ""),
        ("~", ""),
        ("^", ""),
        ("\\", ""),
        ("!important", "body:important"),
        ("a:b:c", r"body:a\:b\:c"),
        ("::1", "body:1"),
        ("12:30-13:00", r"body:12\:30\-13\:00"),
        ("2026-11-28", r"body:2026\-11\-28"),
        ("+49 30 123456", "+body:49 +body:30 +body:123456"),
        ("ISBN 978-3-16", r"+body:ISBN +body:978\-3\-16"),
        ("{json: 1}", "+body:json +body:1"),
        ("key=value", r"body:key\=value"),
        ("NEAR(a b)", r"+body:NEAR\(a +body:b"),
        ("COMBINED(title):\"a\"", r#"+body:COMBINED\(title +body:"a""#),
        ("a TO b", "+body:a +body:TO +body:b"),
        ("東京 タワー", "+body:東京 +body:タワー"),
        ("東京、大阪", "body:東京、大阪"),
        ("Привет, мир!", "+body:Привет +body:мир"),
        ("a\tb\nc", "+body:a +body:b +body:c"),
        ("5\" pipe", r#"+body:5 +body:" pipe""#),
        ("))) ((( white", "body:white"),
        ("white AND (rabbit", "+body:white +body:rabbit"),
        ("IF AND ONLY IF", "+(+body:IF +body:ONLY) +body:IF"),
        ("TO BE OR NOT TO BE", "+body:TO +(body:BE OR (-body:TO)) +body:BE"),
    ];

    #[test]
    fn what_is_typed_is_a_query() {
        let (parser, mut wrong) = (parser(Operator::And), Vec::new());
        for (typed, expected) in TYPED {
            let query = parser.parse_lenient(typed);
            let expected = match *expected {
                "" => crate::BooleanQuery::new().into(),
                expected => parser.parse(expected).unwrap(),
            };
            if query != expected {
                wrong.push(format!("{typed:?}: {query}, not {expected}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(TYPED.len() >= 100);
    }

    #[test]
    fn a_parser_that_cannot_search_is_not_an_error_of_the_text() {
        let without_fields = QueryParser::new([""; 0]).fields(["title"]);
        assert_eq!(without_fields.parse_lenient("rabbit"), crate::BooleanQuery::new().into());
        let in_field = without_fields.parse_lenient("title:rabbit");
        assert_eq!(in_field.to_string(), "title:rabbit");
        // The check rejects the boost, as for a query that is built without the parser.
        let query = QueryParser::new(["body"]).boost("body", -1.0).parse_lenient("rabbit");
        assert!(matches!(query.check(), Err(crate::QueryError::Score { .. })));
    }

    proptest! {
        /// The translation of any input is valid in the query language.
        #[test]
        fn each_translation_parses(
            typed in r#"([ -~“”é東]|AND|OR|NOT|NEAR\(|title:|&&|\|\||\t| ){0,40}"#,
            is_and in any::<bool>(),
        ) {
            let parser = parser(if is_and { Operator::And } else { Operator::Or });
            let translated = translated(&parser, &typed);
            let is_parsed = translated.is_empty() || parser.parse(&translated).is_ok();
            prop_assert!(is_parsed, "{typed:?} as {translated:?}: {:?}", parser.parse(&translated));
        }
    }
}
