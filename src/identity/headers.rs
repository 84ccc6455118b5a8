//! The `Tollgate-*` headers that say for whom and in which conversation an agent speaks: once each, short, visible ASCII.

use http::{HeaderMap, HeaderName};

use super::Error;

pub(super) const USER: Field = Field("tollgate-user", "Tollgate-User", 256);
pub(super) const GROUPS: Field = Field("tollgate-groups", "Tollgate-Groups", 4096);
pub(super) const CONVERSATION: Field = Field("tollgate-conversation", "Tollgate-Conversation", 128);
pub(super) const TURN: Field = Field("tollgate-turn", "Tollgate-Turn", 128);

/// What the names of all of them begin with.
const PREFIX: &str = "tollgate-";
/// The most groups that one request may assert.
const MAX_GROUPS: usize = 64;

/// A header: its name on the wire, its name for people, its longest value in bytes.
#[derive(Clone, Copy)]
pub(super) struct Field(&'static str, &'static str, usize);

impl Field {
    fn name(self) -> HeaderName {
        HeaderName::from_static(self.0)
    }

    fn malformed(self) -> Error {
        Error::HeaderText {
            name: self.1,
            max: self.2,
        }
    }
}

/// The `Tollgate-*` headers of one request. Most requests have none, which one look at the names of all headers shows.
#[derive(Clone, Copy)]
pub(super) struct Named<'h>(Option<&'h HeaderMap>);

impl<'h> Named<'h> {
    /// Those among `headers`.
    pub(super) fn of(headers: &'h HeaderMap) -> Self {
        let named = |name: &HeaderName| name.as_str().starts_with(PREFIX);
        Self(headers.keys().any(named).then_some(headers))
    }

    /// Whether the header stands at all.
    pub(super) fn has(self, field: Field) -> bool {
        self.0
            .is_some_and(|headers| headers.contains_key(field.name()))
    }

    /// The header's value, if it stands once and is visible ASCII within its bound.
    pub(super) fn text(self, field: Field) -> Result<Option<&'h str>, Error> {
        self.one(field, |byte| byte.is_ascii_graphic())
    }

    /// The groups that `Tollgate-Groups` lists, separated by commas.
    pub(super) fn groups(self) -> Result<Vec<&'h str>, Error> {
        let list = self.one(GROUPS, |byte| byte.is_ascii_graphic() || byte == b' ')?;
        list.map_or(Ok(Vec::new()), split)
    }

    fn one(self, field: Field, allowed: fn(u8) -> bool) -> Result<Option<&'h str>, Error> {
        let Some(headers) = self.0 else {
            return Ok(None);
        };
        let mut values = headers.get_all(field.name()).iter();
        let Some(value) = values.next() else {
            return Ok(None);
        };
        if values.next().is_some() {
            return Err(Error::HeaderDoubled(field.1));
        }
        let bytes = value.as_bytes();
        if bytes.is_empty() || bytes.len() > field.2 || !bytes.iter().all(|byte| allowed(*byte)) {
            return Err(field.malformed());
        }
        value.to_str().map(Some).map_err(|_| field.malformed())
    }
}

fn split(list: &str) -> Result<Vec<&str>, Error> {
    let groups: Vec<&str> = list.split(',').map(str::trim).collect();
    if groups.len() > MAX_GROUPS {
        return Err(Error::TooManyGroups(MAX_GROUPS));
    }
    if groups
        .iter()
        .any(|group| group.is_empty() || group.contains(' '))
    {
        return Err(GROUPS.malformed());
    }
    Ok(groups)
}
