//! Meaning of a config file: checked values only.

use std::fmt;
use std::path::PathBuf;

use anteroom_room::rules::Rules;

use crate::language::Language;
use crate::limit_stores::LimitStores;

use super::room::Accent;
use super::shared_store::StoreConfig;

mod event;
mod limit;
mod origin;
mod rate_limit_service;
mod server;
mod site;

pub use event::{EventName, EventStep, EventValues, RoomEvent};
pub use limit::{
    Client, ClientKey, JwtConfig, JwtKeys, KeyPart, LegacyReset, LimitConfig, LimitHeaders,
    LimitName, LimitRoute, OnLimit, OnLimitStoreFailure, TokenSource, WithoutKey,
};
pub use origin::{
    HealthCheck, Http2, Origin, OriginGroup, OriginOwner, OwnedOrigins, RoomOrigins, Statuses,
};
pub use rate_limit_service::{
    OnStoreFailure, RateLimitHeaders, RateLimitServiceConfig, RateLimitStore,
};
pub use server::{OriginLimits, ServerConfig, SizeLimits, Timeouts, TlsConfig};
pub use site::{SiteConfig, SiteName};

/// A whole, checked configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Settings of the process.
    pub server: ServerConfig,
    /// Store that nodes share.
    pub store: StoreConfig,
    /// The sites, in the order of the file.
    pub sites: Vec<SiteConfig>,
    /// The rooms, in the order of the file.
    pub rooms: Vec<RoomConfig>,
    /// The rate limits, in the order of the file.
    pub limits: Vec<LimitConfig>,
    /// Rules for signed tokens, by which limits may distinguish clients.
    pub jwt: Option<JwtConfig>,
    /// Stores in which limits may be counted, besides the store of rooms.
    pub limit_stores: LimitStores,
    /// Envoy's rate limit service, if it runs here.
    pub rate_limit_service: Option<RateLimitServiceConfig>,
}

impl Config {
    /// Returns the origins of all sites and rooms that have some.
    pub fn origins(&self) -> impl Iterator<Item = OwnedOrigins<'_>> {
        let sites = self.sites.iter().map(SiteConfig::origins);
        sites.chain(self.rooms.iter().filter_map(RoomConfig::own_origins))
    }

    /// Returns the same origins to change them, each with its owner.
    pub fn origins_mut(&mut self) -> impl Iterator<Item = (OriginOwner, &mut OriginGroup)> {
        let sites = self.sites.iter_mut();
        let sites = sites.map(|site| (OriginOwner::Site(site.name.clone()), &mut site.origins));
        let rooms = self.rooms.iter_mut().filter_map(|room| {
            let owner = OriginOwner::Room(room.name.clone());
            match &mut room.origins {
                RoomOrigins::Own(group) => Some((owner, group)),
                RoomOrigins::Site(_) => None,
            }
        });
        sites.chain(rooms)
    }
}

/// A room's name: 1 to 64 of `A-Z a-z 0-9 - _`.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RoomName(pub(super) String);

impl RoomName {
    /// Returns a name, if `text` is one.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        ((1..=64).contains(&text.len()) && Self::is_name(text)).then(|| Self(text.to_owned()))
    }

    /// Whether `text` has only characters of names.
    pub(super) fn is_name(text: &str) -> bool {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RoomName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A room's id: 1 to 64 of `A-Z a-z 0-9 - _`. Its ledger, its tickets and its overrides belong to
/// the id, so a room may change its name.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RoomId(RoomName);

impl RoomId {
    /// Returns an id, if `text` is one.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        RoomName::new(text).map(Self)
    }

    /// Returns the id of a room in the file that states none: its name.
    #[must_use]
    pub fn of_name(name: &RoomName) -> Self {
        Self(name.clone())
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Display for RoomId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One `[[room]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct RoomConfig {
    /// Unique id.
    pub id: RoomId,
    /// Unique name.
    pub name: RoomName,
    /// Host and path of the room, then `additional_routes`.
    pub routes: Vec<Route>,
    /// Origins of admitted requests.
    pub origins: RoomOrigins,
    /// Rules of admission and of the queue.
    pub rules: Rules,
    /// Whether the room is switched off and everything passes untouched.
    pub suspended: bool,
    /// Whether a request whose `Accept` is exactly `application/json` gets a JSON response.
    pub json_response_enabled: bool,
    /// Page for waiting visitors.
    pub page: PageConfig,
    /// Status of a waiting page: 200, 202, 429 or 503.
    pub queueing_status_code: u16,
    /// Status of a waiting response to a request that is no navigation: 429 or 503.
    pub non_navigation_status_code: u16,
    /// Most networks from which a ticket may be used at one node within ten minutes, 2 to 16;
    /// `None` = any number.
    pub max_addresses_per_ticket: Option<u32>,
    /// The ticket's cookie.
    pub cookie: CookieSettings,
    /// Commands that are accepted from the origin's responses.
    pub origin_commands: OriginCommands,
    /// Rules for requests that pass untouched.
    pub bypass: Vec<BypassRule>,
    /// Scheduled changes; no two of them at once.
    pub events: Vec<RoomEvent>,
}

impl RoomConfig {
    /// Returns the room's own origins; `None` if those of its site are used.
    #[must_use]
    pub fn own_origins(&self) -> Option<OwnedOrigins<'_>> {
        let RoomOrigins::Own(group) = &self.origins else {
            return None;
        };
        let mut hosts = self.routes.iter().map(|route| &route.host);
        Some(OwnedOrigins {
            owner: OriginOwner::Room(self.name.clone()),
            group,
            host: hosts.find_map(Host::name),
        })
    }

    /// Returns the owner of the room's origins.
    #[must_use]
    pub fn origin_owner(&self) -> OriginOwner {
        match &self.origins {
            RoomOrigins::Own(_) => OriginOwner::Room(self.name.clone()),
            RoomOrigins::Site(site) => OriginOwner::Site(site.clone()),
        }
    }

    /// Returns the templates of the room's page and of those of its events.
    pub fn templates_mut(&mut self) -> impl Iterator<Item = &mut Option<PageTemplate>> {
        let of_events = self
            .events
            .iter_mut()
            .map(|event| &mut event.values.template);
        std::iter::once(&mut self.page.template).chain(of_events)
    }

    /// Returns a room that only decides about admission. It has no routes and no origins, and all
    /// other values are as if unset.
    #[must_use]
    pub fn of_rules(name: RoomName, rules: Rules, events: Vec<RoomEvent>) -> Self {
        Self {
            id: RoomId::of_name(&name),
            name,
            rules,
            events,
            ..Self::unread()
        }
    }

    /// Returns a room with no values read; its reader sets every field, or drops it.
    pub(super) fn unread() -> Self {
        Self {
            id: RoomId(RoomName(String::new())),
            name: RoomName(String::new()),
            routes: Vec::new(),
            origins: RoomOrigins::Own(OriginGroup {
                list: Vec::new(),
                http2: Http2::Never,
                ca_file: None,
                health_check: None,
            }),
            rules: Rules::default(),
            suspended: false,
            json_response_enabled: false,
            page: PageConfig::default(),
            queueing_status_code: 200,
            non_navigation_status_code: 429,
            max_addresses_per_ticket: None,
            cookie: CookieSettings {
                suffix: None,
                same_site: SameSite::Auto,
                secure: Secure::Auto,
            },
            origin_commands: OriginCommands { revoke: true },
            bypass: Vec::new(),
            events: Vec::new(),
        }
    }
}

/// Page for waiting visitors.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PageConfig {
    /// Language for browsers that accept none of ours.
    pub language: Language,
    /// The operator's own page; `None` = the built-in one.
    pub template: Option<PageTemplate>,
    /// Name of the site or the event; `None` = the host.
    pub title: Option<String>,
    /// Picture beside the title.
    pub logo: Option<PageLogo>,
    /// Colour of buttons, links and the progress bar.
    pub accent: Option<Accent>,
    /// Word for the site, such as "shop", in pages of the default language.
    pub noun: Option<String>,
    /// Word for the site in pages of other languages.
    pub nouns: PageTexts,
    /// Address of the page with help.
    pub help: Option<String>,
    /// Address of the page that names the owner of the site.
    pub imprint: Option<String>,
    /// Facts to read while waiting.
    pub facts: Vec<String>,
    /// Message to waiting visitors while operators have set none.
    pub messages: PageTexts,
}

impl PageConfig {
    /// Returns the operator's word for the site in a language; `None` if there is none in it.
    #[must_use]
    pub fn noun_in(&self, language: Language) -> Option<&str> {
        let of_default = self.noun.as_deref().filter(|_| language == self.language);
        self.nouns.of(language).or(of_default)
    }
}

/// Text in several languages.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PageTexts(pub Vec<(Language, String)>);

impl PageTexts {
    /// Returns the text in a language; `None` if there is none in it.
    #[must_use]
    pub fn of(&self, language: Language) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| *known == language);
        found.map(|(_, text)| &**text)
    }
}

/// Picture of the page.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PageLogo {
    /// `data:` address with the whole picture.
    Data(String),
    /// The file that holds it, as it was typed.
    File {
        /// Path of the file.
        path: PathBuf,
        /// Line in the config file, for messages; 0 = not from a file.
        line: usize,
    },
}

/// Page that the operator wrote, as a Mustache template.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PageTemplate {
    /// The template itself.
    Html(String),
    /// The file that holds it, as it was typed.
    File {
        /// Path of the file.
        path: PathBuf,
        /// Line in the config file, for messages; 0 = not from a file.
        line: usize,
    },
}

/// Host and path that a room covers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Route {
    /// Host.
    pub host: Host,
    /// Path prefix, normalised, starts with `/`; covers whole segments.
    pub path: String,
}

impl Route {
    /// Whether some request is covered by both routes.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        let is_on_one_host =
            self.host == other.host || [&self.host, &other.host].contains(&&Host::Any);
        is_on_one_host
            && (is_at_or_below(&self.path, &other.path) || is_at_or_below(&other.path, &self.path))
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.host.name().unwrap_or("any host");
        write!(f, "{host} {}", self.path)
    }
}

/// Whether `path` is `top` or below it, by whole segments; both are normalised.
fn is_at_or_below(path: &str, top: &str) -> bool {
    let rest = path.strip_prefix(top.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Host that a route covers.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Host {
    /// Any host (`host` was left out).
    Any,
    /// One host: lower case, no port, no trailing dot.
    Name(String),
}

impl Host {
    /// Returns the name; `None` for any host.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Any => None,
            Self::Name(name) => Some(name),
        }
    }
}

/// The ticket's cookie.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CookieSettings {
    /// Suffix after `__anteroom_`; `None` = 8 hex digits of the room's name.
    pub suffix: Option<String>,
    /// `SameSite`.
    pub same_site: SameSite,
    /// `Secure`.
    pub secure: Secure,
}

/// `cookie_attributes.samesite`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SameSite {
    /// `Lax`.
    #[default]
    Auto,
    /// `Lax`.
    Lax,
    /// `None`; needs `Secure`.
    None,
    /// `Strict`.
    Strict,
}

/// `cookie_attributes.secure`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Secure {
    /// Sent if the visitor came by HTTPS (a trusted proxy reports it).
    #[default]
    Auto,
    /// Sent with every cookie.
    Always,
    /// Sent with no cookie.
    Never,
}

/// Commands that are accepted from the origin's responses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct OriginCommands {
    /// `Anteroom-Command: revoke` ends the visitor's session.
    pub revoke: bool,
}

/// Expression for requests that pass untouched.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BypassRule {
    /// CEL, over the variables that the gateway documents.
    pub expression: String,
    /// Line in the file, for messages; 0 = not from a file.
    pub line: usize,
}
