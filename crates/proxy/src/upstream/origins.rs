//! Origins of all rooms across reloads. An origin that stays keeps its connections, health and
//! counters. Requests to a removed one complete as usual.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use anteroom_config::{
    Config, Host, Http2, Origin as OriginConfig, RoomConfig, RoomName, RoomOrigins,
};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::upstream::check;
use crate::upstream::connect::Target;
use crate::upstream::group::Group;
use crate::upstream::limits::Limits;
use crate::upstream::origin::Origin;
use crate::upstream::pool::Pool;
use crate::upstream::request::RequestBody;
use crate::upstream::stats::RoomOriginStats;
use crate::upstream::trust::{self, Pem, Tls, TrustError};

/// Error of a room's origins.
#[derive(Debug, thiserror::Error)]
#[error("origins of room \"{room}\"")]
pub struct OriginsError {
    /// Name of the room.
    pub room: RoomName,
    /// Underlying error.
    #[source]
    pub source: TrustError,
}

/// Origins of all rooms.
#[derive(Debug)]
pub struct Origins<B> {
    limits: Limits,
    changes: Arc<AtomicU64>,
    state: Mutex<State<B>>,
}

#[derive(Debug)]
struct State<B> {
    groups: BTreeMap<RoomName, Arc<Group<B>>>,
    /// Connections by origin: rooms with the same origin share them.
    pools: Pools<B>,
}

type Pools<B> = HashMap<PoolKey, Weak<Pool<B>>>;

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct PoolKey {
    origin: OriginConfig,
    http2: Http2,
    pem: Pem,
}

/// Planned origins, for [`Origins::commit`].
#[derive(Debug)]
pub struct Plan<B> {
    groups: BTreeMap<RoomName, Arc<Group<B>>>,
    hosts: BTreeMap<RoomName, String>,
    pools: Pools<B>,
}

impl<B> Plan<B> {
    /// Returns the origins of a room.
    #[must_use]
    pub fn group(&self, room: &RoomName) -> Option<Arc<Group<B>>> {
        self.groups.get(room).map(Arc::clone)
    }
}

impl<B: RequestBody + Sync> Origins<B> {
    /// Creates an empty set of origins.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            changes: Arc::default(),
            state: Mutex::new(State {
                groups: BTreeMap::new(),
                pools: HashMap::new(),
            }),
        }
    }

    /// Plans groups for `rooms`, and reuses existing origins where possible.
    ///
    /// # Errors
    ///
    /// [`OriginsError`] for each room whose origins cannot be used.
    pub fn plan(&self, rooms: &[RoomConfig]) -> Result<Plan<B>, Vec<OriginsError>> {
        let mut errors = Vec::new();
        let mut plan = Plan {
            groups: BTreeMap::new(),
            hosts: BTreeMap::new(),
            pools: HashMap::new(),
        };
        let mut draft = self.draft();
        for room in rooms {
            match draft.group(&room.name, &room.origins) {
                Ok(group) => {
                    plan.groups.insert(room.name.clone(), group);
                    plan.hosts.insert(room.name.clone(), host_of(room));
                }
                Err(source) => errors.push(OriginsError {
                    room: room.name.clone(),
                    source,
                }),
            }
        }
        plan.pools = draft.pools;
        if errors.is_empty() {
            Ok(plan)
        } else {
            Err(errors)
        }
    }

    /// Applies a plan and starts its checks.
    ///
    /// # Panics
    ///
    /// If it is called outside a tokio runtime and there are checks.
    pub fn commit(&self, plan: Plan<B>) {
        let now = Instant::now();
        // Before the new checks: a pending old check must not override their results.
        for group in self.state.lock().groups.values() {
            group.retire();
        }
        for (room, group) in &plan.groups {
            if group.check.is_none() {
                for origin in group.origins() {
                    origin.health.lock().forget_checks(now);
                }
            }
            check::begin(group, plan.hosts.get(room).map_or("", String::as_str));
        }
        // The balancers were made for the plan and must learn of the reset health.
        self.changes.fetch_add(1, Relaxed);
        let mut state = self.state.lock();
        state.pools = plan.pools;
        state.pools.retain(|_, pool| pool.strong_count() > 0);
        let before = std::mem::replace(&mut state.groups, plan.groups);
        drop(state);
        // The old groups end here, with their checks, once their last request has ended.
        drop(before);
    }

    /// Creates a group for a room outside the config.
    ///
    /// # Errors
    ///
    /// [`TrustError`] if its origins cannot be used.
    pub fn single(
        &self,
        room: &RoomName,
        origins: &RoomOrigins,
    ) -> Result<Arc<Group<B>>, TrustError> {
        let mut draft = self.draft();
        let group = draft.group(room, origins)?;
        let mut state = self.state.lock();
        state.pools = draft.pools;
        state.groups.insert(room.clone(), Arc::clone(&group));
        drop(state);
        check::begin(&group, "");
        Ok(group)
    }

    /// Returns the present stats by room.
    #[must_use]
    pub fn stats(&self) -> BTreeMap<RoomName, RoomOriginStats> {
        let groups = self.state.lock().groups.clone();
        let stats = groups.iter();
        stats
            .map(|(room, group)| (room.clone(), group.stats()))
            .collect()
    }

    /// Copies the present state as the base of a plan: files are read meanwhile, without a lock.
    fn draft(&self) -> Draft<B> {
        let state = self.state.lock();
        Draft {
            limits: self.limits,
            changes: Arc::clone(&self.changes),
            groups: state.groups.clone(),
            pools: state.pools.clone(),
            trust: Trust::default(),
        }
    }
}

/// Base of a plan.
struct Draft<B> {
    limits: Limits,
    changes: Arc<AtomicU64>,
    /// Present groups.
    groups: BTreeMap<RoomName, Arc<Group<B>>>,
    pools: Pools<B>,
    trust: Trust,
}

impl<B: RequestBody + Sync> Draft<B> {
    fn group(
        &mut self,
        room: &RoomName,
        config: &RoomOrigins,
    ) -> Result<Arc<Group<B>>, TrustError> {
        let before = self.groups.get(room).map(Arc::clone);
        let mut origins = Vec::with_capacity(config.list.len());
        for origin in &config.list {
            let pool = self.pool(origin, config)?;
            let url = origin.to_string();
            let known = before.as_ref().and_then(|group| {
                let mut known = group.origins().iter();
                known.find(|known| known.url == url && Arc::ptr_eq(&known.pool, &pool))
            });
            origins.push(match known {
                Some(known) => Arc::clone(known),
                None => Arc::new(Origin::new(url, pool)),
            });
        }
        let retries = before.map(|group| Arc::clone(&group.retries));
        Ok(Group::new(
            room.clone(),
            origins,
            config.health_check.clone(),
            retries.unwrap_or_default(),
            Arc::clone(&self.changes),
        ))
    }

    fn pool(
        &mut self,
        origin: &OriginConfig,
        config: &RoomOrigins,
    ) -> Result<Arc<Pool<B>>, TrustError> {
        let pem = match &config.ca_file {
            Some(path) if origin.has_tls() => Some(self.trust.text(path)?),
            _ => None,
        };
        let key = PoolKey {
            origin: origin.clone(),
            http2: config.http2,
            pem,
        };
        if let Some(pool) = self.pools.get(&key).and_then(Weak::upgrade) {
            return Ok(pool);
        }
        let tls = if origin.has_tls() {
            Some(self.trust.tls(config.ca_file.as_ref(), &key.pem)?)
        } else {
            None
        };
        let pool = Pool::new(
            Target::new(origin, config.http2, tls, self.limits.connect)?,
            self.limits,
        );
        self.pools.insert(key, Arc::downgrade(&pool));
        Ok(pool)
    }
}

/// Resolves each `origin_ca_file` relative to the folder of the config file. Returns every file
/// that cannot be used, with its error.
pub fn find_ca_files(config: &mut Config, config_file: &Path) -> Vec<(PathBuf, String)> {
    let folder = config_file.parent().unwrap_or_else(|| Path::new(""));
    let mut mistakes = Vec::new();
    for room in &mut config.rooms {
        let Some(path) = &mut room.origins.ca_file else {
            continue;
        };
        *path = folder.join(&*path);
        if let Err(error) = trust::check_ca_file(path) {
            let (name, error_text) = (&room.name, check::chain(&error));
            mistakes.push((path.clone(), format!("room \"{name}\": {error_text}")));
        }
    }
    mistakes
}

/// Certificates that were read for one plan, each file once.
#[derive(Default)]
struct Trust {
    texts: HashMap<PathBuf, Arc<[u8]>>,
    tls: HashMap<Option<PathBuf>, Arc<Tls>>,
}

impl Trust {
    fn text(&mut self, path: &PathBuf) -> Result<Arc<[u8]>, TrustError> {
        if let Some(text) = self.texts.get(path) {
            return Ok(Arc::clone(text));
        }
        let text = trust::read(path)?;
        self.texts.insert(path.clone(), Arc::clone(&text));
        Ok(text)
    }

    fn tls(&mut self, path: Option<&PathBuf>, pem: &Pem) -> Result<Arc<Tls>, TrustError> {
        if let Some(tls) = self.tls.get(&path.cloned()) {
            return Ok(Arc::clone(tls));
        }
        let trusted = match (path, pem) {
            (Some(path), Some(text)) => trust::trusted_by_file(path, text)?,
            _ => trust::trusted_by_machine()?,
        };
        let tls = Arc::new(Tls::new(trusted)?);
        self.tls.insert(path.cloned(), Arc::clone(&tls));
        Ok(tls)
    }
}

/// Returns the host of the checks: the room's host, if it names one.
fn host_of(room: &RoomConfig) -> String {
    let mut hosts = room.routes.iter().map(|route| &route.host);
    let named = hosts.find_map(|host| match host {
        Host::Name(name) => Some(name.clone()),
        Host::Any => None,
    });
    named.unwrap_or_default()
}
