//! `[[site]]`: hosts and their origins. Finds the sites of rooms without origins of their own.

use std::collections::HashMap;

use crate::kind::{Choice, InvalidValue, Text};
use crate::language::{LANGUAGES, Language};
use crate::model::{Host, OriginGroup, RoomOrigins, SiteConfig, SiteName};
use crate::notes::{Located, Location, Notes};
use crate::origins;
use crate::problem::{Finding, Owner};
use crate::reader::{Key, Table};
use crate::room::RoomRead;
use crate::room::keys::{A_HOST, host};

/// Most hosts of a site.
const HOSTS_MAX: usize = 100;

const NAME: Key<Text<SiteName>> = Key {
    name: "name",
    kind: Text {
        allowed: "1 to 64 of A-Z a-z 0-9 - _",
        read: |text| SiteName::new(text).ok_or(InvalidValue::PLAIN),
    },
    default: None,
};
const HOST: Key<Text<Host>> = host_key("host");
const HOSTS: Key<Text<Host>> = host_key("hosts");
const fn host_key(name: &'static str) -> Key<Text<Host>> {
    Key {
        name,
        kind: Text {
            allowed: A_HOST,
            read: |text| host(text, "leave the path out: a site has all paths"),
        },
        default: None,
    }
}

const LANGUAGE: Key<Choice<Language>> = Key {
    name: "default_language",
    kind: Choice(LANGUAGES),
    default: Some("\"en\""),
};

/// A site as far as it could be read.
pub(super) struct SiteRead {
    pub(super) name: Option<Located<SiteName>>,
    hosts: Vec<Located<Host>>,
    origins: Option<OriginGroup>,
    language: Language,
}

/// Reads one `[[site]]`.
pub(super) fn read(mut table: Table<'_>) -> SiteRead {
    let name = table.required(&NAME);
    if let Some(name) = &name {
        table.name_owner(Owner::Site(name.to_string()));
    }
    let name = name.map(|value| Located {
        value,
        location: table.location(NAME.name),
    });
    let hosts = read_hosts(&mut table);
    let origins = origins::read(&mut table);
    let language = table.defaulted(&LANGUAGE);
    table.finish();
    SiteRead {
        name,
        hosts,
        origins,
        language,
    }
}

/// Reads one host under `host`, several under `hosts`, or any.
fn read_hosts(table: &mut Table<'_>) -> Vec<Located<Host>> {
    let mistakes = table.notes.problems.len();
    let alone = table.optional(&HOST);
    let several = table.list(&HOSTS);
    let location = table.location(HOSTS.name);
    match (alone, several) {
        (Some(_), Some(_)) => {
            let finding = Finding::Remark("found together with host".to_owned());
            table
                .notes
                .report(&location, finding, "one of the two", None);
            Vec::new()
        }
        (Some(value), None) => {
            let location = table.location(HOST.name);
            vec![Located { value, location }]
        }
        (None, Some(hosts)) => {
            let is_good = table.notes.problems.len() == mistakes;
            if is_good && !(1..=HOSTS_MAX).contains(&hosts.len()) {
                let found = Finding::Value(format!("{} hosts", hosts.len()));
                let allowed = format!("1 to {HOSTS_MAX} hosts, or none of the two keys");
                table.notes.report(&location, found, allowed, None);
            }
            hosts
        }
        // A host that could not be read is not any host.
        (None, None) if table.notes.problems.len() > mistakes => Vec::new(),
        (None, None) => {
            let location = table.location(NAME.name);
            let value = Host::Any;
            vec![Located { value, location }]
        }
    }
}

impl SiteRead {
    /// Returns the site; `None` after a mistake in a required key.
    pub(super) fn into_config(self) -> Option<SiteConfig> {
        let hosts = self.hosts.into_iter().map(|host| host.value).collect();
        Some(SiteConfig {
            name: self.name?.value,
            hosts,
            origins: self.origins?,
            language: self.language,
        })
    }
}

/// Reports hosts that two sites claim.
pub(super) fn check_hosts(notes: &mut Notes, sites: &[SiteRead]) {
    let mut lines: HashMap<&Host, usize> = HashMap::new();
    for Located { value, location } in sites.iter().flat_map(|site| &site.hosts) {
        if let Some(first) = lines.get(value) {
            let host = described(value);
            let finding = format!("the site on line {first} serves {host} already");
            notes.report(location, Finding::Remark(finding), "", None);
        } else {
            lines.insert(value, location.line);
        }
    }
}

/// Site as rooms see it.
pub(super) struct ServedHosts<'a> {
    /// `None` if it could not be read.
    name: Option<&'a SiteName>,
    hosts: Vec<&'a Host>,
}

impl<'a> From<&'a SiteRead> for ServedHosts<'a> {
    fn from(site: &'a SiteRead) -> Self {
        Self {
            name: site.name.as_ref().map(|name| &name.value),
            hosts: site.hosts.iter().map(|host| &host.value).collect(),
        }
    }
}

impl<'a> From<&'a SiteConfig> for ServedHosts<'a> {
    fn from(site: &'a SiteConfig) -> Self {
        Self {
            name: Some(&site.name),
            hosts: site.hosts.iter().collect(),
        }
    }
}

/// Gives each room without origins of its own its site: the one that serves all its hosts.
pub(super) fn assign(notes: &mut Notes, sites: &[ServedHosts<'_>], rooms: &mut [RoomRead]) {
    for room in rooms {
        let Some(location) = room.needs_site.take() else {
            continue;
        };
        // Without a site, the file is rejected for a mistake that was reported.
        if let Some(site) = site_of(notes, sites, room, &location)
            && let Some(config) = &mut room.config
        {
            config.origins = RoomOrigins::Site(site);
        }
    }
}

fn site_of(
    notes: &mut Notes,
    sites: &[ServedHosts<'_>],
    room: &RoomRead,
    location: &Location,
) -> Option<SiteName> {
    let mut found: Option<(&ServedHosts<'_>, &Host)> = None;
    let mut is_whole = true;
    for route in &room.routes {
        let host = &route.value.host;
        let (location, finding, hint) = match (serving(sites, host), found) {
            (Some(site), Some((first, of))) if !std::ptr::eq(first, site) => (
                location,
                format!(
                    "{} and {} are served by different sites",
                    described(of),
                    described(host)
                ),
                "make a room for each, or give the room an origin of its own",
            ),
            (Some(site), _) => {
                found = Some((site, host));
                continue;
            }
            (None, _) if *host == Host::Any => (
                location,
                "it covers every host, and so several sites".to_owned(),
                "give it the host of one site, or an origin of its own",
            ),
            (None, _) => (
                &route.location,
                format!("no [[site]] serves {}", described(host)),
                "add the host to a site, or give the room an origin of its own",
            ),
        };
        is_whole = false;
        let hint = Some(hint.to_owned());
        notes.report(location, Finding::Remark(finding), "", hint);
    }
    let (site, _) = found.filter(|_| is_whole)?;
    site.name.cloned()
}

/// Returns the site that serves a host. If there is only one site, it serves a room on any host.
fn serving<'a, 's>(sites: &'a [ServedHosts<'s>], host: &Host) -> Option<&'a ServedHosts<'s>> {
    let has = |site: &ServedHosts<'_>, host: &Host| site.hosts.contains(&host);
    let named = sites.iter().find(|site| has(site, host));
    let any = || sites.iter().find(|site| has(site, &Host::Any));
    let only = || match sites {
        [site] if *host == Host::Any => Some(site),
        _ => None,
    };
    named.or_else(any).or_else(only)
}

fn described(host: &Host) -> &str {
    match host {
        Host::Any => "any host",
        Host::Name(name) => name,
    }
}
