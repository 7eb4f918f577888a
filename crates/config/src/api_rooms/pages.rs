//! Custom pages of the rooms of the API. They lie beside the record, which refers to each by its
//! digest: a page may have as many bytes as the whole record.
//!
//! Where pages are kept, and who computes digests, is not decided here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{ApiRoom, ApiRooms};
use crate::room::CUSTOM_PAGE;

/// Most bytes of all pages of the rooms of the API. Each node has them in memory.
pub const API_PAGES_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Key of a reference: the page's SHA-256 digest in hex digits stands there, in place of its text.
const REFERENCE: &str = "sha256";

/// Pages by name: the hex digits of their SHA-256 digests.
pub type Pages = BTreeMap<String, Arc<str>>;

impl ApiRoom {
    /// Returns the names of the pages that the room refers to, those of its events among them.
    pub fn page_names(&self) -> impl Iterator<Item = &str> {
        let events = self.events.iter().map(|event| &event.values);
        let all = std::iter::once(&self.values).chain(events);
        all.filter_map(page_name)
    }

    /// Replaces texts of pages by references, and returns the texts. `name_of` computes a digest.
    pub fn take_pages(&mut self, name_of: impl Fn(&str) -> String) -> Pages {
        let mut taken = Pages::new();
        for values in self.page_values() {
            let Some(Value::String(text)) = values.get(CUSTOM_PAGE) else {
                continue;
            };
            // An empty text is a mistake, which the reader of the room reports.
            if !text.is_empty() {
                let name = name_of(text);
                taken.insert(name.clone(), Arc::from(text.as_str()));
                refer(values, &name);
            }
        }
        taken
    }

    /// Returns the room with texts in place of references. Where `pages` has no text, the room has
    /// no custom page.
    #[must_use]
    pub fn with_pages(&self, pages: &Pages) -> Self {
        let mut room = self.with_known_pages(pages);
        for values in room.page_values() {
            if page_name(values).is_some() {
                values.remove(CUSTOM_PAGE);
            }
        }
        room
    }

    /// Returns the room with texts in place of references. Where `pages` has no text, the reference
    /// stays.
    #[must_use]
    pub fn with_known_pages(&self, pages: &Pages) -> Self {
        let mut room = self.clone();
        for values in room.page_values() {
            if let Some(text) = page_name(values).and_then(|name| pages.get(name)) {
                values.insert(CUSTOM_PAGE.to_owned(), json!(**text));
            }
        }
        room
    }

    /// Returns the room with references to pages that can be read. Where one cannot, the room has
    /// the page of `before` in the same place, or none.
    #[must_use]
    pub fn with_readable_pages(&self, before: Option<&Self>, pages: &Pages) -> Self {
        let mut room = self.clone();
        let before_of = |event: Option<&str>| {
            let values = match event {
                None => &before?.values,
                Some(id) => &before?.events.iter().find(|known| known.id == id)?.values,
            };
            page_name(values).filter(|name| pages.contains_key(*name))
        };
        let events = room.events.iter_mut();
        let events = events.map(|event| (Some(&*event.id), &mut event.values));
        let all = std::iter::once((None, &mut room.values)).chain(events);
        for (event, values) in all {
            if page_name(values).is_none_or(|name| pages.contains_key(name)) {
                continue;
            }
            match before_of(event) {
                Some(name) => refer(values, name),
                None => {
                    values.remove(CUSTOM_PAGE);
                }
            }
        }
        room
    }

    fn page_values(&mut self) -> impl Iterator<Item = &mut Map<String, Value>> {
        let events = self.events.iter_mut().map(|event| &mut event.values);
        std::iter::once(&mut self.values).chain(events)
    }
}

impl ApiRooms {
    /// Returns the names of the pages that rooms refer to.
    #[must_use]
    pub fn page_names(&self) -> BTreeSet<&str> {
        let rooms = self.rooms.values().filter_map(|entry| entry.room.as_ref());
        rooms.flat_map(ApiRoom::page_names).collect()
    }

    /// Returns the record with references to pages that can be read, as
    /// [`ApiRoom::with_readable_pages`] does for one room.
    #[must_use]
    pub fn with_readable_pages(&self, before: &Self, pages: &Pages) -> Self {
        let mut next = self.clone();
        for (id, entry) in &mut next.rooms {
            let known = before.rooms.get(id).and_then(|known| known.room.as_ref());
            let room = entry.room.take();
            entry.room = room.map(|room| room.with_readable_pages(known, pages));
        }
        next
    }
}

fn page_name(values: &Map<String, Value>) -> Option<&str> {
    values.get(CUSTOM_PAGE)?.get(REFERENCE)?.as_str()
}

fn refer(values: &mut Map<String, Value>, name: &str) {
    values.insert(CUSTOM_PAGE.to_owned(), json!({ REFERENCE: name }));
}
