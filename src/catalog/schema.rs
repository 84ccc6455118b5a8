//! Input schemas: whether the arguments of a call are what the pinned definition asks for (JSON Schema 2020-12 and older).
//!
//! A schema is compiled at the first call that needs it, from the document alone: nothing is ever fetched. Compiling may
//! take long even where the text is short, so it happens off the runtime. A schema that cannot be used has its tool's calls
//! refused; other tools run.
//!
//! Integers are compared as they are written, as far as 64 bits go; numbers with a fraction or an exponent as the nearest
//! double (IEEE 754), which is what most peers read them as.

mod aside;
mod compiled;
mod explain;
mod metered;
mod pattern;
mod shape;
mod sizes;

use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};

use ahash::RandomState;
use moka::sync::Cache;
use sha2::{Digest, Sha256};

use aside::Aside;
use compiled::{Compiled, Effort, Verdict};

use crate::{
    deadline::Deadline,
    refusal::{Code, Refusal},
};

/// Memory for schemas that are kept compiled, all together, in bytes and roughly.
const KEPT_BYTES: u64 = 64 << 20;
/// What keeping that a schema cannot be used takes.
const UNUSABLE_BYTES: u32 = 1024;
/// Longer arguments are checked off the runtime, in bytes.
const INLINE_BYTES: usize = 64 * 1024;
/// The longest input schema that is used, in bytes.
const MAX_BYTES: usize = 8 << 20;

/// Why no arguments can be checked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Unusable {
    #[error("it is longer than {MAX_BYTES} bytes")]
    TooLong,
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    #[error("it is not an object")]
    NotAnObject,
    #[error("its `$schema` {0} names no dialect that is known")]
    Dialect(String),
    #[error("`{0}` leads outside of it, and nothing is fetched")]
    Reference(String),
    #[error("it has more than {1} {0}")]
    Bound(&'static str, usize),
    #[error("it is not valid: {0}")]
    Invalid(String),
    #[error("it could not be compiled")]
    Panic,
}

/// The input schema of one tool, as its pinned definition has it.
#[derive(Debug)]
pub struct Schema {
    definition: Arc<str>,
    place: Option<Range<usize>>,
    digest: OnceLock<[u8; 32]>,
}

impl Schema {
    /// The schema that stands at `place` of a tool's definition; a tool that has none takes any object.
    pub fn of(definition: Arc<str>, place: Option<Range<usize>>) -> Self {
        Self {
            definition,
            place,
            digest: OnceLock::new(),
        }
    }

    /// Its JSON text.
    pub fn text(&self) -> Option<&str> {
        self.definition.get(self.place.clone()?)
    }

    /// What equal schemas have in common; found out once.
    fn digest(&self) -> &[u8; 32] {
        let text = || self.text().unwrap_or_default();
        self.digest.get_or_init(|| Sha256::digest(text()).into())
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Schema {}

/// What is known of one schema once it was compiled.
type Known = Result<Compiled, Unusable>;

/// Compiled schemas, shared by all tools that have the same.
#[derive(Debug)]
pub struct Schemas {
    kept: Cache<[u8; 32], Arc<Known>, RandomState>,
    aside: Aside,
}

impl Default for Schemas {
    fn default() -> Self {
        let kept = Cache::builder()
            .max_capacity(KEPT_BYTES)
            .weigher(|_, known: &Arc<Known>| match &**known {
                Ok(compiled) => compiled.weight(),
                Err(_) => UNUSABLE_BYTES,
            })
            .build_with_hasher(RandomState::default());
        Self {
            kept,
            aside: Aside::default(),
        }
    }
}

/// A call whose arguments are checked.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a> {
    /// The tool, for the words of a refusal.
    pub tool: &'a str,
    /// The schema of the tool.
    pub schema: &'a Arc<Schema>,
    /// `params.arguments`, an object that was scanned strictly; missing ones count as an empty object.
    pub text: Option<&'a str>,
}

impl Schemas {
    /// Checks at once what is cheap to check: small arguments against a schema that is compiled. `None` where
    /// [`Schemas::check`] has to.
    pub fn check_now(&self, arguments: Arguments<'_>) -> Option<Result<(), Refusal>> {
        if arguments.schema.text().is_none() {
            return Some(Ok(()));
        }
        let values = arguments.text.unwrap_or("{}");
        if values.len() > INLINE_BYTES {
            return None;
        }
        let known = self.kept.get(arguments.schema.digest.get()?)?;
        match &*known {
            Err(unusable) => Some(Err(refused(unusable, arguments.tool))),
            Ok(compiled) => match compiled.check(values, Effort::Little) {
                Verdict::Fits => Some(Ok(())),
                Verdict::Stopped(_) => None,
                Verdict::Unfit(why) => Some(Err(unfit(arguments.tool, &why))),
            },
        }
    }

    /// Compiles, if need be, and checks off the runtime, a few at once, whatever it takes within the steps of a validation and until `deadline`.
    ///
    /// # Errors
    ///
    /// [`Code::ArgumentsInvalid`], [`Code::SchemaUnusable`]; [`Code::CallTimeout`] where the deadline passed before.
    pub async fn check(
        self: &Arc<Self>,
        arguments: Arguments<'_>,
        deadline: Deadline,
    ) -> Result<(), Refusal> {
        let Arguments { tool, schema, text } = arguments;
        let (schemas, schema) = (self.clone(), schema.clone());
        let values = || text.unwrap_or("{}").to_owned();
        let work = move |values: String| schemas.check_all(&schema, &values);
        match self.aside.run(values, work, deadline).await {
            None => Err(Refusal::new(
                Code::CallTimeout,
                format!("the arguments of `{tool}` could not be checked in time"),
            )),
            Some(Err(unusable)) => Err(refused(&unusable, tool)),
            Some(Ok(Verdict::Fits)) => Ok(()),
            Some(Ok(Verdict::Unfit(why))) => Err(unfit(tool, &why)),
            Some(Ok(Verdict::Stopped(stopped))) => Err(Refusal::new(
                Code::SchemaUnusable,
                format!("the input schema of `{tool}` cannot be used: {stopped}"),
            )),
        }
    }

    fn check_all(&self, schema: &Schema, values: &str) -> Result<Verdict, Unusable> {
        let Some(text) = schema.text() else {
            return Ok(Verdict::Fits);
        };
        let known = self.kept.get(schema.digest());
        let known = known.unwrap_or_else(|| self.compile(text, schema.digest()));
        match &*known {
            Ok(compiled) => Ok(compiled.check(values, Effort::Much)),
            Err(unusable) => Err(unusable.clone()),
        }
    }

    fn compile(&self, text: &str, digest: &[u8; 32]) -> Arc<Known> {
        let known = Arc::new(Compiled::of(text));
        self.kept.insert(*digest, known.clone());
        known
    }
}

fn refused(unusable: &Unusable, tool: &str) -> Refusal {
    Refusal::new(
        Code::SchemaUnusable,
        format!("the input schema of `{tool}` cannot be used: {unusable}"),
    )
}

fn unfit(tool: &str, why: &str) -> Refusal {
    Refusal::new(
        Code::ArgumentsInvalid,
        format!("the arguments of `{tool}` do not fit its input schema: {why}"),
    )
}

#[cfg(test)]
mod tests;
