//! The pages of a server's lists, as they are read.

use super::pinning::aside;
use crate::{
    catalog::{MAX_BYTES, MAX_TOOLS, Shown},
    mcp::items::List,
    policy::Permit,
    refusal::{Code, Refusal},
    upstream::Message,
};

/// Pages of one list at most.
const MAX_PAGES: usize = 256;

/// What one page shows.
pub(super) struct Sheet {
    /// The items, in the server's order.
    pub(super) shown: Vec<Shown>,
    /// The JSON text of the cursor that leads on.
    pub(super) cursor: Option<String>,
}

/// All pages of a list, as they are read.
pub(super) struct Sheets<'p> {
    permit: &'p Permit,
    list: List,
    /// What they show.
    pub(super) shown: Vec<Shown>,
    bytes: usize,
    pages: usize,
}

impl<'p> Sheets<'p> {
    /// None read yet.
    pub(super) fn new(permit: &'p Permit, list: List) -> Self {
        Self {
            permit,
            list,
            shown: Vec::new(),
            bytes: 0,
            pages: 0,
        }
    }

    /// Takes one page and gives the cursor of the next; `None` for an error.
    pub(super) async fn add(
        &mut self,
        message: &Message,
    ) -> Result<Option<Option<String>>, Refusal> {
        let (permit, list) = (self.permit, self.list);
        let Some(sheet) = Sheet::read(message, list).await? else {
            return Ok(None);
        };
        self.pages += 1;
        self.bytes += sheet.bytes();
        self.shown.extend(sheet.shown);
        if self.shown.len() > MAX_TOOLS || self.bytes > MAX_BYTES {
            let (item, mib) = (list.item(), MAX_BYTES >> 20);
            let what = format!("{MAX_TOOLS} {item}s, or {mib} MiB of them");
            return Err(too_large(permit, &what));
        }
        if self.pages == MAX_PAGES && sheet.cursor.is_some() {
            let pages = format!("{MAX_PAGES} pages of {}s", list.item());
            return Err(too_large(permit, &pages));
        }
        Ok(Some(sheet.cursor))
    }
}

impl Sheet {
    /// Bytes of the definitions.
    fn bytes(&self) -> usize {
        let items = self
            .shown
            .iter()
            .filter_map(|shown| shown.item.as_ref().ok());
        items.map(|item| item.definition.len()).sum()
    }

    /// Reads a page of `list`; `None` for an error.
    pub(super) async fn read(message: &Message, list: List) -> Result<Option<Self>, Refusal> {
        let size = message.size();
        let message = message.clone();
        aside(size, move || {
            let page = message.page(list, MAX_TOOLS)?;
            Ok(page.map(|page| Self {
                shown: page
                    .items
                    .iter()
                    .map(|item| Shown::of(list, item))
                    .collect(),
                cursor: page.next_cursor.map(|cursor| cursor.as_str().to_owned()),
            }))
        })
        .await
    }
}

pub(super) fn too_large(permit: &Permit, what: &str) -> Refusal {
    let server = &permit.server().name;
    Refusal::new(
        Code::CatalogTooLarge,
        format!("server `{server}` offers more than {what}"),
    )
}
