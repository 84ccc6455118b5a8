//! Every path of a file, resolved as far as modules go.

use std::{fs, path::Path};

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::{
    Attribute, ItemMod, ItemUse, Macro, MetaList, UseTree,
    visit::{self, Visit},
};

/// A parsed file of `src/`.
pub(super) struct Source {
    /// Relative to `src/`.
    pub(super) file: String,
    pub(super) text: String,
    pub(super) syntax: syn::File,
}

/// A path that a file uses, with `self` and `super` resolved.
pub(super) struct Used {
    /// Begins with `crate` where it leads into this crate.
    pub(super) path: Vec<String>,
    pub(super) line: usize,
    /// Whether it stands in a test.
    pub(super) test: bool,
}

impl Source {
    pub(super) fn read(root: &Path, path: &Path) -> Self {
        let file = path.strip_prefix(root).expect("a path below the root");
        let text = fs::read_to_string(path).expect("UTF-8");
        Self::parse(file.to_str().expect("UTF-8"), &text)
    }

    pub(super) fn parse(file: &str, text: &str) -> Self {
        Self {
            file: file.to_owned(),
            text: text.to_owned(),
            syntax: syn::parse_file(text).unwrap_or_else(|error| panic!("src/{file}: {error}")),
        }
    }

    /// Whether all of it is a test's.
    pub(super) fn is_test(&self) -> bool {
        self.file.ends_with("/tests.rs") || self.file.contains("/tests/")
    }

    /// The module path, without `crate`.
    pub(super) fn module(&self) -> Vec<String> {
        let path = self.file.strip_suffix(".rs").unwrap_or(&self.file);
        if ["lib", "main"].contains(&path) {
            return Vec::new();
        }
        path.split('/').map(str::to_owned).collect()
    }

    /// The room it belongs to: the first part of its path.
    pub(super) fn room(&self) -> &str {
        let end = self.file.find(['/', '.']).unwrap_or(self.file.len());
        &self.file[..end]
    }

    /// Every path of more than one part.
    pub(super) fn used(&self) -> Vec<Used> {
        let mut finder = Finder {
            test: self.is_test(),
            module: self.module(),
            found: Vec::new(),
        };
        finder.visit_file(&self.syntax);
        finder.found
    }
}

struct Finder {
    /// The module that is visited.
    module: Vec<String>,
    /// Whether that is a test's.
    test: bool,
    found: Vec<Used>,
}

impl Finder {
    /// Keeps a path as written, with `crate`, `self` and `super` resolved; a path of one foreign name is a local one.
    fn keep(&mut self, written: &[String], at: Span) {
        let supers = written
            .iter()
            .take_while(|part| *part == "super" || *part == "self")
            .count();
        let up = written[..supers]
            .iter()
            .filter(|part| *part == "super")
            .count();
        let path = if supers > 0 {
            let depth = self
                .module
                .len()
                .checked_sub(up)
                .expect("`super` stays in the crate");
            let base =
                std::iter::once("crate".to_owned()).chain(self.module[..depth].iter().cloned());
            base.chain(written[supers..].iter().cloned()).collect()
        } else {
            written.to_vec()
        };
        if path.len() > 1 || path == ["crate"] {
            self.found.push(Used {
                path,
                line: at.start().line,
                test: self.test,
            });
        }
    }

    fn tree(&mut self, before: &[String], tree: &UseTree, at: Span) {
        let with = |name: String| [before, &[name]].concat();
        match tree {
            UseTree::Path(path) => {
                self.tree(&with(path.ident.to_string()), &path.tree, path.ident.span())
            }
            UseTree::Name(name) if name.ident == "self" => self.keep(before, name.ident.span()),
            UseTree::Name(name) => self.keep(&with(name.ident.to_string()), name.ident.span()),
            UseTree::Rename(rename) if rename.ident == "self" => {
                self.keep(before, rename.ident.span())
            }
            UseTree::Rename(rename) => {
                self.keep(&with(rename.ident.to_string()), rename.ident.span())
            }
            UseTree::Glob(_) => self.keep(before, at),
            UseTree::Group(group) => group
                .items
                .iter()
                .for_each(|tree| self.tree(before, tree, at)),
        }
    }

    /// Paths among the tokens of a macro or an attribute, which have no syntax of their own.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        let mut at = Span::call_site();
        for token in tokens {
            match token {
                TokenTree::Ident(name) if colons == 2 => path.push(name.to_string()),
                TokenTree::Ident(name) => {
                    self.end(&mut path, at);
                    at = name.span();
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
                TokenTree::Punct(_) | TokenTree::Literal(_) => self.end(&mut path, at),
            }
            colons = 0;
        }
        self.end(&mut path, at);
    }

    fn end(&mut self, path: &mut Vec<String>, at: Span) {
        let path = std::mem::take(path);
        if path.len() > 1 {
            self.keep(&path, at);
        }
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        let outer = self.test;
        let for_tests = |attribute: &Attribute| {
            attribute.path().is_ident("cfg")
                && attribute
                    .parse_args::<syn::Path>()
                    .is_ok_and(|cfg| cfg.is_ident("test"))
        };
        self.test |= item.attrs.iter().any(for_tests);
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
        self.test = outer;
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.tree(&[], &item.tree, Span::call_site());
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<_> = path
            .segments
            .iter()
            .map(|part| part.ident.to_string())
            .collect();
        if parts.len() > 1 {
            self.keep(&parts, path.segments[0].ident.span());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }

    fn visit_meta_list(&mut self, list: &'ast MetaList) {
        self.tokens(list.tokens.clone());
        visit::visit_meta_list(self, list);
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {
        // `pub(in crate::…)` and `pub(super)` import nothing.
    }
}
