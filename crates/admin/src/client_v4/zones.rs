//! Zones: the sites of the file. Accounts, tokens and settings of a zone have one value each.

use anteroom_config::{Config, Host, SiteConfig};
use axum::http::Method;
use serde_json::{Value, json};

use super::envelope::{Mistakes, Refusal, Reply};
use super::{Answer, Call};
use crate::known_rooms::id_of;

/// Site of the file.
pub(super) struct Zone {
    pub(super) id: String,
    /// Name of the site.
    pub(super) name: String,
    hosts: Vec<String>,
}

impl Zone {
    fn of(site: &SiteConfig) -> Self {
        let hosts = site.hosts.iter().filter_map(Host::name);
        Self {
            id: id_of("site", site.name.as_str()),
            name: site.name.as_str().to_owned(),
            hosts: hosts.map(str::to_owned).collect(),
        }
    }

    pub(super) fn written(&self) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "status": "active",
            "paused": false,
            "type": "full",
            "name_servers": [],
            "account": account(),
        })
    }
}

fn account() -> Value {
    json!({ "id": id_of("account", "anteroom"), "name": "anteroom" })
}

pub(super) fn check_account(id: &str) -> Result<(), Refusal> {
    if id == id_of("account", "anteroom") {
        Ok(())
    } else {
        Err(Refusal::no_route())
    }
}

/// Returns all zones, in the order of the file.
pub(super) fn all(file: &Config) -> impl Iterator<Item = Zone> {
    file.sites.iter().map(Zone::of)
}

pub(super) fn list(call: &Call<'_>) -> Answer {
    let wanted = call.query.get("name").map(String::as_str);
    let file = call.inner.api_rooms.file();
    let zones = all(&file).filter(|zone| {
        wanted.is_none_or(|wanted| {
            zone.name == wanted || zone.hosts.iter().any(|host| host == wanted)
        })
    });
    let zones = zones.map(|zone| zone.written()).collect();
    call.page(zones)
}

pub(super) fn accounts(call: &Call<'_>) -> Answer {
    call.page(vec![account()])
}

pub(super) fn verify(call: &Call<'_>) -> Reply {
    let id = id_of("token", &call.who.token);
    Reply::of(json!({ "id": id, "status": "active" }))
}

/// Settings of a zone: verified crawlers never pass, because nothing here verifies them.
pub(super) fn settings(call: &Call<'_>) -> Answer {
    const BYPASS: &str = "search_engine_crawler_bypass";
    let is_change = call.method == Method::PUT || call.method == Method::PATCH;
    if is_change {
        let mut mistakes = Mistakes::default();
        match call.object()?.get(BYPASS) {
            None | Some(Value::Null | Value::Bool(false)) => {}
            Some(Value::Bool(true)) => {
                let message = "crawlers are not verified here; write a bypass rule instead";
                mistakes.add_missing_feature(BYPASS, message);
            }
            Some(_) => mistakes.add(BYPASS, format!("{BYPASS} has to be true or false")),
        }
        mistakes.check()?;
    } else {
        call.only_get()?;
    }
    Ok(Reply::of(json!({ BYPASS: false })))
}
