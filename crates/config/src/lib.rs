//! What does the operator want? The config file, read in two steps: what was typed, then what it
//! means; and in [`overrides`] what is said while a room runs. Every mistake is reported, not only
//! the first.
//!
//! Nothing is opened, resolved or compiled here: paths stay as they were typed, hosts are names,
//! and bypass rules are text.

use std::collections::BTreeMap;

use toml::de::DeTable;

pub mod address;
mod ca_file;
mod checks;
mod clashes;
mod cookie;
mod flags;
#[doc(hidden)]
pub mod fuzz;
mod gossip;
mod host;
mod jwt;
mod kafka;
mod keys;
mod kind;
pub mod language;
mod limit;
mod limit_stores;
mod live;
mod memcached;
mod model;
mod need;
pub mod overrides;
pub mod path;
mod pem_error;
mod rate_limit_service;
mod rate_text;
mod room;
mod server;
mod shared_store;
mod store;
pub mod terminal;
pub mod time_text;
pub mod toml_file;
pub mod words;

pub use crate::toml_file::duration;
pub use address::host::{HostError, HostPort};
pub use address::password::{PASSWORD_BYTES_MAX, PasswordError};
pub use address::store_address::AddressError;
pub use address::valkey::{Topology, ValkeyAddress, ValkeyTls};
pub use ca_file::{CA_FILE_BYTES_MAX, CaFile, CaFileError};
pub use checks::Checks;
pub use flags::{FLAGS, Flag, Flags, Takes};
pub use gossip::GossipConfig;
pub use host::OriginError;
pub use kafka::KafkaConfig;
pub use limit::policy_values;
pub use limit_stores::{LimitStore, LimitStores};
pub use live::{Changed, LiveValues, check_live_key};
pub use memcached::MemcachedConfig;
pub use model::{
    BypassRule, Client, ClientKey, Config, CookieSettings, HealthCheck, Host, Http2, JwtConfig,
    JwtKeys, KeyPart, LegacyReset, LimitConfig, LimitHeaders, LimitName, LimitRoute, OnLimit,
    OnLimitStoreFailure, OnStoreFailure, Origin, OriginCommands, OriginLimits, PageConfig,
    PageTemplate, RateLimitHeaders, RateLimitServiceConfig, RateLimitStore, RoomConfig, RoomName,
    RoomOrigins, Route, SameSite, Secure, ServerConfig, SizeLimits, Statuses, Timeouts, TlsConfig,
    TokenPlace, WithoutKey,
};
pub use notes::KnownKey;
pub use pem_error::PemError;
pub use problem::{Finding, Owner, Problem, Problems};
pub use rate_text::{RateText, RateTextError};
pub use room::{read_room_limits, read_room_rules};
pub use server::{TRUSTED_PROXY_HEADERS, data_center_name};
pub use shared_store::{StoreConfig, ValkeyConfig};

use crate::toml_file::{document, notes, problem, reader, source};
use limit::LimitRead;
use notes::Notes;
use reader::{Element, Table};
use room::RoomRead;
use source::Source;

/// Most rooms of a file. A room costs memory on every node and a loop of its own.
const ROOMS_MAX: usize = 1_000;
/// Most limits of a file: each is looked at for every request.
const LIMITS_MAX: usize = 200;

/// A configuration and what is odd about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// What holds from now on.
    pub config: Config,
    /// Allowed, but probably not meant; in the order of the file.
    pub warnings: Vec<Problem>,
}

/// A text that is no configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// Every mistake that the text holds.
    pub problems: Problems,
    /// What could be read in spite of them, for whoever looks into the files that it names, so that
    /// their mistakes are told in the same run; never to be started. Rooms that lack something
    /// required are absent, and so is what somebody has judged already: bypass rules and templates
    /// in the text. `None` if the text is no TOML.
    pub readable: Option<Box<Config>>,
}

impl Config {
    /// Reads a config file. `source_name` is what messages call it.
    ///
    /// # Errors
    ///
    /// [`Problems`] with every mistake that the text holds; only the first one if it is no TOML
    /// at all, because nothing behind that can be trusted.
    pub fn parse(source_name: &str, text: &str) -> Result<Parsed, Problems> {
        Self::parse_with(source_name, text, Checks::default())
    }

    /// The same, with somebody who knows bypass rules and templates.
    ///
    /// # Errors
    ///
    /// As [`Config::parse`], mistakes in those included.
    pub fn parse_with(source_name: &str, text: &str, checks: Checks) -> Result<Parsed, Problems> {
        let parsed = Self::parse_partly(source_name, text, checks);
        parsed.map_err(|refused| refused.problems)
    }

    /// The same, with what can be read of a text that holds mistakes.
    ///
    /// # Errors
    ///
    /// [`Refused`], with the mistakes of [`Config::parse_with`].
    pub fn parse_partly(source_name: &str, text: &str, checks: Checks) -> Result<Parsed, Refused> {
        let source = Source::new(source_name, text);
        let mut notes = Notes::new(Some(source));
        match document::parse(&mut notes, text) {
            Some(document) => read(notes, &document, checks),
            None => Err(Refused {
                problems: Problems(notes.problems),
                readable: None,
            }),
        }
    }

    /// Makes the configuration of one room from flags, by the rules of the file.
    ///
    /// # Errors
    ///
    /// [`Problems`] with every mistake; the keys are the names of the flags, such as
    /// `--session-duration`.
    pub fn single_room(flags: &Flags) -> Result<Parsed, Problems> {
        Self::single_room_with(flags, Checks::default())
    }

    /// The same, with somebody who knows bypass rules and templates.
    ///
    /// # Errors
    ///
    /// As [`Config::single_room`], mistakes in those included.
    pub fn single_room_with(flags: &Flags, checks: Checks) -> Result<Parsed, Problems> {
        let read = read(Notes::new(None), &flags.table(), checks);
        read.map_err(|refused| refused.problems)
    }

    /// Every key of the file by its path, such as `room.cookie_attributes.secure`: for whatever
    /// documents them.
    ///
    /// # Panics
    ///
    /// Never: the text that it reads is constant.
    #[must_use]
    pub fn known_keys() -> BTreeMap<String, KnownKey> {
        // Elements of lists only have keys where there is one.
        let document = DeTable::parse(
            "server = { more_certificates = [{}] }\nroom = [{ additional_routes = [{}] }]\n\
             limit = [{ routes = [{}], overrides = [{}] }]\njwt = {}\nmemcached = {}\nkafka = {}\n\
             gossip = {}",
        )
        .expect("the constant is legal TOML");
        let mut notes = Notes::new(None);
        read_document(&mut notes, document.get_ref(), Checks::default());
        notes.known
    }
}

fn read(mut notes: Notes, document: &DeTable<'_>, checks: Checks) -> Result<Parsed, Refused> {
    let FileRead {
        server,
        store,
        rooms,
        limits,
        jwt,
        limit_stores,
        rate_limit_service,
    } = read_document(&mut notes, document, checks);
    clashes::check(&mut notes, &rooms);
    clashes::check_limits(&mut notes, &limits, &rooms);
    if let Some(store) = &store {
        clashes::check_limits_stores(&mut notes, &limits, store);
    }
    let by_line = |problem: &Problem| (problem.line, problem.column);
    notes.problems.sort_by_key(by_line);
    notes.warnings.sort_by_key(by_line);
    let is_whole = store.is_some()
        && rooms.iter().all(|room| room.config.is_some())
        && limits.iter().all(|limit| limit.config.is_some());
    let mut config = Config {
        server,
        store: store.unwrap_or(StoreConfig::Embedded),
        rooms: rooms.into_iter().filter_map(|room| room.config).collect(),
        limits: limits
            .into_iter()
            .filter_map(|limit| limit.config)
            .collect(),
        jwt,
        limit_stores,
        rate_limit_service,
    };
    if is_whole && notes.problems.is_empty() {
        return Ok(Parsed {
            config,
            warnings: notes.warnings,
        });
    }
    config.rooms.iter_mut().for_each(forget_judged);
    Err(Refused {
        problems: Problems(notes.problems),
        readable: Some(Box::new(config)),
    })
}

/// Takes out what was judged while it was read.
fn forget_judged(room: &mut RoomConfig) {
    room.bypass.clear();
    let is_text = |template: &mut _| matches!(template, PageTemplate::Html(_));
    room.page.template.take_if(is_text);
}

/// The tables of a file, as far as they could be read.
struct FileRead {
    server: ServerConfig,
    store: Option<StoreConfig>,
    rooms: Vec<RoomRead>,
    limits: Vec<LimitRead>,
    jwt: Option<JwtConfig>,
    limit_stores: LimitStores,
    rate_limit_service: Option<RateLimitServiceConfig>,
}

fn read_document(notes: &mut Notes, document: &DeTable<'_>, checks: Checks) -> FileRead {
    let mut root = Table::root(notes, document);
    let server = server::read(root.table("server"));
    let store = store::read(root.table("store"), server.unnamed.as_ref());
    let rooms = read_rooms(&mut root, checks);
    let limits = read_limits(&mut root);
    let needs: Vec<_> = limits.iter().flat_map(|limit| &limit.needs).collect();
    let jwt = limit::JWT.read(&mut root, &needs, jwt::read);
    let limit_stores = limit_stores::read(&mut root, &needs, checks.lacks_kafka);
    let is_there = root.has("rate_limit_service");
    let around = (&server.config, store.as_ref());
    let rate_limit_service =
        rate_limit_service::read(root.table("rate_limit_service"), is_there, around);
    root.finish();
    FileRead {
        server: server.config,
        store,
        rooms,
        limits,
        jwt,
        limit_stores,
        rate_limit_service,
    }
}

fn read_rooms(root: &mut Table<'_>, checks: Checks) -> Vec<RoomRead> {
    let allowed = "at least one [[room]]";
    let mistakes = root.notes.problems.len();
    let elements = root.elements("room", allowed);
    if elements.is_empty() && root.notes.problems.len() == mistakes {
        let location = root.location("room");
        root.notes
            .refuse(&location, Finding::Missing, allowed, None);
    }
    let elements = refuse_beyond(root, elements, "room", ROOMS_MAX);
    let rooms = elements.iter();
    rooms
        .map(|element| room::read(root.enter(element), checks))
        .collect()
}

fn read_limits(root: &mut Table<'_>) -> Vec<LimitRead> {
    let elements = root.elements("limit", "tables, each as [[limit]]");
    let elements = refuse_beyond(root, elements, "limit", LIMITS_MAX);
    let limits = elements.iter();
    limits
        .map(|element| limit::read(root.enter(element)))
        .collect()
}

/// Says if there are more than `most`, and leaves out what is beyond.
fn refuse_beyond<'n>(
    root: &mut Table<'n>,
    mut elements: Vec<Element<'n>>,
    name: &str,
    most: usize,
) -> Vec<Element<'n>> {
    if elements.len() > most {
        let location = root.location(name);
        let found = Finding::Value(format!("{} {name}s", elements.len()));
        let allowed = format!("at most {most}");
        root.notes.refuse(&location, found, allowed, None);
        elements.truncate(most);
    }
    elements
}
