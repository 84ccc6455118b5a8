//! Arguments as a validator sees them: every look costs steps, and a validation that takes too many, or goes too deep, is
//! given up.
//!
//! A few lines of schema can ask for more work than any machine will ever do: alternatives within alternatives, applied at
//! each level of a tree. The validator cannot be told to stop, so what it looks at stops it: the look that is one too many
//! unwinds, as far as [`run`]. No lock is held and nothing half done is kept while it looks.

mod containers;
mod unique;

use std::{
    borrow::Cow,
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

use jsonschema::{
    JsonType,
    json::{Json, Node, NodeIdentity, cmp},
};
use serde_json::{Number, Value};

use super::pattern::Cost;
use containers::{Elements, Members};

/// The stack that one validation may take, in bytes; threads have at least 2 MiB.
const STACK: usize = 768 * 1024;
/// A string is looked at in pieces of so many bytes, of which each takes a step.
const PIECE: usize = 64;
/// What a number takes that is divided exactly, whatever its exponent.
const DIVIDED: usize = 50;
/// What is copied takes a step for so many bytes.
const COPIED: usize = 8;
/// Strings up to this long are given to errors as they are.
const SHOWN: usize = 256;

/// Why a validation was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Stopped {
    /// All steps are spent.
    #[error("checking these arguments takes too many steps")]
    Steps,
    /// The stack is as deep as it may get.
    #[error("checking these arguments goes too deep")]
    Depth,
    /// The validator panicked.
    #[error("checking these arguments failed")]
    Panic,
}

/// What looks take beside a step, since a schema does more with what it finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Prices {
    /// A string, for the pattern that it may be matched against.
    pub(super) strings: Cost,
    /// The name of a member, for all patterns that it may be matched against.
    pub(super) names: Cost,
    /// A number: whether it may be divided by one with a fraction or an exponent.
    pub(super) divided: bool,
}

/// What a validation may do at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    /// Looks at values.
    pub(super) steps: u32,
    /// What single looks take.
    pub(super) prices: Prices,
    /// The size of the values, in bytes.
    pub(super) bytes: usize,
    /// What each error copies beside the value that it is about, in bytes.
    pub(super) repeated: usize,
}

/// What a validation may still do.
#[derive(Debug)]
struct Meter {
    left: Cell<u32>,
    prices: Prices,
    repeated: usize,
    floor: usize,
    /// An engine that gave up a match finds the string in the whole again; its address, and what it takes to give it out.
    whole: Option<(usize, usize)>,
}

/// Has `work` look at `values` for as long as it may.
pub(super) fn run<T>(
    values: &Value,
    allowance: Allowance,
    work: impl FnOnce(Look<'_>) -> T,
) -> Result<T, Stopped> {
    let address = std::ptr::from_ref(values).addr();
    let backtracks = allowance
        .prices
        .strings
        .or(allowance.prices.names)
        .backtracks;
    let meter = Meter {
        left: Cell::new(allowance.steps),
        prices: allowance.prices,
        repeated: allowance.repeated / COPIED,
        floor: stack_address().saturating_sub(STACK),
        whole: backtracks.then_some((address, allowance.bytes / COPIED)),
    };
    let look = Look {
        value: values,
        meter: Some(&meter),
    };
    catch_unwind(AssertUnwindSafe(|| work(look))).map_err(|payload| {
        payload
            .downcast()
            .map_or(Stopped::Panic, |stopped| *stopped)
    })
}

impl Meter {
    fn spend(&self, steps: usize) {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        match self.left.get().checked_sub(steps) {
            Some(left) => self.left.set(left),
            None => resume_unwind(Box::new(Stopped::Steps)),
        }
        if stack_address() < self.floor {
            resume_unwind(Box::new(Stopped::Depth));
        }
    }
}

/// Roughly where the stack ends now; stacks grow downwards.
#[inline(always)]
fn stack_address() -> usize {
    let here = 0u8;
    std::hint::black_box(std::ptr::from_ref(&here)).addr()
}

/// The representation of metered values.
#[derive(Debug)]
pub(super) struct Metered;

/// One look at a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look<'a> {
    value: &'a Value,
    meter: Option<&'a Meter>,
}

impl<'a> Look<'a> {
    fn at(self, value: &'a Value) -> Self {
        Self { value, ..self }
    }

    fn spend(self, steps: usize) {
        if let Some(meter) = self.meter {
            meter.spend(steps);
        }
    }

    /// A look at a string that is matched at this cost, where it is.
    fn spend_string(self, bytes: usize, cost: impl FnOnce(&Prices) -> Cost) {
        if let Some(meter) = self.meter {
            meter.spend(bytes / PIECE + 1 + cost(&meter.prices).steps(bytes));
        }
    }

    /// Whether values are equal as JSON Schema has it: each that is compared takes a look.
    fn equals(self, expected: &Value) -> bool {
        match (self.value, expected) {
            (Value::Array(here), Value::Array(there)) => {
                self.spend(1);
                let mut pairs = here.iter().zip(there);
                here.len() == there.len() && pairs.all(|(here, there)| self.at(here).equals(there))
            }
            (Value::Object(here), Value::Object(there)) => {
                self.spend(1);
                here.len() == there.len()
                    && here.iter().all(|(name, here)| {
                        self.spend(name.len() / PIECE);
                        there
                            .get(name)
                            .is_some_and(|there| self.at(here).equals(there))
                    })
            }
            (value, _) => {
                self.spend(1 + value.as_str().map_or(0, str::len) / PIECE);
                cmp::equal(value, expected)
            }
        }
    }
}

impl Json for Metered {
    type Node<'a> = Look<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    const KEYS_PER_LOOKUP: usize = 2;
    const ACYCLIC: bool = true;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    /// Names that come without their object are not metered; [`Members`] hands its own on.
    fn with_string_node<T>(buffer: &mut Value, string: &str, f: impl FnOnce(Look<'_>) -> T) -> T {
        *buffer = Value::String(string.to_owned());
        f(Look {
            value: buffer,
            meter: None,
        })
    }
}

impl<'a> Node<'a, Metered> for Look<'a> {
    type Object = Members<'a>;
    type Array = Elements<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<Members<'a>> {
        self.spend(1);
        let members = self.value.as_object()?;
        Some(Members {
            members,
            look: *self,
        })
    }

    fn as_array(&self) -> Option<Elements<'a>> {
        self.spend(1);
        let elements = self.value.as_array()?;
        Some(Elements {
            elements,
            look: *self,
        })
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let text = self.value.as_str();
        self.spend_string(text.map_or(0, str::len), |prices| prices.strings);
        text.map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<&'a Number> {
        let divided = self.meter.is_some_and(|meter| meter.prices.divided);
        self.spend(if divided { DIVIDED } else { 1 });
        self.value.as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        self.spend(1);
        self.value.as_bool()
    }

    fn is_null(&self) -> bool {
        self.spend(1);
        self.value.is_null()
    }

    fn json_type(&self) -> JsonType {
        self.spend(1);
        match self.value {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Number(_) => JsonType::Number,
            Value::String(_) => JsonType::String,
            Value::Array(_) => JsonType::Array,
            Value::Object(_) => JsonType::Object,
        }
    }

    /// Without what patterns would take: nothing is matched.
    fn string_length(&self) -> Option<u64> {
        let text = self.value.as_str();
        self.spend(1 + text.map_or(0, str::len) / PIECE);
        text.map(|text| text.chars().count() as u64)
    }

    fn equals_value(&self, expected: &Value) -> bool {
        self.equals(expected)
    }

    /// For errors, which are many and copy it: containers and long strings are left out.
    fn to_value(&self) -> Cow<'a, Value> {
        self.spend(1 + self.meter.map_or(0, |meter| meter.repeated));
        let whole = self.meter.and_then(|meter| meter.whole);
        if let Some((address, steps)) = whole
            && address == std::ptr::from_ref(self.value).addr()
        {
            self.spend(steps);
            return Cow::Borrowed(self.value);
        }
        match self.value {
            Value::Array(_) | Value::Object(_) => Cow::Owned(Value::Null),
            Value::String(text) if text.len() > SHOWN => Cow::Owned(Value::Null),
            value => Cow::Borrowed(value),
        }
    }

    fn identity(&self) -> Option<NodeIdentity> {
        self.spend(1);
        Some(NodeIdentity::new(std::ptr::from_ref(self.value).addr()))
    }
}
