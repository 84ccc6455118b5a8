//! The header fields of a response, where they stand.

use std::{fmt, ops::Range};

use bytes::Bytes;
use http::HeaderName;

/// Header fields as they came, in their order. There are few, and of most nobody asks: they are searched, not indexed.
#[derive(Clone, Default)]
pub struct Fields {
    head: Bytes,
    places: Vec<Place>,
}

#[derive(Clone)]
struct Place {
    name: Range<u32>,
    value: Range<u32>,
}

impl Fields {
    /// No field yet of `head`, which has room for so many.
    pub(super) fn with_capacity(head: Bytes, fields: usize) -> Self {
        Self {
            head,
            places: Vec::with_capacity(fields),
        }
    }

    /// Adds a field whose parts were borrowed from the head.
    pub(super) fn push(&mut self, name: &[u8], value: &[u8]) {
        let place = |part: &[u8]| {
            let start = part.as_ptr() as usize - self.head.as_ptr() as usize;
            // A head is far shorter than 4 GiB.
            start as u32..(start + part.len()) as u32
        };
        let place = Place {
            name: place(name),
            value: place(value),
        };
        self.places.push(place);
    }

    /// The values of all fields of this name, without the white space around them.
    pub fn all(&self, name: &HeaderName) -> impl DoubleEndedIterator<Item = &[u8]> {
        let name = name.as_str().as_bytes();
        let is_asked = move |place: &&Place| self.part(&place.name).eq_ignore_ascii_case(name);
        let asked = self.places.iter().filter(is_asked);
        asked.map(|place| self.part(&place.value))
    }

    /// The value of the first field of this name.
    pub fn get(&self, name: &HeaderName) -> Option<&[u8]> {
        self.all(name).next()
    }

    /// Every field as it came, name and value.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let places = self.places.iter();
        places.map(|place| (self.part(&place.name), self.part(&place.value)))
    }

    /// Whether there is a field of this name.
    pub fn contains(&self, name: &HeaderName) -> bool {
        self.get(name).is_some()
    }

    /// Takes all fields of this name out.
    pub(in crate::egress) fn remove(&mut self, name: &HeaderName) {
        let Self { head, places } = self;
        let name = name.as_str().as_bytes();
        places.retain(|place| !part(head, &place.name).eq_ignore_ascii_case(name));
    }

    fn part(&self, place: &Range<u32>) -> &[u8] {
        part(&self.head, place)
    }
}

fn part<'a>(head: &'a [u8], place: &Range<u32>) -> &'a [u8] {
    &head[place.start as usize..place.end as usize]
}

/// Names only: values may be secrets.
impl fmt::Debug for Fields {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.places.iter().map(|place| self.part(&place.name));
        out.debug_set()
            .entries(names.map(String::from_utf8_lossy))
            .finish()
    }
}
