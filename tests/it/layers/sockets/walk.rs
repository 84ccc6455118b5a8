//! Finds the ways in a set of files.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::{
    Attribute, ExprMethodCall, ExprPath, ImplItemType, Item, ItemForeignMod, ItemImpl, ItemMod,
    ItemType, ItemUse, Macro, MetaList, QSelf, Type, TypePath,
    spanned::Spanned as _,
    visit::{self, Visit},
};

use super::{super::paths::Source, names::Names, way::way};

/// A way, and where it stands.
#[derive(Debug)]
pub(super) struct Found {
    /// Relative to `src/`.
    pub(super) file: String,
    pub(super) line: usize,
    /// The full path, whatever it is called there.
    pub(super) way: String,
}

/// Every way in `files`, which are modules of one crate.
pub(super) fn ways(files: &[Source]) -> Vec<Found> {
    let files: Vec<_> = files.iter().filter(|source| !source.is_test()).collect();
    let mut mentions = Vec::new();
    let mut names = Names::default();
    for source in files {
        let mut walk = Walk {
            file: &source.file,
            module: source.module(),
            subject: None,
            names: &mut names,
            mentions: &mut mentions,
        };
        walk.visit_file(&source.syntax);
    }
    // Most are there many times.
    let mut known = BTreeMap::new();
    let mut found = Vec::new();
    for Mention { file, line, text } in mentions {
        let ways = known
            .entry(text)
            .or_insert_with_key(|text| text.ways(&names));
        found.extend(ways.iter().map(|way| Found {
            file: file.clone(),
            line,
            way: way.clone(),
        }));
    }
    found
}

/// A path as it stands in a file.
struct Mention {
    file: String,
    line: usize,
    text: Text,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Text {
    module: Vec<String>,
    path: Vec<String>,
    /// Whether a macro could add a function to it.
    is_token: bool,
}

impl Text {
    fn ways(&self, names: &Names) -> BTreeSet<String> {
        let meanings = names.meanings(&self.module, &self.path);
        meanings
            .iter()
            .filter_map(|path| way(path, self.is_token))
            .collect()
    }
}

struct Walk<'a> {
    file: &'a str,
    /// The module that is visited.
    module: Vec<String>,
    /// What `Self` means.
    subject: Option<Vec<String>>,
    names: &'a mut Names,
    mentions: &'a mut Vec<Mention>,
}

impl Walk<'_> {
    fn mention(&mut self, path: Vec<String>, at: Span, is_token: bool) {
        let path = match (&self.subject, path.first()) {
            (Some(subject), Some(first)) if first == "Self" => {
                [subject.as_slice(), &path[1..]].concat()
            }
            _ => path,
        };
        self.mentions.push(Mention {
            file: self.file.to_owned(),
            line: at.start().line,
            text: Text {
                module: self.module.clone(),
                path,
                is_token,
            },
        });
    }

    /// What has no path of its own, and is a way whatever it says.
    fn plain(&mut self, way: &str, at: Span) {
        self.mention(way.split("::").map(str::to_owned).collect(), at, true);
    }

    /// A path behind `<…>`: its functions belong to the type in there, or to what an `impl` calls by its last name.
    fn behind(&mut self, qself: &QSelf, path: &syn::Path) {
        let Type::Path(inner) = &*qself.ty else {
            return;
        };
        let inner = parts(&inner.path);
        let last = inner[inner.len() - 1..].to_vec();
        let rest = parts(path)[qself.position..].to_vec();
        for begin in [inner, last] {
            self.mention([begin, rest.clone()].concat(), path.span(), false);
        }
    }

    /// Paths among the tokens of a macro or an attribute, single names too.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path = Vec::new();
        let mut colons = 0;
        let mut at = Span::call_site();
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.end(&mut path, at);
                        at = name.span();
                    }
                    path.push(name.to_string());
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => {
                    colons += 1;
                    continue;
                }
                TokenTree::Group(group) => {
                    self.end(&mut path, at);
                    self.tokens(group.stream());
                }
                TokenTree::Punct(mark) if mark.as_char() == '!' && path == ["include"] => {
                    self.plain("include!", at);
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => self.end(&mut path, at),
            }
            colons = 0;
        }
        self.end(&mut path, at);
    }

    fn end(&mut self, path: &mut Vec<String>, at: Span) {
        let path = std::mem::take(path);
        if path == ["to_socket_addrs"] {
            self.plain("std::net::ToSocketAddrs", at);
        } else if !path.is_empty() {
            self.mention(path, at, true);
        }
    }
}

fn parts(path: &syn::Path) -> Vec<String> {
    let each = path.segments.iter();
    each.map(|part| part.ident.to_string()).collect()
}

/// The path of a type that is one.
fn named(kind: &Type) -> Option<Vec<String>> {
    match kind {
        Type::Path(path) => Some(parts(&path.path)),
        Type::Group(group) => named(&group.elem),
        Type::Paren(paren) => named(&paren.elem),
        _ => None,
    }
}

/// Whether an item is compiled for tests alone.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    let alone = |attribute: &Attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Path>()
                .is_ok_and(|cfg| cfg.is_ident("test"))
    };
    attributes.iter().any(alone)
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

impl<'ast> Visit<'ast> for Walk<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        for path in self.names.import(&self.module, &[], &item.tree) {
            self.mention(path, item.span(), false);
        }
    }

    fn visit_item_extern_crate(&mut self, item: &'ast syn::ItemExternCrate) {
        let name = item.rename.as_ref().map_or(&item.ident, |(_, name)| name);
        let path = vec![item.ident.to_string()];
        self.names
            .name(&self.module, name.to_string(), path.clone());
        self.mention(path, item.span(), false);
    }

    fn visit_item_type(&mut self, item: &'ast ItemType) {
        if let Some(path) = named(&item.ty) {
            self.names.name(&self.module, item.ident.to_string(), path);
        }
        visit::visit_item_type(self, item);
    }

    fn visit_impl_item_type(&mut self, item: &'ast ImplItemType) {
        if let Some(path) = named(&item.ty) {
            self.names.name(&self.module, item.ident.to_string(), path);
        }
        visit::visit_impl_item_type(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let outer = std::mem::replace(&mut self.subject, named(&item.self_ty));
        visit::visit_item_impl(self, item);
        self.subject = outer;
    }

    fn visit_item_foreign_mod(&mut self, item: &'ast ItemForeignMod) {
        self.plain("extern {}", item.span());
    }

    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        if let Some(qself) = &path.qself {
            self.behind(qself, &path.path);
        }
        visit::visit_expr_path(self, path);
    }

    fn visit_type_path(&mut self, path: &'ast TypePath) {
        if let Some(qself) = &path.qself {
            self.behind(qself, &path.path);
        }
        visit::visit_type_path(self, path);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.mention(parts(path), path.span(), false);
        visit::visit_path(self, path);
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        if call.method == "to_socket_addrs" {
            self.plain("std::net::ToSocketAddrs", call.method.span());
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        if call.path.is_ident("include") {
            self.plain("include!", call.path.span());
        }
        self.tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }

    fn visit_meta_list(&mut self, list: &'ast MetaList) {
        self.tokens(list.tokens.clone());
        visit::visit_meta_list(self, list);
    }

    fn visit_meta_name_value(&mut self, pair: &'ast syn::MetaNameValue) {
        if pair.path.is_ident("path") {
            self.plain("#[path]", pair.span());
        }
        visit::visit_meta_name_value(self, pair);
    }
}
