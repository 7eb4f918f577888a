//! The origins of all rooms, over reloads: connections, health and counts of an origin that stays
//! are kept; requests that are on their way to one that goes end as they would have.

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

/// Why the origins of a room cannot be spoken to.
#[derive(Debug, thiserror::Error)]
#[error("origins of room \"{room}\"")]
pub struct OriginsError {
    /// Which room.
    pub room: RoomName,
    /// Why.
    #[source]
    pub source: TrustError,
}

/// The origins of all rooms.
#[derive(Debug)]
pub struct Origins<B> {
    limits: Limits,
    changes: Arc<AtomicU64>,
    held: Mutex<Held<B>>,
}

#[derive(Debug)]
struct Held<B> {
    groups: BTreeMap<RoomName, Arc<Group<B>>>,
    /// Rooms with the same origin share its connections.
    pools: Pools<B>,
}

type Pools<B> = HashMap<PoolKey, Weak<Pool<B>>>;

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct PoolKey {
    origin: OriginConfig,
    http2: Http2,
    pem: Pem,
}

/// Origins as they would be; nothing has changed yet.
#[derive(Debug)]
pub struct Plan<B> {
    groups: BTreeMap<RoomName, Arc<Group<B>>>,
    hosts: BTreeMap<RoomName, String>,
    pools: Pools<B>,
}

impl<B> Plan<B> {
    /// The origins of a room.
    #[must_use]
    pub fn group(&self, room: &RoomName) -> Option<Arc<Group<B>>> {
        self.groups.get(room).map(Arc::clone)
    }
}

impl<B: RequestBody + Sync> Origins<B> {
    /// No origins yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            changes: Arc::default(),
            held: Mutex::new(Held {
                groups: BTreeMap::new(),
                pools: HashMap::new(),
            }),
        }
    }

    /// Makes groups for `rooms`, from what there is already as far as possible.
    ///
    /// # Errors
    ///
    /// [`OriginsError`] for each room whose origins cannot be spoken to.
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

    /// Lets a plan hold from now on, and begins its checks.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime, if there are checks.
    pub fn commit(&self, plan: Plan<B>) {
        let now = Instant::now();
        // Before the new checks: an old one that is still under way must not say the last word.
        for group in self.held.lock().groups.values() {
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
        // Their balancers were made for the plan: what was forgotten since is news to them.
        self.changes.fetch_add(1, Relaxed);
        let mut held = self.held.lock();
        held.pools = plan.pools;
        held.pools.retain(|_, pool| pool.strong_count() > 0);
        let before = std::mem::replace(&mut held.groups, plan.groups);
        drop(held);
        // They end here, with their checks, once their last request has ended.
        drop(before);
    }

    /// One group for one room that is in no file.
    ///
    /// # Errors
    ///
    /// [`TrustError`] if its origins cannot be spoken to.
    pub fn single(
        &self,
        room: &RoomName,
        origins: &RoomOrigins,
    ) -> Result<Arc<Group<B>>, TrustError> {
        let mut draft = self.draft();
        let group = draft.group(room, origins)?;
        let mut held = self.held.lock();
        held.pools = draft.pools;
        held.groups.insert(room.clone(), Arc::clone(&group));
        drop(held);
        check::begin(&group, "");
        Ok(group)
    }

    /// What there is to see now, by room.
    #[must_use]
    pub fn stats(&self) -> BTreeMap<RoomName, RoomOriginStats> {
        let groups = self.held.lock().groups.clone();
        let stats = groups.iter();
        stats
            .map(|(room, group)| (room.clone(), group.stats()))
            .collect()
    }

    /// Copies of what there is, to plan on: files are read meanwhile, and nobody waits for that.
    fn draft(&self) -> Draft<B> {
        let held = self.held.lock();
        Draft {
            limits: self.limits,
            changes: Arc::clone(&self.changes),
            groups: held.groups.clone(),
            pools: held.pools.clone(),
            trust: Trust::default(),
        }
    }
}

/// What a plan is made from.
struct Draft<B> {
    limits: Limits,
    changes: Arc<AtomicU64>,
    /// Those that hold until then.
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

/// Makes each `origin_ca_file` one that is found from anywhere (paths are meant relative to the
/// folder of the config file), and returns every file that cannot be used, with what is wrong with
/// it.
pub fn find_ca_files(config: &mut Config, config_file: &Path) -> Vec<(PathBuf, String)> {
    let folder = config_file.parent().unwrap_or_else(|| Path::new(""));
    let mut mistakes = Vec::new();
    for room in &mut config.rooms {
        let Some(path) = &mut room.origins.ca_file else {
            continue;
        };
        *path = folder.join(&*path);
        if let Err(error) = trust::check_ca_file(path) {
            let (name, why) = (&room.name, check::chain(&error));
            mistakes.push((path.clone(), format!("room \"{name}\": {why}")));
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

/// Which host checks ask for: what visitors ask for, if the room says so.
fn host_of(room: &RoomConfig) -> String {
    let mut hosts = room.routes.iter().map(|route| &route.host);
    let named = hosts.find_map(|host| match host {
        Host::Name(name) => Some(name.clone()),
        Host::Any => None,
    });
    named.unwrap_or_default()
}
