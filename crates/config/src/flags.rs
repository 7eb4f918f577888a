//! One room without a file: flags become the table that a file would have held, and go the same
//! way from there.

use std::borrow::Cow;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// What was typed on the command line, untouched; each field is the flag of its name.
///
/// Text everywhere, numbers too, so that every mistake is found here, in one go and in the same
/// words as for a file.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Flags {
    /// `server.listen`.
    pub listen: Option<String>,
    /// `server.admin`.
    pub admin: Option<String>,
    /// `server.admin_token_file`.
    pub admin_token_file: Option<String>,
    /// `server.data_dir`.
    pub data_dir: Option<String>,
    /// `server.data_center`.
    pub data_center: Option<String>,
    /// `store.local`, and with it `store.kind = "valkey"`: `--store`.
    pub store: Option<String>,
    /// `store.world`.
    pub world: Option<String>,
    /// `server.trusted_proxies`.
    pub trusted_proxies: Vec<String>,
    /// `room.name`; `main` if left out.
    pub name: Option<String>,
    /// `room.host`.
    pub host: Option<String>,
    /// `room.path`.
    pub path: Option<String>,
    /// `room.origin`; required.
    pub origin: Option<String>,
    /// `room.total_active_users`; required.
    pub total_active_users: Option<String>,
    /// `room.new_users_per_minute`; required.
    pub new_users_per_minute: Option<String>,
    /// `room.session_duration`.
    pub session_duration: Option<String>,
    /// `room.disable_session_renewal`.
    pub disable_session_renewal: bool,
    /// `room.queueing_method`.
    pub queueing_method: Option<String>,
    /// `room.queue_all`.
    pub queue_all: bool,
    /// `room.opens_at`.
    pub opens_at: Option<String>,
    /// `room.draw`.
    pub draw: bool,
    /// `room.allocation`.
    pub allocation: Option<String>,
    /// `room.json_response_enabled`.
    pub json_response_enabled: bool,
    /// `room.queueing_status_code`.
    pub queueing_status_code: Option<String>,
    /// `room.cookie_suffix`.
    pub cookie_suffix: Option<String>,
    /// `room.bypass`.
    pub bypass: Vec<String>,
}

/// Nothing of it stands in a file.
const NOWHERE: Range<usize> = 0..0;

impl Flags {
    /// The table of the file that would say the same.
    pub(super) fn table(&self) -> DeTable<'_> {
        let mut root = DeTable::new();
        put(&mut root, "server", DeValue::Table(self.server()));
        put(&mut root, "store", DeValue::Table(self.store()));
        let rooms = DeArray::from_iter([Spanned::new(NOWHERE, DeValue::Table(self.room()))]);
        put(&mut root, "room", DeValue::Array(rooms));
        root
    }

    fn server(&self) -> DeTable<'_> {
        let mut server = DeTable::new();
        put_text(&mut server, "listen", self.listen.as_deref());
        put_text(&mut server, "admin", self.admin.as_deref());
        let tokens = self.admin_token_file.as_deref();
        put_text(&mut server, "admin_token_file", tokens);
        put_text(&mut server, "data_dir", self.data_dir.as_deref());
        put_text(&mut server, "data_center", self.data_center.as_deref());
        put_list(&mut server, "trusted_proxies", &self.trusted_proxies);
        server
    }

    fn store(&self) -> DeTable<'_> {
        let mut store = DeTable::new();
        put_text(&mut store, "kind", self.store.as_ref().map(|_| "valkey"));
        put_text(&mut store, "local", self.store.as_deref());
        put_text(&mut store, "world", self.world.as_deref());
        store
    }

    fn room(&self) -> DeTable<'_> {
        let mut room = DeTable::new();
        let name = self.name.as_deref().unwrap_or("main");
        put_text(&mut room, "name", Some(name));
        put_text(&mut room, "host", self.host.as_deref());
        put_text(&mut room, "path", self.path.as_deref());
        put_text(&mut room, "origin", self.origin.as_deref());
        let total = self.total_active_users.as_deref();
        put_number(&mut room, "total_active_users", total);
        let new = self.new_users_per_minute.as_deref();
        put_number(&mut room, "new_users_per_minute", new);
        put_text(
            &mut room,
            "session_duration",
            self.session_duration.as_deref(),
        );
        let is_fixed = self.disable_session_renewal;
        put_switch(&mut room, "disable_session_renewal", is_fixed);
        put_text(
            &mut room,
            "queueing_method",
            self.queueing_method.as_deref(),
        );
        put_switch(&mut room, "queue_all", self.queue_all);
        put_text(&mut room, "opens_at", self.opens_at.as_deref());
        put_switch(&mut room, "draw", self.draw);
        put_text(&mut room, "allocation", self.allocation.as_deref());
        put_switch(
            &mut room,
            "json_response_enabled",
            self.json_response_enabled,
        );
        let status = self.queueing_status_code.as_deref();
        put_number(&mut room, "queueing_status_code", status);
        put_text(&mut room, "cookie_suffix", self.cookie_suffix.as_deref());
        put_list(&mut room, "bypass", &self.bypass);
        room
    }
}

fn put<'f>(table: &mut DeTable<'f>, name: &'static str, value: DeValue<'f>) {
    let key = Spanned::new(NOWHERE, Cow::Borrowed(name));
    table.insert(key, Spanned::new(NOWHERE, value));
}

fn put_text<'f>(table: &mut DeTable<'f>, name: &'static str, text: Option<&'f str>) {
    if let Some(text) = text {
        put(table, name, DeValue::String(Cow::Borrowed(text)));
    }
}

/// What is no number stays text, and is refused as such.
fn put_number<'f>(table: &mut DeTable<'f>, name: &'static str, text: Option<&'f str>) {
    let Some(text) = text else { return };
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match DeValue::parse(text) {
        Ok(number) if is_number => put(table, name, number.into_inner()),
        _ => put_text(table, name, Some(text)),
    }
}

fn put_switch(table: &mut DeTable<'_>, name: &'static str, is_on: bool) {
    if is_on {
        put(table, name, DeValue::Boolean(true));
    }
}

/// A flag that was not given leaves the key out: an empty list says something else.
fn put_list<'f>(table: &mut DeTable<'f>, name: &'static str, texts: &'f [String]) {
    if texts.is_empty() {
        return;
    }
    let values = texts
        .iter()
        .map(|text| Spanned::new(NOWHERE, DeValue::String(Cow::Borrowed(text))));
    put(table, name, DeValue::Array(values.collect()));
}
