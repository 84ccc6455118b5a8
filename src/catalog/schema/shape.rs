//! How much work a schema can ask for, found out before it is compiled.
//!
//! What a validator looks at is metered. These bounds are for what it does without a look: it goes through subschemas that
//! apply to the same value, one inside another or by reference, on its stack.

mod references;

use std::collections::{HashMap, HashSet};

use jsonschema::Draft;
use serde_json::{Map, Value};

use super::{Unusable, explain::shown, metered::Prices, pattern::Cost, sizes::in_memory};

/// Characters of a dialect that a refusal repeats.
const SHOWN: usize = 200;
/// Subschemas of one schema at most.
const MAX_SUBSCHEMAS: usize = 100_000;
/// Different references of one schema at most; compiling takes time that grows with their square.
const MAX_REFERENCES: usize = 4096;
/// What references of one schema may mean together, at most.
const MAX_TARGETS: usize = 500_000;
/// Names that references can use, at most.
const MAX_NAMES: usize = 4096;
/// Different patterns of one schema at most.
const MAX_PATTERNS: usize = 1024;
/// Subschemas inside one another that apply to the same value, at most.
const MAX_HEIGHT: usize = 256;
/// Subschemas that apply to the same value, at most, each counted as often as it applies.
const MAX_UNFOLDED: u64 = 100_000;
/// Subschemas that are compiled to find out what is unevaluated, at most.
const MAX_UNEVALUATED: u64 = 100_000;
/// Memory for what a compiled schema holds of the document a second time, in bytes: annotations, and what `not` excludes,
/// each time that it is inside of another.
const MAX_COPIES: usize = 64 << 20;

/// What has to be known of a schema to compile it and to run it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Subschemas that it holds.
    pub(super) subschemas: usize,
    /// Different patterns that it holds.
    pub(super) patterns: usize,
    /// The states of all of them.
    pub(super) states: u64,
    /// What looks at values take.
    pub(super) prices: Prices,
    /// What a compiled schema holds of the document a second time, in bytes.
    pub(super) copies: usize,
    /// The most that an error repeats of it, in bytes.
    pub(super) repeated: usize,
}

/// The dialect that a schema names; 2020-12 where it names none (MCP 2026-07-28, tools).
pub(super) fn dialect(schema: &Map<String, Value>) -> Result<Draft, Unusable> {
    let Some(named) = schema.get("$schema") else {
        return Ok(Draft::Draft202012);
    };
    let unknown = || Unusable::Dialect(shown(&named.to_string(), SHOWN));
    let uri = named.as_str().ok_or_else(unknown)?;
    let uri = uri.strip_suffix('#').unwrap_or(uri);
    let path = uri
        .strip_prefix("https://json-schema.org/")
        .or_else(|| uri.strip_prefix("http://json-schema.org/"));
    match path {
        Some("draft/2020-12/schema") => Ok(Draft::Draft202012),
        Some("draft/2019-09/schema") => Ok(Draft::Draft201909),
        Some("draft-07/schema") => Ok(Draft::Draft7),
        Some("draft-06/schema") => Ok(Draft::Draft6),
        Some("draft-04/schema") => Ok(Draft::Draft4),
        _ => Err(unknown()),
    }
}

/// Goes through a schema and holds it against the bounds.
pub(super) fn examine(schema: &Value) -> Result<Shape, Unusable> {
    let mut graph = Graph::default();
    let root = graph.add(schema, schema)?;
    let mut at = 0;
    while at < graph.nodes.len() {
        graph.read(at)?;
        at += 1;
    }
    // References may lead to places that no keyword leads to; reading those finds more references.
    let (mut read, mut targets) = (0, 0);
    while read < graph.references.len() {
        let Reference { from, base, uri } = graph.references[read];
        for target in graph.targets(base, uri) {
            let target = graph.add(target, base)?;
            graph.nodes[from].in_place.push(target);
            targets += 1;
        }
        if targets > MAX_TARGETS {
            return Err(Unusable::Bound("targets of references", MAX_TARGETS));
        }
        while at < graph.nodes.len() {
            graph.read(at)?;
            at += 1;
        }
        read += 1;
    }
    graph.unfold(root, 0)?;
    for node in 0..graph.nodes.len() {
        graph.unfold(node, 0)?;
    }
    Ok(Shape {
        subschemas: graph.nodes.len(),
        patterns: graph.patterns.len(),
        states: graph.states,
        prices: graph.prices,
        copies: graph.copies,
        repeated: graph.repeated,
    })
}

/// A subschema, and those that apply to the same value.
#[derive(Debug)]
struct Node<'s> {
    schema: &'s Value,
    base: &'s Value,
    in_place: Vec<usize>,
    unevaluated: bool,
    unfolded: Unfolded,
}

#[derive(Clone, Copy, Debug)]
enum Unfolded {
    No,
    Now,
    Done { count: u64, height: usize },
}

#[derive(Clone, Copy, Debug)]
struct Reference<'s> {
    from: usize,
    base: &'s Value,
    uri: &'s str,
}

#[derive(Debug, Default)]
struct Graph<'s> {
    nodes: Vec<Node<'s>>,
    by_address: HashMap<*const Value, usize>,
    references: Vec<Reference<'s>>,
    different: HashSet<&'s str>,
    names: HashMap<&'s str, Vec<&'s Value>>,
    named: usize,
    resources: HashMap<&'s str, Vec<&'s Value>>,
    /// Each with whether names of members are matched against it.
    patterns: HashSet<(&'s str, bool)>,
    states: u64,
    prices: Prices,
    copies: usize,
    repeated: usize,
    unevaluated: u64,
}

impl<'s> Graph<'s> {
    fn add(&mut self, schema: &'s Value, base: &'s Value) -> Result<usize, Unusable> {
        if let Some(known) = self.by_address.get(&std::ptr::from_ref(schema)) {
            return Ok(*known);
        }
        let index = self.nodes.len();
        if index == MAX_SUBSCHEMAS {
            return Err(Unusable::Bound("subschemas", MAX_SUBSCHEMAS));
        }
        self.by_address.insert(schema, index);
        self.nodes.push(Node {
            schema,
            base,
            in_place: Vec::new(),
            unevaluated: false,
            unfolded: Unfolded::No,
        });
        Ok(index)
    }

    /// Adds what one subschema holds.
    fn read(&mut self, index: usize) -> Result<(), Unusable> {
        let Node { schema, base, .. } = self.nodes[index];
        let Value::Object(keywords) = schema else {
            return Ok(());
        };
        let own_base = ["$id", "id"]
            .iter()
            .filter_map(|key| keywords.get(*key)?.as_str())
            .any(|id| !id.starts_with('#'));
        let base = if own_base { schema } else { base };
        for (keyword, value) in keywords {
            self.keyword(index, base, keyword, value)?;
        }
        Ok(())
    }

    fn keyword(
        &mut self,
        from: usize,
        base: &'s Value,
        keyword: &'s str,
        value: &'s Value,
    ) -> Result<(), Unusable> {
        self.repeated = self.repeated.max(repeated(keyword, value));
        match (keyword, value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(uri)) => {
                self.different.insert(uri);
                if self.different.len() > MAX_REFERENCES {
                    return Err(Unusable::Bound("references", MAX_REFERENCES));
                }
                self.references.push(Reference { from, base, uri });
            }
            ("$id" | "id" | "$anchor" | "$dynamicAnchor", Value::String(name)) => {
                let schema = self.nodes[from].schema;
                let name = name.strip_prefix('#').unwrap_or(name);
                self.names.entry(name).or_default().push(schema);
                self.named += 1;
                if self.named > MAX_NAMES {
                    return Err(Unusable::Bound("names", MAX_NAMES));
                }
            }
            ("pattern", Value::String(pattern)) => {
                self.pattern(pattern, false)?;
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                self.add_in_place(from, base, schemas.iter())?;
            }
            ("not" | "if" | "then" | "else", _) => {
                if keyword == "not" {
                    self.copy(value)?;
                }
                self.add_in_place(from, base, [value])?;
            }
            ("dependentSchemas" | "dependencies", Value::Object(schemas)) => {
                self.add_in_place(from, base, schemas.values())?;
            }
            (
                "properties" | "patternProperties" | "$defs" | "definitions",
                Value::Object(schemas),
            ) => {
                for (name, schema) in schemas {
                    if keyword == "patternProperties" {
                        self.pattern(name, true)?;
                    }
                    self.add(schema, base)?;
                }
            }
            ("items" | "prefixItems", Value::Array(schemas)) => {
                for schema in schemas {
                    self.add(schema, base)?;
                }
            }
            (
                "items"
                | "additionalItems"
                | "additionalProperties"
                | "contains"
                | "propertyNames"
                | "unevaluatedItems"
                | "unevaluatedProperties",
                _,
            ) => {
                self.nodes[from].unevaluated |= keyword.starts_with("unevaluated");
                self.add(value, base)?;
            }
            ("multipleOf", Value::Number(number)) => self.prices.divided |= number.is_f64(),
            ("const" | "enum" | "required" | "type", _) => {}
            _ => self.copy(value)?,
        }
        Ok(())
    }

    /// Notes what the validator keeps a copy of.
    fn copy(&mut self, value: &Value) -> Result<(), Unusable> {
        self.copies += in_memory(value);
        match self.copies {
            ..=MAX_COPIES => Ok(()),
            _ => Err(Unusable::Bound("bytes that are kept twice", MAX_COPIES)),
        }
    }

    fn add_in_place(
        &mut self,
        from: usize,
        base: &'s Value,
        schemas: impl IntoIterator<Item = &'s Value>,
    ) -> Result<(), Unusable> {
        for schema in schemas {
            let index = self.add(schema, base)?;
            self.nodes[from].in_place.push(index);
        }
        Ok(())
    }

    fn pattern(&mut self, pattern: &'s str, of_names: bool) -> Result<(), Unusable> {
        if self.patterns.insert((pattern, of_names)) {
            let cost = Cost::of(pattern);
            self.states = self.states.saturating_add(cost.states);
            match of_names {
                true => self.prices.names = self.prices.names.and(cost),
                false => self.prices.strings = self.prices.strings.or(cost),
            }
        }
        match self.patterns.len() {
            ..=MAX_PATTERNS => Ok(()),
            _ => Err(Unusable::Bound("patterns", MAX_PATTERNS)),
        }
    }

    /// How many subschemas apply to the value that this one applies to, and how deep they go. A circle is followed once:
    /// the validator looks at the value each time it comes round.
    fn unfold(&mut self, index: usize, depth: usize) -> Result<(u64, usize), Unusable> {
        let too_deep = Unusable::Bound("subschemas inside one another", MAX_HEIGHT);
        match self.nodes[index].unfolded {
            Unfolded::Now => return Ok((0, 0)),
            Unfolded::Done { height, .. } if depth + height > MAX_HEIGHT => return Err(too_deep),
            Unfolded::Done { count, height } => return Ok((count, height)),
            Unfolded::No if depth == MAX_HEIGHT => return Err(too_deep),
            Unfolded::No => {}
        }
        self.nodes[index].unfolded = Unfolded::Now;
        let (mut count, mut height) = (1, 0);
        for at in 0..self.nodes[index].in_place.len() {
            let next = self.nodes[index].in_place[at];
            let (more, higher) = self.unfold(next, depth + 1)?;
            count += more;
            height = height.max(higher);
        }
        if self.nodes[index].unevaluated {
            // Each is gone through once to be compiled and once more, at each level, to find out what it evaluates.
            count *= 2;
            self.unevaluated += count * (height as u64 + 1);
        }
        if self.unevaluated > MAX_UNEVALUATED {
            return Err(Unusable::Bound(
                "subschemas to find what is unevaluated",
                MAX_UNEVALUATED as usize,
            ));
        }
        if count > MAX_UNFOLDED {
            return Err(Unusable::Bound(
                "checks of one value",
                MAX_UNFOLDED as usize,
            ));
        }
        height += 1;
        self.nodes[index].unfolded = Unfolded::Done { count, height };
        Ok((count, height))
    }
}

/// What an error of a keyword copies, in bytes.
fn repeated(keyword: &str, value: &Value) -> usize {
    match (keyword, value) {
        ("required", Value::Array(names)) => names.iter().map(in_memory).max().unwrap_or(0),
        ("not" | "const" | "pattern" | "dependentRequired" | "dependencies", _) => in_memory(value),
        _ => 0,
    }
}
