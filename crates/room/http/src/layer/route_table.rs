//! The route table: which room is behind a host and path, and what belongs to it here.

use std::sync::Arc;

use crate::page::CustomPage;
use anteroom_config::language::Language;
use anteroom_config::overrides::RoomOverrides;
use anteroom_config::{Config, Host, PageTemplate, RoomConfig, RoomName};
use anteroom_node::{Node, RoomHandle};
use anteroom_proxy::upstream::Plan;
use anteroom_room::decision::QueuePosition;
use anteroom_room::time::Timestamp;
use http::{HeaderMap, HeaderValue};

use super::counters::{Counters, RoomCounters};
use crate::bypass::BypassRules;
use crate::waiting::WaitingView;
use anteroom_proxy::body::Body;
use anteroom_proxy::language;
use anteroom_proxy::path::{Decoding, Readings};
use anteroom_proxy::request_context::{Upstream, VisitorLanguage};
use anteroom_proxy::route::{AmbiguousPathError, Routes, bare_host};

/// What is wrong with a room, beyond what the config file alone shows.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RoomProblem {
    /// Name of the room.
    pub room: String,
    /// Line in the config file; 0 = not known.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

/// Everything that is wrong with the rooms.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{} rooms cannot be served as configured", problems.len())]
pub struct RouteTableError {
    /// One by one.
    pub problems: Vec<RoomProblem>,
}

/// All rooms as requests find them.
pub(super) struct RouteTable {
    routes: Routes,
    /// How often origins are taken to decode a path.
    pub(super) decoding: Decoding,
    rooms: Vec<RoomRoute>,
    origins: Vec<(Host, Upstream)>,
}

/// One room as requests find it.
pub(super) struct RoomRoute {
    pub(super) room: Arc<RoomHandle>,
    /// What only the file sets: routes, cookie, commands.
    pub(super) config: Arc<RoomConfig>,
    pub(super) cookie_name: String,
    pub(super) name: HeaderValue,
    pub(super) bypass: BypassRules,
    pub(super) upstream: Upstream,
    pub(super) template: Option<CustomPage>,
    pub(super) counters: Arc<RoomCounters>,
}

/// Rooms as requests would find them, before a node runs them; nothing has changed yet.
pub(super) struct RouteTableDraft {
    routes: Routes,
    decoding: Decoding,
    rooms: Vec<RoomRouteDraft>,
}

struct RoomRouteDraft {
    room: RoomName,
    cookie_name: String,
    name: HeaderValue,
    bypass: BypassRules,
    upstream: Upstream,
    template: Option<CustomPage>,
}

impl RouteTableDraft {
    /// Everything about `config` that may be wrong is found out here.
    pub(super) fn new(config: &Config, plan: &Plan<Body>) -> Result<Self, RouteTableError> {
        let mut problems = Vec::new();
        let mut rooms = Vec::with_capacity(config.rooms.len());
        for room in &config.rooms {
            match RoomRouteDraft::new(room, plan) {
                Ok(room) => rooms.push(room),
                Err(more) => problems.extend(more),
            }
        }
        match routes(config, &mut problems) {
            Some(routes) if problems.is_empty() => Ok(Self {
                routes,
                decoding: Decoding::of(&config.server),
                rooms,
            }),
            _ => Err(RouteTableError { problems }),
        }
    }
}

impl RoomRouteDraft {
    fn new(config: &RoomConfig, plan: &Plan<Body>) -> Result<Self, Vec<RoomProblem>> {
        let bypass = compile(config)?;
        let group = plan.group(&config.name);
        let group = group.ok_or_else(|| vec![problem(config, "nobody knows its origins")])?;
        let template = template(config)?;
        let name = HeaderValue::from_str(config.name.as_str());
        let name = name.map_err(|_| vec![problem(config, "the name does not fit a header")])?;
        Ok(Self {
            room: config.name.clone(),
            cookie_name: config.cookie_name(),
            name,
            bypass,
            upstream: Upstream {
                group,
                speech: VisitorLanguage {
                    chosen: None,
                    default: config.page.language,
                },
            },
            template,
        })
    }
}

fn problem(config: &RoomConfig, message: &str) -> RoomProblem {
    RoomProblem {
        room: config.name.to_string(),
        line: 0,
        message: message.to_owned(),
    }
}

impl RouteTable {
    /// The rooms of a draft, all of which `node` runs; otherwise those that it does not.
    pub(super) fn new(
        node: &Node,
        draft: RouteTableDraft,
        counters: &Counters,
    ) -> Result<Self, RouteTableError> {
        let mut problems = Vec::new();
        let mut rooms = Vec::with_capacity(draft.rooms.len());
        for room in draft.rooms {
            match node.room(&room.room) {
                Some(handle) => rooms.push(RoomRoute::new(handle, room, counters)),
                None => problems.push(RoomProblem {
                    room: room.room.to_string(),
                    line: 0,
                    message: "the node does not run this room".to_owned(),
                }),
            }
        }
        if problems.is_empty() {
            Ok(Self {
                routes: draft.routes,
                decoding: draft.decoding,
                origins: origins(&rooms),
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
            problems.extend(template(room).err().into_iter().flatten());
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
        let found = self.routes.find(host, readings)?;
        Ok(found.and_then(|at| self.rooms.get(at)))
    }

    /// The room of this name, if it covers anything on this host.
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

    /// Where requests go that no room of this host covers: the origin of the first room in the
    /// file that has something on the host.
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

    pub(super) fn iter(&self) -> impl Iterator<Item = &RoomRoute> {
        self.rooms.iter()
    }
}

impl RoomRoute {
    fn new(room: Arc<RoomHandle>, draft: RoomRouteDraft, counters: &Counters) -> Self {
        Self {
            config: room.config(),
            counters: counters.of(&draft.room),
            room,
            cookie_name: draft.cookie_name,
            name: draft.name,
            bypass: draft.bypass,
            upstream: draft.upstream,
            template: draft.template,
        }
    }

    /// The language for whoever sent these headers.
    pub(super) fn language(&self, headers: &HeaderMap) -> Language {
        language::of_headers(headers, self.config.page.language)
    }

    /// What holds at this moment: operators change it while the room runs.
    pub(super) fn holds(&self) -> RoomInForce {
        RoomInForce {
            config: self.room.config(),
            overrides: self.room.overrides(),
            admitted_last_minute: self.room.admitted_last_minute(),
            now: self.room.wall_now(),
        }
    }
}

/// What holds in a room at a moment.
pub(super) struct RoomInForce {
    pub(super) config: Arc<RoomConfig>,
    overrides: Arc<RoomOverrides>,
    admitted_last_minute: Option<u32>,
    now: Timestamp,
}

impl RoomInForce {
    /// What a visitor at `place` is told.
    pub(super) fn view(&self, place: QueuePosition, language: Language) -> WaitingView<'_> {
        let name = self.config.name.as_str();
        let view = WaitingView {
            language,
            admitted_last_minute: self.admitted_last_minute,
            ..WaitingView::new(name, &self.config.rules, place, self.now)
        };
        view.with_overrides(&self.overrides)
    }
}

fn compile(config: &RoomConfig) -> Result<BypassRules, Vec<RoomProblem>> {
    BypassRules::compile(&config.bypass).map_err(|errors| {
        let problems = errors.into_iter().map(|error| RoomProblem {
            room: config.name.to_string(),
            line: error.line,
            message: error.to_string(),
        });
        problems.collect()
    })
}

fn template(config: &RoomConfig) -> Result<Option<CustomPage>, Vec<RoomProblem>> {
    let problem = |line, message| RoomProblem {
        room: config.name.to_string(),
        line,
        message,
    };
    match &config.page.template {
        None => Ok(None),
        Some(PageTemplate::Html(html)) => CustomPage::new(html).map(Some).map_err(|mistakes| {
            let told = mistakes.into_iter().map(|mistake| {
                let (line, message) = (mistake.line, mistake.message);
                problem(0, format!("page template, line {line}: {message}"))
            });
            told.collect()
        }),
        // Whoever puts the configuration together reads files, and tells why one cannot be read. A
        // room must not show our page in silence where it was given another.
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
                room: String::new(),
                line: 0,
                message: format!("a room's path can never be asked for: {error}"),
            });
            None
        }
    }
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
    fn an_unread_page_file_is_a_mistake_and_not_our_page() {
        let text = "[[room]]\nname = \"shop\"\norigin = \"http://127.0.0.1:3000\"\n\
                    total_active_users = 1\nnew_users_per_minute = 1\nbypass = []\n\
                    custom_page_file = \"page.html\"\n";
        let config = Config::parse("anteroom.toml", text).unwrap().config;
        let RouteTableError { problems } = RouteTable::check(&config).unwrap_err();
        let expected = RoomProblem {
            room: "shop".to_owned(),
            line: 7,
            message: "custom_page_file: page.html was not read".to_owned(),
        };
        assert_eq!(problems, [expected]);
    }
}
