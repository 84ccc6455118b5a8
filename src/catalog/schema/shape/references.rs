//! What the references of a schema may mean.

use serde_json::Value;

use super::Graph;

impl<'s> Graph<'s> {
    /// Everything that a reference may mean. What it does mean, the validator knows; where that is nothing in the
    /// document, compiling fails.
    pub(super) fn targets(&mut self, base: &'s Value, uri: &'s str) -> Vec<&'s Value> {
        let (resource, fragment) = uri.split_once('#').unwrap_or((uri, ""));
        let fragment = percent_decoded(fragment);
        let bases: Vec<&'s Value> = if resource.is_empty() {
            let root = self.nodes[0].schema;
            let other = (!std::ptr::eq(base, root)).then_some(root);
            std::iter::once(base).chain(other).collect()
        } else {
            self.resources(resource)
        };
        if fragment.is_empty() || fragment.starts_with('/') {
            return bases
                .into_iter()
                .filter_map(|base| base.pointer(&fragment))
                .collect();
        }
        self.names.get(&*fragment).cloned().unwrap_or_default()
    }

    /// What a URI without a fragment may name: whatever has a name that ends alike.
    fn resources(&mut self, uri: &'s str) -> Vec<&'s Value> {
        let last = uri.rsplit('/').next().unwrap_or(uri);
        let names = &self.names;
        let found = self.resources.entry(last).or_insert_with(|| {
            let named = names.iter().filter(|(name, _)| name.ends_with(last));
            named
                .flat_map(|(_, schemas)| schemas.iter().copied())
                .collect()
        });
        found.clone()
    }
}

/// The fragment of a URI without its escapes (RFC 3986, section 2.1).
fn percent_decoded(fragment: &str) -> String {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escaped = (first == b'%')
            .then(|| after.split_first_chunk::<2>())
            .flatten();
        let decoded = escaped.and_then(|(digits, after)| {
            let digits = std::str::from_utf8(digits).ok()?;
            Some((u8::from_str_radix(digits, 16).ok()?, after))
        });
        let (byte, after) = decoded.unwrap_or((first, after));
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
