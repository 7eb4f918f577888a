//! Route table: finds the room of a host and path.

use std::sync::Arc;

use crate::page::CustomPage;
use anteroom_config::language::Language;
use anteroom_config::overrides::RoomOverrides;
use anteroom_config::{
    Config, EventName, EventNow, Host, OriginOwner, PageTemplate, RoomConfig, RoomId, RoomName,
};
use anteroom_node::{Node, RoomHandle};
use anteroom_proxy::upstream::{Group, Plan};
use anteroom_room::id::VisitorId;
use anteroom_room::queue_position::{HeldTurn, QueuePosition};
use anteroom_room::time::Timestamp;
use anteroom_room::visitor_code::VisitorCode;
use anteroom_store::wire::waiting_status::ActiveEvent;
use http::HeaderValue;

use super::counters::{Counters, RoomCounters};
use super::origins::OriginsOfRoom;
use crate::bypass::BypassRules;
use crate::waiting::{Brand, TurnView, WaitingView};
use anteroom_proxy::body::Body;
use anteroom_proxy::cookies;
use anteroom_proxy::header_view::HeaderView;
use anteroom_proxy::language;
use anteroom_proxy::path::{Decoding, Readings};
use anteroom_proxy::request_context::{Upstream, VisitorLanguage};
use anteroom_proxy::route::{AmbiguousPathError, Routes, bare_host};

/// Mistake of a site or a room that the config file alone does not show.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RoomProblem {
    /// Site or room; `None` if it is not known which.
    pub owner: Option<OriginOwner>,
    /// Line in the config file; 0 = not known.
    pub line: usize,
    /// Mistake, in words for the operator.
    pub message: String,
}

/// Error of sites and rooms that cannot be served, with all their mistakes.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{} mistakes in sites and rooms, which cannot be served as configured", problems.len())]
pub struct RouteTableError {
    /// Mistakes, in the order of the sites and rooms.
    pub problems: Vec<RoomProblem>,
}

/// Rooms by host and path.
pub(super) struct RouteTable {
    routes: Routes,
    /// Number of times that origins may decode a path.
    pub(super) decoding: Decoding,
    rooms: Vec<RoomRoute>,
    /// Origins by host, for requests without a room.
    origins: Vec<(Host, Upstream)>,
    /// Whether these are the origins of sites.
    has_sites: bool,
}

/// Room with all that a request needs of it.
pub(super) struct RoomRoute {
    pub(super) room: Arc<RoomHandle>,
    /// Configuration; only keys that operators cannot override are read: routes, cookie, commands.
    pub(super) config: Arc<RoomConfig>,
    pub(super) cookie_name: String,
    pub(super) name: HeaderValue,
    pub(super) bypass: BypassRules,
    pub(super) upstream: Upstream,
    template: Option<CustomPage>,
    event_templates: Vec<(EventName, CustomPage)>,
    pub(super) brand: Option<Brand>,
    pub(super) counters: Arc<RoomCounters>,
}

/// Route table before a node runs its rooms; not in effect.
pub(super) struct RouteTableDraft {
    routes: Routes,
    decoding: Decoding,
    rooms: Vec<RoomRouteDraft>,
    /// Origins of sites by host; empty in a file without sites.
    sites: Vec<(Host, Upstream)>,
}

struct RoomRouteDraft {
    id: RoomId,
    room: RoomName,
    cookie_name: String,
    name: HeaderValue,
    bypass: BypassRules,
    upstream: Upstream,
    template: Option<CustomPage>,
    event_templates: Vec<(EventName, CustomPage)>,
}

impl RouteTableDraft {
    /// Returns the draft for `config`, or all mistakes of its rooms.
    pub(super) fn new(config: &Config, plan: &Plan<Body>) -> Result<Self, RouteTableError> {
        let mut problems = Vec::new();
        let mut rooms = Vec::with_capacity(config.rooms.len());
        for room in &config.rooms {
            match RoomRouteDraft::new(room, plan) {
                Ok(room) => rooms.push(room),
                Err(more) => problems.extend(more),
            }
        }
        let sites = sites(config, plan);
        match routes(config, &mut problems) {
            Some(routes) if problems.is_empty() => Ok(Self {
                routes,
                decoding: Decoding::of(&config.server),
                rooms,
                sites,
            }),
            _ => Err(RouteTableError { problems }),
        }
    }
}

impl RoomRouteDraft {
    fn new(config: &RoomConfig, plan: &Plan<Body>) -> Result<Self, Vec<RoomProblem>> {
        let bypass = compile(config)?;
        let group = plan.group(&config.origin_owner());
        let group = group.ok_or_else(|| vec![problem(config, "its origins are unknown")])?;
        let (template, event_templates) = templates(config)?;
        let name = HeaderValue::from_str(config.name.as_str());
        let name = name.map_err(|_| vec![problem(config, "the name is not valid in a header")])?;
        Ok(Self {
            id: config.id.clone(),
            room: config.name.clone(),
            cookie_name: config.cookie_name(),
            name,
            bypass,
            upstream: upstream(group, config.page.language),
            template,
            event_templates,
        })
    }
}

fn upstream(group: Arc<Group<Body>>, language: Language) -> Upstream {
    Upstream {
        group,
        language: VisitorLanguage {
            chosen: None,
            default: language,
        },
    }
}

fn problem(config: &RoomConfig, message: &str) -> RoomProblem {
    RoomProblem {
        owner: Some(OriginOwner::Room(config.name.clone())),
        line: 0,
        message: message.to_owned(),
    }
}

impl RouteTable {
    /// Returns the table of a draft, or an error with the rooms that `node` does not run.
    pub(super) fn new(
        node: &Node,
        draft: RouteTableDraft,
        counters: &Counters,
    ) -> Result<Self, RouteTableError> {
        let mut problems = Vec::new();
        let mut rooms = Vec::with_capacity(draft.rooms.len());
        for room in draft.rooms {
            match node.room_of_id(&room.id) {
                Some(handle) => rooms.push(RoomRoute::new(handle, room, counters)),
                None => problems.push(RoomProblem {
                    owner: Some(OriginOwner::Room(room.room)),
                    line: 0,
                    message: "the node does not run this room".to_owned(),
                }),
            }
        }
        if problems.is_empty() {
            Ok(Self {
                routes: draft.routes,
                decoding: draft.decoding,
                has_sites: !draft.sites.is_empty(),
                origins: if draft.sites.is_empty() {
                    origins(&rooms)
                } else {
                    draft.sites
                },
                rooms,
            })
        } else {
            Err(RouteTableError { problems })
        }
    }

    pub(super) fn check(config: &Config) -> Result<(), RouteTableError> {
        let mut problems = Vec::new();
        for room in &config.rooms {
            problems.extend(compile(room).err().into_iter().flatten());
            problems.extend(templates(room).err().into_iter().flatten());
        }
        routes(config, &mut problems);
        if problems.is_empty() {
            Ok(())
        } else {
            Err(RouteTableError { problems })
        }
    }

    pub(super) fn find(
        &self,
        host: &str,
        readings: &Readings<'_>,
    ) -> Result<Option<&RoomRoute>, AmbiguousPathError> {
        let found = self.find_number(host, readings)?;
        Ok(found.map(|number| self.room(number)))
    }

    /// Finds the number of the room of a request.
    pub(super) fn find_number(
        &self,
        host: &str,
        readings: &Readings<'_>,
    ) -> Result<Option<usize>, AmbiguousPathError> {
        self.routes.find(host, readings)
    }

    /// Returns a room by its number.
    pub(super) fn room(&self, number: usize) -> &RoomRoute {
        &self.rooms[number]
    }

    /// Returns the room of this name, if it has a route on this host.
    pub(super) fn by_name(&self, name: &str, host: &str) -> Option<&RoomRoute> {
        let host = bare_host(host);
        let room = self.iter().find(|room| room.config.name.as_str() == name)?;
        let mut hosts = room.config.routes.iter().map(|route| &route.host);
        let is_here = hosts.any(|covered| match covered {
            Host::Any => true,
            Host::Name(name) => *name == *host,
        });
        is_here.then_some(room)
    }

    /// Returns the upstream for requests without a room: that of the site that serves the host. In
    /// a file without sites, it is that of the first room with a route on the host.
    pub(super) fn origin_of(&self, host: &str) -> Option<Upstream> {
        let host = bare_host(host);
        let by_name = self
            .origins
            .iter()
            .find(|(covered, _)| matches!(covered, Host::Name(name) if *name == *host));
        let any = || {
            self.origins
                .iter()
                .find(|(covered, _)| *covered == Host::Any)
        };
        by_name.or_else(any).map(|(_, upstream)| upstream.clone())
    }

    /// Whether a site serves this host.
    pub(super) fn has_site(&self, host: &str) -> bool {
        self.has_sites && self.origin_of(host).is_some()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &RoomRoute> {
        self.rooms.iter()
    }
}

impl RoomRoute {
    fn new(room: Arc<RoomHandle>, draft: RoomRouteDraft, counters: &Counters) -> Self {
        room.set_origin_counts(OriginsOfRoom::of(&draft.upstream));
        Self {
            brand: Brand::of(&room.config().page),
            config: room.config(),
            counters: counters.of(&draft.room),
            room,
            cookie_name: draft.cookie_name,
            name: draft.name,
            bypass: draft.bypass,
            upstream: draft.upstream,
            template: draft.template,
            event_templates: draft.event_templates,
        }
    }

    /// Returns the operator's page at present: that of the active event, or that of the room.
    pub(super) fn template(&self) -> Option<&CustomPage> {
        let find = |event: &EventNow| {
            let mut templates = self.event_templates.iter();
            templates.position(|(name, _)| name.as_str() == event.name)
        };
        let found = self.room.with_event(find).flatten();
        let of_event = found.and_then(|found| self.event_templates.get(found));
        let of_event = of_event.map(|(_, template)| template);
        of_event.or(self.template.as_ref())
    }

    /// Returns the language for the sender of these headers.
    pub(super) fn language(&self, headers: HeaderView<'_>) -> Language {
        language::of_headers(headers, self.config.page.language)
    }

    /// Returns the visitor's code: of the visitor with a new ticket, or of the ticket that came.
    pub(super) fn reference(
        &self,
        headers: HeaderView<'_>,
        new: Option<VisitorId>,
    ) -> Option<VisitorCode> {
        let visitor = new.or_else(|| {
            let tickets = cookies::values(headers, &self.cookie_name);
            let (visitor, _) = self.room.visitor_of(&tickets)?;
            Some(visitor)
        });
        visitor.map(VisitorCode::of)
    }

    /// Returns the present state of the room, which operators may change at run time.
    pub(super) fn current(&self) -> CurrentRoom {
        CurrentRoom {
            config: self.room.config(),
            overrides: self.room.overrides(),
            admitted_last_minute: self.room.admitted_last_minute(),
            event: self.room.with_event(|event| ActiveEvent {
                ends_at: event.times.ends_at,
                is_shuffled: event.is_shuffled,
            }),
            now: self.room.wall_now(),
        }
    }
}

/// Present state of a room: its configuration, overrides and time.
pub(super) struct CurrentRoom {
    pub(super) config: Arc<RoomConfig>,
    overrides: Arc<RoomOverrides>,
    admitted_last_minute: Option<u32>,
    event: Option<ActiveEvent>,
    now: Timestamp,
}

impl CurrentRoom {
    /// Returns the facts for the response to a visitor at `position`.
    pub(super) fn view(&self, position: QueuePosition, language: Language) -> WaitingView<'_> {
        let name = self.config.name.as_str();
        let view = WaitingView {
            language,
            admitted_last_minute: self.admitted_last_minute,
            page: Some(&self.config.page),
            event: self.event,
            ..WaitingView::new(name, &self.config.rules, position, self.now)
        };
        view.with_overrides(&self.overrides)
    }

    /// Returns the facts for the response to a visitor with a turn.
    pub(super) fn turn_view(&self, turn: HeldTurn, language: Language) -> TurnView {
        let rules = &self.config.rules;
        TurnView {
            turn,
            now: self.now,
            language,
            session_duration: rules.session_duration,
            is_renewed: rules.session_renewal,
        }
    }
}

fn compile(config: &RoomConfig) -> Result<BypassRules, Vec<RoomProblem>> {
    BypassRules::compile(&config.bypass).map_err(|errors| {
        let problems = errors.into_iter().map(|error| RoomProblem {
            owner: Some(OriginOwner::Room(config.name.clone())),
            line: error.line,
            message: error.to_string(),
        });
        problems.collect()
    })
}

/// Templates of a room: its own, and those of its events.
type Templates = (Option<CustomPage>, Vec<(EventName, CustomPage)>);

fn templates(config: &RoomConfig) -> Result<Templates, Vec<RoomProblem>> {
    let own = template(config, config.page.template.as_ref());
    let of_events = config.events.iter().map(|event| {
        let template = template(config, event.values.template.as_ref())?;
        Ok(template.map(|template| (event.name.clone(), template)))
    });
    let of_events: Vec<Result<_, Vec<RoomProblem>>> = of_events.collect();
    if own.is_ok() && of_events.iter().all(Result::is_ok) {
        let of_events = of_events.into_iter().flatten().flatten();
        return Ok((own?, of_events.collect()));
    }
    let of_events = of_events.into_iter().filter_map(Result::err).flatten();
    Err(own.err().into_iter().flatten().chain(of_events).collect())
}

fn template(
    config: &RoomConfig,
    template: Option<&PageTemplate>,
) -> Result<Option<CustomPage>, Vec<RoomProblem>> {
    let problem = |line, message| RoomProblem {
        owner: Some(OriginOwner::Room(config.name.clone())),
        line,
        message,
    };
    match template {
        None => Ok(None),
        Some(PageTemplate::Html(html)) => CustomPage::new(html).map(Some).map_err(|mistakes| {
            let problems = mistakes.into_iter().map(|mistake| {
                let (line, message) = (mistake.line, mistake.message);
                problem(0, format!("page template, line {line}: {message}"))
            });
            problems.collect()
        }),
        // The caller reads the files and reports why one cannot be read. Without its file a room
        // must not show the default page.
        Some(PageTemplate::File { path, line }) => {
            let message = format!("custom_page_file: {} was not read", path.display());
            Err(vec![problem(*line, message)])
        }
    }
}

fn routes(config: &Config, problems: &mut Vec<RoomProblem>) -> Option<Routes> {
    let routes = Routes::new(config.rooms.iter().map(|room| room.routes.as_slice()));
    match routes {
        Ok(routes) => Some(routes),
        Err(error) => {
            problems.push(RoomProblem {
                owner: None,
                line: 0,
                message: format!("a room's path never matches a request: {error}"),
            });
            None
        }
    }
}

fn sites(config: &Config, plan: &Plan<Body>) -> Vec<(Host, Upstream)> {
    let mut origins = Vec::new();
    for site in &config.sites {
        let Some(group) = plan.group(&site.origins().owner) else {
            continue;
        };
        let upstream = upstream(group, site.language);
        origins.extend(
            site.hosts
                .iter()
                .map(|host| (host.clone(), upstream.clone())),
        );
    }
    origins
}

fn origins(rooms: &[RoomRoute]) -> Vec<(Host, Upstream)> {
    let mut origins: Vec<(Host, Upstream)> = Vec::new();
    for room in rooms {
        for route in &room.config.routes {
            if !origins.iter().any(|(host, _)| *host == route.host) {
                origins.push((route.host.clone(), room.upstream.clone()));
            }
        }
    }
    origins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unread_page_file_is_a_mistake() {
        let text = "[[room]]\nname = \"shop\"\norigin = \"http://127.0.0.1:3000\"\n\
                    total_active_users = 1\nnew_users_per_minute = 1\nbypass = []\n\
                    custom_page_file = \"page.html\"\n";
        let config = Config::parse("anteroom.toml", text).unwrap().config;
        let RouteTableError { problems } = RouteTable::check(&config).unwrap_err();
        let expected = RoomProblem {
            owner: Some(OriginOwner::Room(RoomName::new("shop").unwrap())),
            line: 7,
            message: "custom_page_file: page.html was not read".to_owned(),
        };
        assert_eq!(problems, [expected]);
    }
}
