//! Patterns of paths: `/photos/2024*/**`.

/// A pattern of the names on the path to a node.
#[derive(Debug)]
pub struct Pattern(Vec<Name>);

/// One name of a pattern, or several.
#[derive(Debug, PartialEq)]
enum Name {
    /// This name.
    Exactly(String),
    /// The names with these texts in this order, the first at the beginning and the last at the
    /// end: `*` stands between two texts.
    Like(Vec<String>),
    /// `**`: any names, or none.
    Any,
}

/// The places in the pattern that the names so far lead to, in ascending order.
pub type States = Vec<usize>;

impl Pattern {
    /// The pattern of a text. `None` if it does not begin with a slash.
    pub fn parse(text: &str) -> Option<Self> {
        let mut names = Vec::new();
        let mut name = vec![String::new()];
        let mut characters = text.strip_prefix('/')?.chars();
        let mut add = |name: Vec<String>| names.push(Name::of(name));
        while let Some(one) = characters.next() {
            match one {
                '/' => add(std::mem::replace(&mut name, vec![String::new()])),
                '*' => name.push(String::new()),
                one => {
                    let one = if one == '\\' { characters.next().unwrap_or(one) } else { one };
                    name.last_mut()?.push(one);
                }
            }
        }
        // A slash at the end stands for the children.
        if name == [""] {
            name.push(String::new());
        }
        add(name);
        Some(Self(names))
    }

    /// The states before the first name.
    pub fn start(&self) -> States {
        self.closed(vec![0])
    }

    /// The states after one more name. Empty if no path that begins with these names can match.
    pub fn step(&self, states: &[usize], name: &str) -> States {
        let next = |state: &usize| match self.0.get(*state)? {
            Name::Any => Some(*state),
            one => one.matches(name).then_some(state + 1),
        };
        self.closed(states.iter().filter_map(next).collect())
    }

    /// Adds the states that are reached without a further name, since `**` matches no names too.
    fn closed(&self, mut states: States) -> States {
        let mut at = 0;
        while let Some(state) = states.get(at).copied() {
            if self.0.get(state) == Some(&Name::Any) {
                states.push(state + 1);
            }
            at += 1;
        }
        states.sort_unstable();
        states.dedup();
        states
    }

    /// Whether the names so far match.
    pub fn is_match(&self, states: &[usize]) -> bool {
        states.contains(&self.0.len())
    }

    /// Whether longer paths can match.
    pub fn continues(&self, states: &[usize]) -> bool {
        states.iter().any(|state| *state < self.0.len())
    }

    /// Whether all longer paths match.
    pub fn is_whole(&self, states: &[usize]) -> bool {
        let is_rest_any = |state: &usize| match self.0.get(*state..) {
            None | Some([]) => false,
            Some(rest) => rest.iter().all(|name| *name == Name::Any),
        };
        states.iter().any(is_rest_any)
    }

    /// The only name that can come next, if there is only one.
    pub fn only_next(&self, states: &[usize]) -> Option<&str> {
        match (states, self.0.get(*states.first()?)?) {
            ([_], Name::Exactly(name)) => Some(name),
            _ => None,
        }
    }
}

impl Name {
    /// The name that has these texts between its stars.
    fn of(mut texts: Vec<String>) -> Self {
        match texts.as_slice() {
            [_] => Self::Exactly(texts.pop().unwrap_or_default()),
            [a, b, c] if [a, b, c].iter().all(|text| text.is_empty()) => Self::Any,
            _ => Self::Like(texts),
        }
    }

    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Exactly(exact) => exact == name,
            Self::Like(texts) => is_like(texts, name),
            Self::Any => true,
        }
    }
}

/// Whether a name has these texts in this order, the first at its start and the last at its end.
fn is_like(texts: &[String], name: &str) -> bool {
    let [first, middle @ .., last] = texts else { return false };
    let ends = name.strip_prefix(&**first).and_then(|rest| rest.strip_suffix(&**last));
    let Some(mut rest) = ends else { return false };
    middle.iter().all(|text| match rest.split_once(&**text) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

/// The name as a pattern that matches only this name.
pub fn literal(name: &str) -> String {
    let escaped = |one| match one {
        '/' | '*' | '\\' => vec!['\\', one],
        one => vec![one],
    };
    name.chars().flat_map(escaped).collect()
}

#[cfg(test)]
#[path = "pattern_tests.rs"]
mod tests;
