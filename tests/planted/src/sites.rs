//! The sites of possible bugs: comparisons, conditions, sums, ranges and statements of a source
//! file.

use std::ops::Range;

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Attribute, BinOp, Expr, ExprBinary, ExprIf, ExprRange, ImplItemFn, ItemFn, RangeLimits, Stmt,
};

/// A place in a file, and its replacement with the bug.
#[derive(Clone, Debug)]
pub struct Site {
    /// The replaced bytes of the file.
    pub place: Range<usize>,
    /// The line number, from 1.
    pub line: usize,
    pub bug: Bug,
}

/// The change at a place.
#[derive(Clone, Debug)]
pub enum Bug {
    /// The expression is replaced.
    Instead(String),
    /// The statement is removed.
    LeftOut,
}

/// All sites of a file, in order.
pub fn find(source: &str) -> syn::Result<Vec<Site>> {
    let file = syn::parse_file(source)?;
    let mut finder = Finder { source, sites: Vec::new() };
    finder.visit_file(&file);
    Ok(finder.sites)
}

/// The file with bug `number` at each of the sites, which must not overlap.
pub fn plant(source: &str, sites: &[(u32, &Site)]) -> String {
    let mut planted = source.to_owned();
    let mut last_first: Vec<_> = sites.to_vec();
    last_first.sort_by_key(|(_, site)| std::cmp::Reverse(site.place.start));
    for (number, site) in last_first {
        let sound = source.get(site.place.clone()).unwrap_or_default();
        let text = match &site.bug {
            Bug::Instead(bug) => {
                format!("(if ::keyloom::planted({number}) {{ {bug} }} else {{ {sound} }})")
            }
            Bug::LeftOut => format!("if !::keyloom::planted({number}) {{ {sound} }}"),
        };
        planted.replace_range(site.place.clone(), &text);
    }
    planted
}

struct Finder<'s> {
    source: &'s str,
    sites: Vec<Site>,
}

impl Finder<'_> {
    fn text(&self, span: Span) -> &str {
        self.source.get(span.byte_range()).unwrap_or_default()
    }

    fn add(&mut self, span: Span, bug: Bug) {
        self.sites.push(Site { place: span.byte_range(), line: span.start().line, bug });
    }

    fn add_binary(&mut self, node: &ExprBinary) {
        let other = match node.op {
            BinOp::Lt(_) => "<=",
            BinOp::Le(_) => "<",
            BinOp::Gt(_) => ">=",
            BinOp::Ge(_) => ">",
            BinOp::Eq(_) => "!=",
            BinOp::Ne(_) => "==",
            BinOp::Add(_) => "-",
            BinOp::Sub(_) => "+",
            BinOp::And(_) => "||",
            BinOp::Or(_) => "&&",
            _ => return,
        };
        // A pattern in a chain of conditions is not a separate expression.
        if has_let(&node.left) || has_let(&node.right) {
            return;
        }
        let (left, right) = (self.text(node.left.span()), self.text(node.right.span()));
        let bug = Bug::Instead(format!("({left}) {other} ({right})"));
        self.add(node.span(), bug);
    }
}

fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

/// Whether an item is only for tests.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_cfg = attribute.path().is_ident("cfg");
        let text = |meta: &syn::MetaList| meta.tokens.to_string();
        attribute.path().is_ident("test")
            || is_cfg && attribute.meta.require_list().is_ok_and(|meta| text(meta).contains("test"))
    })
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, node: &'ast syn::ItemMod) {
        if !is_for_tests(&node.attrs) {
            visit::visit_item_mod(self, node);
        }
    }

    // Code that is evaluated at compile time cannot read the environment.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}

    fn visit_item_fn(&mut self, node: &'ast ItemFn) {
        if node.sig.constness.is_none() && !is_for_tests(&node.attrs) {
            visit::visit_item_fn(self, node);
        }
    }

    fn visit_impl_item_fn(&mut self, node: &'ast ImplItemFn) {
        let is_shown = ["fmt", "description"].contains(&node.sig.ident.to_string().as_str());
        if node.sig.constness.is_none() && !is_for_tests(&node.attrs) && !is_shown {
            visit::visit_impl_item_fn(self, node);
        }
    }

    fn visit_expr_binary(&mut self, node: &'ast ExprBinary) {
        self.add_binary(node);
        visit::visit_expr_binary(self, node);
    }

    fn visit_expr_if(&mut self, node: &'ast ExprIf) {
        if !has_let(&node.cond) && !matches!(&*node.cond, Expr::Binary(_)) {
            let bug = Bug::Instead(format!("!({})", self.text(node.cond.span())));
            self.add(node.cond.span(), bug);
        }
        visit::visit_expr_if(self, node);
    }

    fn visit_expr_range(&mut self, node: &'ast ExprRange) {
        if let (RangeLimits::HalfOpen(_), Some(start), Some(end)) =
            (&node.limits, &node.start, &node.end)
        {
            // A smaller end keeps the type, which an inclusive end would change.
            let (start, end) = (self.text(start.span()), self.text(end.span()));
            let bug = Bug::Instead(format!("({start})..({end}) - 1"));
            self.add(node.span(), bug);
        }
        visit::visit_expr_range(self, node);
    }

    fn visit_stmt(&mut self, node: &'ast Stmt) {
        if let Stmt::Expr(expr, Some(_)) = node
            && can_be_left_out(expr)
        {
            self.add(node.span(), Bug::LeftOut);
        }
        visit::visit_stmt(self, node);
    }
}

fn can_be_left_out(expr: &Expr) -> bool {
    match expr {
        Expr::MethodCall(_) | Expr::Call(_) => true,
        Expr::Try(tried) => can_be_left_out(&tried.expr),
        Expr::Assign(assigned) => matches!(&*assigned.left, Expr::Field(_) | Expr::Index(_)),
        Expr::Binary(binary) => {
            matches!(binary.op, BinOp::AddAssign(_) | BinOp::SubAssign(_) | BinOp::BitOrAssign(_))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;

    const SOURCE: &str = "fn f(a: &mut Vec<u32>, n: usize) -> bool {\n    a.clear();\n    for k in 0..n { a.push(0); }\n    n < a.len()\n}\nconst fn g(n: u32) -> bool { n < 1 }\n#[cfg(test)]\nmod tests { fn h() -> bool { 1 < 2 } }\n";

    #[test]
    fn statements_ranges_and_comparisons_are_found() {
        let sites = find(SOURCE).unwrap();
        let texts: Vec<&str> = sites.iter().map(|site| &SOURCE[site.place.clone()]).collect();
        assert_eq!(texts, ["a.clear();", "0..n", "a.push(0);", "n < a.len()"]);
        assert_eq!(sites.last().unwrap().line, 4);
    }

    #[test]
    fn a_planted_file_parses_and_calls_for_each_number() {
        let sites = find(SOURCE).unwrap();
        let numbered: Vec<(u32, &Site)> = (1..).zip(&sites).collect();
        let planted = plant(SOURCE, &[numbered[0], numbered[1], numbered[3]]);
        assert!(syn::parse_file(&planted).is_ok(), "{planted}");
        for number in [1, 2, 4] {
            assert!(planted.contains(&format!("planted({number})")), "{planted}");
        }
    }
}
