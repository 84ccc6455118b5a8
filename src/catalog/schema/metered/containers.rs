//! Objects and arrays as a validator sees them.

use std::ops::ControlFlow;

use jsonschema::json::{Array, Object};
use serde_json::{Map, Value};

use super::{Look, Metered, unique::is_unique};

/// The members of an object.
#[derive(Debug)]
pub(in crate::catalog::schema) struct Members<'a> {
    pub(super) members: &'a Map<String, Value>,
    pub(super) look: Look<'a>,
}

impl<'a> Object<'a, Metered> for Members<'a> {
    type Node = Look<'a>;
    type MemberName = &'a str;
    type MembersIter = MembersIter<'a>;

    fn len(&self) -> usize {
        self.members.len()
    }

    fn get(&self, key: &String) -> Option<Look<'a>> {
        self.look.spend(1);
        self.members.get(key).map(|value| self.look.at(value))
    }

    fn members(&self) -> MembersIter<'a> {
        MembersIter {
            members: self.members.iter(),
            look: self.look,
        }
    }

    fn try_for_each_name_node<B>(
        &self,
        buffer: &mut Value,
        mut f: impl FnMut(Look<'_>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        for name in self.members.keys() {
            *buffer = Value::String(name.clone());
            f(Look {
                value: buffer,
                meter: self.look.meter,
            })?;
        }
        ControlFlow::Continue(())
    }
}

/// Goes over the members of an object. Their names are matched against patterns: each is a look at a string.
#[derive(Debug)]
pub(in crate::catalog::schema) struct MembersIter<'a> {
    members: serde_json::map::Iter<'a>,
    look: Look<'a>,
}

impl<'a> Iterator for MembersIter<'a> {
    type Item = (&'a str, Look<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.members.next()?;
        self.look.spend_string(name.len(), |prices| prices.names);
        Some((name, self.look.at(value)))
    }
}

/// The elements of an array.
#[derive(Debug)]
pub(in crate::catalog::schema) struct Elements<'a> {
    pub(super) elements: &'a [Value],
    pub(super) look: Look<'a>,
}

impl<'a> Array<'a, Metered> for Elements<'a> {
    type Node = Look<'a>;
    type ElementsIter = ElementsIter<'a>;

    fn len(&self) -> usize {
        self.elements.len()
    }

    fn elements(&self) -> ElementsIter<'a> {
        ElementsIter {
            elements: self.elements.iter(),
            look: self.look,
        }
    }

    fn is_unique(&self) -> bool {
        is_unique(self.elements, self.look)
    }
}

/// Goes over the elements of an array.
#[derive(Debug)]
pub(in crate::catalog::schema) struct ElementsIter<'a> {
    elements: std::slice::Iter<'a, Value>,
    look: Look<'a>,
}

impl<'a> Iterator for ElementsIter<'a> {
    type Item = Look<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let value = self.elements.next()?;
        self.look.spend(1);
        Some(self.look.at(value))
    }
}
