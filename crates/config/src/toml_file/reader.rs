//! Reader of tables, key by key. It remembers the keys that were read and collects every problem.
//!
//! A key that no code reads is a mistake, so the readers of the tables are the only list of keys.
//! What values mean together is not checked here.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::kind::{Kind, nearest};
use super::notes::{KnownKey, Located, Location, Notes};
use super::problem::{Finding, Owner, hidden, key_name, quoted};

/// Key of a table, declared once.
pub struct Key<K> {
    /// Name as it is typed.
    pub name: &'static str,
    /// Kind of the value.
    pub kind: K,
    /// Value if the key is left out, as it would be written; `None` = no value.
    pub default: Option<&'static str>,
}

/// One of several tables, before it is read.
pub struct Element<'n> {
    /// Number among the elements, from 1; elements that are not tables count too.
    pub number: usize,
    entries: &'n DeTable<'n>,
    offset: usize,
    /// Prefix of the paths of its keys: `room[2].`.
    path: String,
    /// Prefix without the parts that differ between elements: `room.`.
    pattern: String,
}

/// Table while it is read.
pub struct Table<'n> {
    /// Collection of mistakes.
    pub notes: &'n mut Notes,
    /// `None` = the table was left out, so every key has its default.
    entries: Option<&'n DeTable<'n>>,
    /// Offset of the beginning of the table.
    offset: usize,
    /// Path with indices, for messages: `room[2].`.
    path: String,
    /// Path without indices, for the list of known keys: `room.`.
    pattern: String,
    owner: Option<Owner>,
    names_read: Vec<&'static str>,
}

impl<'n> Table<'n> {
    /// Returns the table of the whole file.
    pub fn root(notes: &'n mut Notes, entries: &'n DeTable<'n>) -> Self {
        Self {
            notes,
            entries: Some(entries),
            offset: 0,
            path: String::new(),
            pattern: String::new(),
            owner: None,
            names_read: Vec::new(),
        }
    }

    /// Makes later messages name the room or limit instead of its number.
    pub fn name_owner(&mut self, owner: Owner) {
        self.owner = Some(owner);
        self.path.clear();
    }

    /// Whether the key was typed.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.entries
            .is_some_and(|entries| entries.contains_key(name))
    }

    /// Returns the text of a key as it was typed, if it is a text.
    #[must_use]
    pub fn typed(&self, name: &str) -> Option<&'n str> {
        let value = self.entries.and_then(|entries| entries.get(name))?;
        value.get_ref().as_str()
    }

    /// Returns the location of a key, or of its table if the key was left out.
    #[must_use]
    pub fn location(&self, name: &str) -> Location {
        let offset = self
            .entries
            .and_then(|entries| entries.get_key_value(name))
            .map_or(self.offset, |(key, _)| key.span().start);
        self.location_at(offset, name)
    }

    fn location_at(&self, offset: usize, name: &str) -> Location {
        let key = format!("{}{name}", self.path);
        self.notes.location(offset, self.owner.as_ref(), key)
    }

    /// Reads a key that may be left out.
    pub fn optional<K: Kind>(&mut self, key: &Key<K>) -> Option<K::Value> {
        let value = self.read_value(key.name, &key.kind, key.default)?;
        self.read(&key.kind, key.name, value)
    }

    /// Reads a key that is required.
    pub fn required<K: Kind>(&mut self, key: &Key<K>) -> Option<K::Value> {
        if let Some(value) = self.read_value(key.name, &key.kind, key.default) {
            return self.read(&key.kind, key.name, value);
        }
        let location = self.location(key.name);
        self.notes
            .report(&location, Finding::Missing, key.kind.allowed(), None);
        None
    }

    /// Reads a key, or returns its default. It returns the default for an invalid value too, which
    /// is then reported as a problem.
    ///
    /// # Panics
    ///
    /// If the key was declared without a legal default.
    pub fn defaulted<K: Kind>(&mut self, key: &Key<K>) -> K::Value {
        self.optional(key).unwrap_or_else(|| default_of(key))
    }

    /// Reads a value, or the elements of a list; `None` if the key was left out or is neither.
    pub fn one_or_list<K: Kind>(&mut self, key: &Key<K>) -> Option<Vec<Located<K::Value>>> {
        let typed = self.entries.and_then(|entries| entries.get(key.name));
        if typed.is_some_and(|value| value.get_ref().is_array()) {
            return self.list(key);
        }
        let value = self.optional(key)?;
        let location = self.location(key.name);
        Some(vec![Located { value, location }])
    }

    /// Reads the elements of a list; `None` if the key was left out or is not a list.
    pub fn list<K: Kind>(&mut self, key: &Key<K>) -> Option<Vec<Located<K::Value>>> {
        let value = self.read_value(key.name, &key.kind, key.default)?;
        let Some(elements) = value.get_ref().as_array() else {
            let location = self.location_at(value.span().start, key.name);
            let found = shown(value.get_ref(), key.kind.is_secret());
            let allowed = format!("a list, each {}", key.kind.allowed());
            let hint = "put it into [ ]".to_owned();
            self.notes
                .report(&location, Finding::Value(found), allowed, Some(hint));
            return None;
        };
        let mut list = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            let name = format!("{}[{}]", key.name, index + 1);
            if let Some(value) = self.read(&key.kind, &name, element) {
                let location = self.location_at(element.span().start, &name);
                list.push(Located { value, location });
            }
        }
        Some(list)
    }

    /// Returns a table inside this one, even if it was left out.
    pub fn table(&mut self, name: &'static str) -> Table<'_> {
        let mut offset = self.offset;
        let mut entries = None;
        self.names_read.push(name);
        if let Some(value) = self.entries.and_then(|entries| entries.get(name)) {
            offset = value.span().start;
            entries = value.get_ref().as_table();
            if entries.is_none() {
                let location = self.location_at(offset, name);
                let found = shown(value.get_ref(), false);
                let allowed = format!("a table, such as [{}{name}]", self.pattern);
                self.notes
                    .report(&location, Finding::Value(found), allowed, None);
            }
        }
        Table {
            entries,
            offset,
            path: format!("{}{name}.", self.path),
            pattern: format!("{}{name}.", self.pattern),
            owner: self.owner.clone(),
            names_read: Vec::new(),
            notes: self.notes,
        }
    }

    /// Returns the tables of an array of tables; empty if it was left out.
    pub fn elements(&mut self, name: &'static str, allowed: &str) -> Vec<Element<'n>> {
        self.names_read.push(name);
        let Some(value) = self.entries.and_then(|entries| entries.get(name)) else {
            return Vec::new();
        };
        let list: Vec<&'n Spanned<DeValue<'n>>> = match value.get_ref() {
            DeValue::Array(list) => list.iter().collect(),
            _ => vec![value],
        };
        let is_list = value.get_ref().is_array();
        let mut elements = Vec::with_capacity(list.len());
        for (index, element) in list.into_iter().enumerate() {
            match element.get_ref().as_table() {
                Some(entries) if is_list => elements.push(Element {
                    number: index + 1,
                    entries,
                    offset: element.span().start,
                    path: format!("{}{name}[{}].", self.path, index + 1),
                    pattern: format!("{}{name}.", self.pattern),
                }),
                _ => {
                    let location = self.location_at(element.span().start, name);
                    let found = Finding::Value(shown(element.get_ref(), false));
                    let hint = (!is_list && element.get_ref().is_table())
                        .then(|| format!("did you mean [[{}{name}]]?", self.pattern));
                    self.notes.report(&location, found, allowed, hint);
                }
            }
        }
        elements
    }

    /// Returns the tables inside the table `name`, each with its key; empty if it was left out.
    pub fn named_tables(
        &mut self,
        name: &'static str,
        allowed: &str,
    ) -> Vec<(Located<&'n str>, Element<'n>)> {
        self.names_read.push(name);
        let Some(value) = self.entries.and_then(|entries| entries.get(name)) else {
            return Vec::new();
        };
        let refuse = |notes: &mut Notes, location: &Location, value: &DeValue<'_>| {
            let found = Finding::Value(shown(value, false));
            notes.report(location, found, allowed, None);
        };
        let Some(entries) = value.get_ref().as_table() else {
            let location = self.location_at(value.span().start, name);
            refuse(self.notes, &location, value.get_ref());
            return Vec::new();
        };
        let mut tables = Vec::with_capacity(entries.len());
        for (index, (key, value)) in entries.iter().enumerate() {
            let given: &'n str = key.get_ref();
            let path = format!("{}{name}.{}", self.path, key_name(given));
            let location = self
                .notes
                .location(key.span().start, self.owner.as_ref(), path);
            let Some(entries) = value.get_ref().as_table() else {
                refuse(self.notes, &location, value.get_ref());
                continue;
            };
            let element = Element {
                number: index + 1,
                entries,
                offset: key.span().start,
                path: format!("{}{name}.{}.", self.path, key_name(given)),
                pattern: format!("{}{name}.{}.", self.pattern, key_name(given)),
            };
            tables.push((
                Located {
                    value: given,
                    location,
                },
                element,
            ));
        }
        tables
    }

    /// Whether the table was created by a value that was set, and is not in the file.
    #[must_use]
    pub fn is_added(&self, element: &Element<'_>) -> bool {
        self.notes.is_added(element.offset)
    }

    /// Enters one of [`Self::elements`] or [`Self::named_tables`].
    pub fn enter(&mut self, element: &Element<'n>) -> Table<'_> {
        Table {
            entries: Some(element.entries),
            offset: element.offset,
            path: element.path.clone(),
            pattern: element.pattern.clone(),
            owner: self.owner.clone(),
            names_read: Vec::new(),
            notes: self.notes,
        }
    }

    /// Reports the keys of this table that were not read.
    pub fn finish(self) {
        let Some(entries) = self.entries else {
            return;
        };
        for (key, _) in entries.iter() {
            let name: &str = key.get_ref();
            if self.names_read.contains(&name) {
                continue;
            }
            let location = self.location_at(key.span().start, &key_name(name));
            let hint = nearest(name, self.names_read.iter().copied())
                .map(|known| format!("did you mean {known}?"));
            self.notes.report(&location, Finding::UnknownKey, "", hint);
        }
    }

    fn read_value<K: Kind>(
        &mut self,
        name: &'static str,
        kind: &K,
        default: Option<&'static str>,
    ) -> Option<&'n Spanned<DeValue<'n>>> {
        self.names_read.push(name);
        let path = format!("{}{name}", self.pattern);
        self.notes.known.entry(path).or_insert_with(|| KnownKey {
            allowed: kind.allowed(),
            default,
        });
        self.entries.and_then(|entries| entries.get(name))
    }

    fn read<K: Kind>(
        &mut self,
        kind: &K,
        name: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<K::Value> {
        match kind.read(value.get_ref()) {
            Ok(meaning) => Some(meaning),
            Err(error) => {
                let location = self.location_at(value.span().start, name);
                let found = error
                    .found
                    .unwrap_or_else(|| shown(value.get_ref(), kind.is_secret()));
                self.notes
                    .report(&location, Finding::Value(found), kind.allowed(), error.hint);
                None
            }
        }
    }
}

/// Returns the declared default of a key.
fn default_of<K: Kind>(key: &Key<K>) -> K::Value {
    let read = key.default.and_then(|text| {
        let value = DeValue::parse(text).ok()?;
        key.kind.read(value.get_ref()).ok()
    });
    // A test reads a file without any optional key, so every default is checked there.
    read.expect("a declared default is a legal value of its kind")
}

/// Formats a value for a message: as it was typed if it is short, otherwise its type.
fn shown(value: &DeValue<'_>, is_secret: bool) -> String {
    match value {
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
        DeValue::String(text) if is_secret => hidden(text),
        DeValue::String(text) => quoted(text),
        _ if is_secret => format!("a value of type {}", type_name(value)),
        DeValue::Integer(number) => short(number.to_string()),
        DeValue::Float(number) => short(number.to_string()),
        DeValue::Boolean(switch) => switch.to_string(),
        DeValue::Datetime(moment) => moment.to_string(),
    }
}

/// Shortens digits, which may be many.
fn short(mut number: String) -> String {
    if number.len() > 40 {
        number.truncate(40);
        number.push('…');
    }
    number
}

const fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "integer",
        DeValue::Float(_) => "float",
        DeValue::Boolean(_) => "boolean",
        DeValue::Datetime(_) => "date-time",
        DeValue::Array(_) => "list",
        DeValue::Table(_) => "table",
    }
}
