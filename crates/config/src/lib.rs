//! Configuration of Anteroom: reads the config file or flags into checked values, and keeps the
//! [`overrides`] that operators set while a room runs. Reports every mistake, not only the first.
//!
//! Nothing is opened, resolved or compiled here: paths stay as they were typed, hosts are names,
//! and bypass rules are text.

use std::collections::BTreeMap;

use toml::de::DeTable;

pub mod address;
pub mod api_rooms;
mod ca_file;
mod checks;
mod claims;
mod clashes;
mod cookie;
mod effective;
mod flags;
#[doc(hidden)]
pub mod fuzz;
mod gossip;
mod host;
mod json_table;
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
mod origins;
pub mod overrides;
pub mod path;
mod pem_error;
mod rate_limit_service;
mod rate_text;
mod room;
pub mod schedule;
mod server;
mod shared_store;
mod site;
mod store;
#[cfg(test)]
mod testing;
pub mod time_text;
pub mod toml_file;
pub mod words;

pub use crate::toml_file::duration;
pub use address::host::{HostError, HostPort};
pub use address::password::{PASSWORD_BYTES_MAX, PasswordError};
pub use address::store_address::AddressError;
pub use address::valkey::{Durable, StorePromise, Topology, ValkeyAddress, ValkeyTls};
pub use ca_file::{CA_FILE_BYTES_MAX, CaFile, CaFileError};
pub use checks::Checks;
pub use effective::{Effective, EventNow, effective};
pub use flags::{FLAGS, Flag, Flags, Takes};
pub use gossip::GossipConfig;
pub use host::OriginError;
pub use kafka::KafkaConfig;
pub use limit::policy_values;
pub use limit_stores::{LimitStore, LimitStores};
pub use live::{Changed, LiveValues, check_live_key};
pub use memcached::MemcachedConfig;
pub use model::{
    BypassRule, Client, ClientKey, Config, CookieSettings, EventName, EventStep, EventValues,
    HealthCheck, Host, Http2, JwtConfig, JwtKeys, KeyPart, LegacyReset, LimitConfig, LimitHeaders,
    LimitName, LimitRoute, OnLimit, OnLimitStoreFailure, OnStoreFailure, Origin, OriginCommands,
    OriginGroup, OriginLimits, OriginOwner, OwnedOrigins, PageConfig, PageLogo, PageTemplate,
    PageTexts, RateLimitHeaders, RateLimitServiceConfig, RateLimitStore, RoomConfig, RoomEvent,
    RoomId, RoomName, RoomOrigins, Route, SameSite, Secure, ServerConfig, SiteConfig, SiteName,
    SizeLimits, Statuses, Timeouts, TlsConfig, TokenSource, WithoutKey,
};
pub use notes::KnownKey;
pub use pem_error::PemError;
pub use problem::{Finding, Owner, Problem, Problems};
pub use rate_text::{RateText, RateTextError};
pub use room::{Accent, read_room_events, read_room_limits, read_room_rules};
pub use server::{TRUSTED_PROXY_HEADERS, data_center_name};
pub use shared_store::{StoreConfig, ValkeyConfig};

use crate::toml_file::{document, notes, problem, reader, source};
use limit::LimitRead;
use notes::Notes;
use reader::{Element, Table};
use room::RoomRead;
use site::{ServedHosts, SiteRead};
use source::Source;

/// Most rooms of a file. A room costs memory on every node and a loop of its own.
const ROOMS_MAX: usize = 1_000;
/// Most sites of a file: each has connections and health checks of its own.
const SITES_MAX: usize = 100;
/// Most limits of a file: every request is checked against each.
const LIMITS_MAX: usize = 200;

/// Configuration, with warnings about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The configuration.
    pub config: Config,
    /// Settings that are allowed but probably not meant, in the order of the file.
    pub warnings: Vec<Problem>,
}

/// Error of a text that is not a valid configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct RejectedConfig {
    /// Every mistake in the text.
    pub problems: Problems,
    /// The part that could be read in spite of the mistakes. Never start it: it is for a caller
    /// that checks the files it names, to report their mistakes in the same run. It lacks rooms
    /// without a required key, and what has been checked already: bypass rules and inline
    /// templates. `None` if the text is not TOML.
    pub readable: Option<Box<Config>>,
}

impl Config {
    /// Reads a config file. Messages call it `source_name`.
    ///
    /// # Errors
    ///
    /// [`Problems`] with every mistake of the text; only the first one if it is not TOML, because
    /// the rest cannot be read then.
    pub fn parse(source_name: &str, text: &str) -> Result<Parsed, Problems> {
        Self::parse_with(source_name, text, Checks::default())
    }

    /// Reads a config file like [`parse`](Self::parse), and checks bypass rules and templates.
    ///
    /// # Errors
    ///
    /// Like [`Config::parse`], with the mistakes that `checks` finds.
    pub fn parse_with(source_name: &str, text: &str, checks: Checks) -> Result<Parsed, Problems> {
        let parsed = Self::parse_partly(source_name, text, checks);
        parsed.map_err(|refused| refused.problems)
    }

    /// Reads a config file like [`parse_with`](Self::parse_with). The error has what could be read.
    ///
    /// # Errors
    ///
    /// [`RejectedConfig`], with the mistakes of [`Config::parse_with`].
    pub fn parse_partly(
        source_name: &str,
        text: &str,
        checks: Checks,
    ) -> Result<Parsed, RejectedConfig> {
        let source = Source::new(source_name, text);
        let mut notes = Notes::new(Some(source));
        match document::parse(&mut notes, text) {
            Some(document) => read(notes, &document, checks),
            None => Err(RejectedConfig {
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

    /// Reads flags like [`single_room`](Self::single_room), and checks bypass rules and templates.
    ///
    /// # Errors
    ///
    /// Like [`Config::single_room`], with the mistakes that `checks` finds.
    pub fn single_room_with(flags: &Flags, checks: Checks) -> Result<Parsed, Problems> {
        let read = read(Notes::new(None), &flags.table(), checks);
        read.map_err(|refused| refused.problems)
    }

    /// Returns every key of the file by its path, such as `room.cookie_attributes.secure`, for
    /// documentation.
    ///
    /// # Panics
    ///
    /// Never: the text that it reads is a constant.
    #[must_use]
    pub fn known_keys() -> BTreeMap<String, KnownKey> {
        // Keys of list elements are only known if the list has an element.
        let document = DeTable::parse(
            "server = { more_certificates = [{}] }\nsite = [{}]\n\
             room = [{ additional_routes = [{}], event = [{ steps = [{}] }], \
             page = { messages = [{}], nouns = [{}] } }]\n\
             limit = [{ routes = [{}], overrides = [{}] }]\njwt = {}\nmemcached = {}\nkafka = {}\n\
             gossip = {}",
        )
        .expect("the constant is legal TOML");
        let mut notes = Notes::new(None);
        read_document(&mut notes, document.get_ref(), Checks::default());
        notes.known
    }
}

fn read(
    mut notes: Notes,
    document: &DeTable<'_>,
    checks: Checks,
) -> Result<Parsed, RejectedConfig> {
    let FileRead {
        server,
        store,
        sites,
        mut rooms,
        limits,
        jwt,
        limit_stores,
        rate_limit_service,
    } = read_document(&mut notes, document, checks);
    clashes::check_sites(&mut notes, &sites);
    let served: Vec<_> = sites.iter().map(ServedHosts::from).collect();
    site::assign(&mut notes, &served, &mut rooms);
    clashes::check(&mut notes, &rooms);
    clashes::check_limits(&mut notes, &limits, &rooms);
    if let Some(store) = &store {
        clashes::check_limits_stores(&mut notes, &limits, store);
    }
    let by_line = |problem: &Problem| (problem.line, problem.column);
    notes.problems.sort_by_key(by_line);
    notes.warnings.sort_by_key(by_line);
    let sites = sites.into_iter().map(SiteRead::into_config);
    let sites: Vec<Option<SiteConfig>> = sites.collect();
    let is_whole = store.is_some()
        && sites.iter().all(Option::is_some)
        && rooms.iter().all(|room| room.config.is_some())
        && limits.iter().all(|limit| limit.config.is_some());
    let mut config = Config {
        server,
        store: store.unwrap_or(StoreConfig::Embedded),
        sites: sites.into_iter().flatten().collect(),
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
    config.rooms.iter_mut().for_each(drop_checked);
    Err(RejectedConfig {
        problems: Problems(notes.problems),
        readable: Some(Box::new(config)),
    })
}

/// Removes what was checked while it was read.
fn drop_checked(room: &mut RoomConfig) {
    room.bypass.clear();
    let is_text = |template: &mut _| matches!(template, PageTemplate::Html(_));
    for template in room.templates_mut() {
        template.take_if(is_text);
    }
}

/// Tables of a file, as far as they could be read.
struct FileRead {
    server: ServerConfig,
    store: Option<StoreConfig>,
    sites: Vec<SiteRead>,
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
    let mistakes = root.notes.problems.len();
    let sites = read_sites(&mut root);
    // Sites that could not be read were reported, and are not missing.
    let has_sites = !sites.is_empty() || root.notes.problems.len() > mistakes;
    let rooms = read_rooms(&mut root, checks, has_sites);
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
        sites,
        rooms,
        limits,
        jwt,
        limit_stores,
        rate_limit_service,
    }
}

fn read_sites(root: &mut Table<'_>) -> Vec<SiteRead> {
    let elements = root.elements("site", "tables, each as [[site]]");
    let elements = refuse_beyond(root, elements, "site", SITES_MAX);
    let sites = elements.iter();
    sites
        .map(|element| site::read(root.enter(element)))
        .collect()
}

fn read_rooms(root: &mut Table<'_>, checks: Checks, has_sites: bool) -> Vec<RoomRead> {
    let allowed = "at least one [[room]], [[site]] or [rate_limit_service]";
    let mistakes = root.notes.problems.len();
    let elements = root.elements("room", allowed);
    let needs_none = has_sites || root.has("rate_limit_service");
    if elements.is_empty() && !needs_none && root.notes.problems.len() == mistakes {
        let location = root.location("room");
        root.notes
            .report(&location, Finding::Missing, allowed, None);
    }
    let elements = refuse_beyond(root, elements, "room", ROOMS_MAX);
    let rooms = elements.iter();
    rooms
        .map(|element| room::read(root.enter(element), checks, has_sites))
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

/// Returns at most `most` elements, and reports if there are more.
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
        root.notes.report(&location, found, allowed, None);
        elements.truncate(most);
    }
    elements
}
