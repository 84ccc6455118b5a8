//! What a name means in a module: imports, renames, globs, re-exports and type aliases, followed to their end.

use std::collections::{BTreeMap, BTreeSet};

use syn::UseTree;

/// How many globs a name is followed through. Any module may have any name, so that each glob multiplies the paths.
const GLOBS: usize = 3;
/// The most parts of a path that is followed: a name that stands for something below itself has no end.
const PARTS: usize = 12;

/// A path on its way to what it means.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Step {
    module: Vec<String>,
    path: Vec<String>,
    /// How many globs may still be followed.
    globs: usize,
}

/// What the modules of the crate call things.
#[derive(Default)]
pub(super) struct Names {
    modules: BTreeMap<Vec<String>, Module>,
}

/// Names in one module, those inside its functions too.
#[derive(Default)]
struct Module {
    /// A name, and the paths that it may stand for, as written.
    named: BTreeMap<String, Vec<Vec<String>>>,
    globs: Vec<Vec<String>>,
}

impl Names {
    pub(super) fn name(&mut self, module: &[String], name: String, path: Vec<String>) {
        let module = self.modules.entry(module.to_vec()).or_default();
        module.named.entry(name).or_default().push(path);
    }

    /// Takes an import in, and gives each path that it names.
    pub(super) fn import(
        &mut self,
        module: &[String],
        before: &[String],
        tree: &UseTree,
    ) -> Vec<Vec<String>> {
        let with = |name: String| [before, &[name]].concat();
        let (name, path) = match tree {
            UseTree::Path(path) => {
                return self.import(module, &with(path.ident.to_string()), &path.tree);
            }
            UseTree::Group(group) => {
                let each = group.items.iter();
                return each
                    .flat_map(|tree| self.import(module, before, tree))
                    .collect();
            }
            UseTree::Glob(_) => {
                let module = self.modules.entry(module.to_vec()).or_default();
                module.globs.push(before.to_vec());
                return vec![[before, &["*".to_owned()]].concat()];
            }
            UseTree::Name(name) if name.ident == "self" => {
                (before.last().cloned().unwrap_or_default(), before.to_vec())
            }
            UseTree::Name(name) => (name.ident.to_string(), with(name.ident.to_string())),
            UseTree::Rename(rename) if rename.ident == "self" => {
                (rename.rename.to_string(), before.to_vec())
            }
            UseTree::Rename(rename) => (rename.rename.to_string(), with(rename.ident.to_string())),
        };
        self.name(module, name, path.clone());
        vec![path]
    }

    /// Everything that `written` may mean in `module`, itself among it.
    pub(super) fn meanings(&self, module: &[String], written: &[String]) -> BTreeSet<Vec<String>> {
        let mut meanings = BTreeSet::new();
        let mut seen = BTreeSet::new();
        let mut open = vec![Step {
            module: module.to_vec(),
            path: written.to_vec(),
            globs: GLOBS,
        }];
        while let Some(step) = open.pop() {
            if !seen.insert(step.clone()) {
                continue;
            }
            match absolute(&step.module, &step.path) {
                // What the modules on its way call its next part.
                Some(inside) => {
                    open.extend((0..inside.len()).flat_map(|depth| {
                        self.next(&inside[..depth], &inside[depth..], step.globs)
                    }))
                }
                None => {
                    open.extend(self.next(&step.module, &step.path, step.globs));
                    meanings.insert(step.path);
                }
            }
        }
        meanings
    }

    /// What `module` says that the first part of `path` is.
    fn next(&self, module: &[String], path: &[String], globs: usize) -> Vec<Step> {
        let Some(scope) = self.modules.get(module) else {
            return Vec::new();
        };
        let step = |begin: &Vec<String>, rest: &[String], globs| Step {
            module: module.to_vec(),
            path: [begin, rest].concat(),
            globs,
        };
        let named = scope.named.get(&path[0]).into_iter().flatten();
        let named = named.map(|begin| step(begin, &path[1..], globs));
        let below = globs.checked_sub(1).into_iter();
        let globbed = below.flat_map(|left| scope.globs.iter().map(move |begin| (begin, left)));
        named
            .chain(globbed.map(|(begin, left)| step(begin, path, left)))
            .filter(|step| step.path.len() <= PARTS)
            .collect()
    }
}

/// Where a path leads in this crate, without `crate`; none if it does not begin there.
fn absolute(module: &[String], path: &[String]) -> Option<Vec<String>> {
    let first = path.first()?;
    if first == "crate" {
        return Some(path[1..].to_vec());
    }
    let relative = |part: &&String| *part == "self" || *part == "super";
    let begin = path.iter().take_while(relative).count();
    if begin == 0 {
        return None;
    }
    let up = path[..begin].iter().filter(|part| *part == "super").count();
    let base = &module[..module.len().checked_sub(up)?];
    Some([base, &path[begin..]].concat())
}
