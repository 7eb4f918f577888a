//! Origins of all sites and rooms across reloads. An origin that stays keeps its connections, its
//! health and its counters. Requests to a removed one complete as usual.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use anteroom_config::{
    Config, Http2, Origin as OriginConfig, OriginGroup, OriginOwner, OwnedOrigins,
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
use crate::upstream::stats::GroupStats;
use crate::upstream::trust::{self, Pem, Tls, TrustError};

/// Error of the origins of a site or a room.
#[derive(Debug, thiserror::Error)]
#[error("origins of {owner}")]
pub struct OriginsError {
    /// Site or room.
    pub owner: OriginOwner,
    /// Underlying error.
    #[source]
    pub source: TrustError,
}

/// Origins of all sites and rooms.
#[derive(Debug)]
pub struct Origins<B> {
    limits: Limits,
    changes: Arc<AtomicU64>,
    state: Mutex<State<B>>,
}

#[derive(Debug)]
struct State<B> {
    groups: BTreeMap<OriginOwner, Arc<Group<B>>>,
    /// Connections by origin: owners of the same origin share them.
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
    groups: BTreeMap<OriginOwner, Arc<Group<B>>>,
    hosts: BTreeMap<OriginOwner, String>,
    pools: Pools<B>,
}

impl<B> Plan<B> {
    /// Returns the origins of a site or a room.
    #[must_use]
    pub fn group(&self, owner: &OriginOwner) -> Option<Arc<Group<B>>> {
        self.groups.get(owner).map(Arc::clone)
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

    /// Plans groups for sites and rooms, and reuses existing origins where possible.
    ///
    /// # Errors
    ///
    /// [`OriginsError`] for each site and room whose origins cannot be used.
    pub fn plan<'a>(
        &self,
        owned: impl IntoIterator<Item = OwnedOrigins<'a>>,
    ) -> Result<Plan<B>, Vec<OriginsError>> {
        let mut errors = Vec::new();
        let mut plan = Plan {
            groups: BTreeMap::new(),
            hosts: BTreeMap::new(),
            pools: HashMap::new(),
        };
        let mut draft = self.draft();
        for OwnedOrigins { owner, group, host } in owned {
            match draft.group(&owner, group) {
                Ok(group) => {
                    let host = host.unwrap_or_default().to_owned();
                    plan.hosts.insert(owner.clone(), host);
                    plan.groups.insert(owner, group);
                }
                Err(source) => errors.push(OriginsError { owner, source }),
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
        for (owner, group) in &plan.groups {
            if group.check.is_none() {
                for origin in group.origins() {
                    origin.health.lock().forget_checks(now);
                }
            }
            check::begin(group, plan.hosts.get(owner).map_or("", String::as_str));
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

    /// Creates a group outside the config.
    ///
    /// # Errors
    ///
    /// [`TrustError`] if its origins cannot be used.
    pub fn single(&self, owned: OwnedOrigins<'_>) -> Result<Arc<Group<B>>, TrustError> {
        let mut draft = self.draft();
        let group = draft.group(&owned.owner, owned.group)?;
        let mut state = self.state.lock();
        state.pools = draft.pools;
        state.groups.insert(owned.owner, Arc::clone(&group));
        drop(state);
        check::begin(&group, owned.host.unwrap_or_default());
        Ok(group)
    }

    /// Returns the present stats by owner.
    #[must_use]
    pub fn stats(&self) -> BTreeMap<OriginOwner, GroupStats> {
        let groups = self.state.lock().groups.clone();
        let stats = groups.iter();
        stats
            .map(|(owner, group)| (owner.clone(), group.stats()))
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
    groups: BTreeMap<OriginOwner, Arc<Group<B>>>,
    pools: Pools<B>,
    trust: Trust,
}

impl<B: RequestBody + Sync> Draft<B> {
    fn group(
        &mut self,
        owner: &OriginOwner,
        config: &OriginGroup,
    ) -> Result<Arc<Group<B>>, TrustError> {
        let before = self.groups.get(owner).map(Arc::clone);
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
            owner.clone(),
            origins,
            config.health_check.clone(),
            retries.unwrap_or_default(),
            Arc::clone(&self.changes),
        ))
    }

    fn pool(
        &mut self,
        origin: &OriginConfig,
        config: &OriginGroup,
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
    for (owner, origins) in config.origins_mut() {
        let Some(path) = &mut origins.ca_file else {
            continue;
        };
        *path = folder.join(&*path);
        if let Err(error) = trust::check_ca_file(path) {
            let error_text = check::chain(&error);
            mistakes.push((path.clone(), format!("{owner}: {error_text}")));
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
