//! Bypass rules on the wire. Every call returns all rules of the room.

use anteroom_config::api_rooms::{ApiRoom, ApiRule};
use anteroom_config::time_text::rfc3339_millis;
use anteroom_room::time::Timestamp;
use axum::http::Method;
use serde_json::{Map, Value, json};

use super::cel;
use super::envelope::{Mistakes, RULES, Refusal, Reply};
use super::rooms::{change_room, new_id};
use super::{Answer, Call};
use crate::api_rooms::RoomRefusal;
use crate::known_rooms::Room;

/// The only action of a rule.
const ACTION: &str = "bypass_waiting_room";

fn written(rules: &[ApiRule]) -> Value {
    let rule = |rule: &ApiRule| {
        let at = (rule.modified_at > 0).then(|| rfc3339_millis(Timestamp(rule.modified_at)));
        json!({
            "id": rule.id,
            "version": rule.version.to_string(),
            "action": ACTION,
            "expression": rule.expression,
            "description": rule.description,
            "enabled": rule.enabled,
            "last_updated": at,
        })
    };
    rules.iter().map(rule).collect()
}

pub(super) async fn all(call: &Call<'_>, room: &Room) -> Answer {
    if call.method == Method::POST {
        // The schema has one rule; some clients send a list of one.
        let body = match &call.body {
            Value::Array(rules) if rules.len() == 1 => rules.first().unwrap_or(&Value::Null),
            body => body,
        };
        let rule = new_rule(body, "")?;
        let has_position = body.get("position").is_some_and(|place| !place.is_null());
        let mut reply = change(call, room, "rule create", |rules, at| {
            rules.push(ApiRule {
                modified_at: at,
                ..rule.clone()
            });
            Ok(())
        })
        .await?;
        if has_position {
            let message = "position: ignored in a new rule, which is the last one";
            reply.messages.push(message.to_owned());
        }
        return Ok(reply);
    }
    if call.method == Method::PUT {
        let Value::Array(bodies) = &call.body else {
            return Err(Refusal::body(
                "the body has to be a list of rules".to_owned(),
            ));
        };
        let mut rules = Vec::new();
        let mut refused: Option<Refusal> = None;
        for (number, body) in (1..).zip(bodies) {
            match (new_rule(body, &format!("[{number}].")), &mut refused) {
                (Ok(rule), _) => rules.push(rule),
                (Err(more), Some(refused)) => refused.add(more),
                (Err(first), none) => *none = Some(first),
            }
        }
        refused.map_or(Ok(()), Err)?;
        return change(call, room, "rules replace", |present, at| {
            let rules = rules.iter().cloned();
            *present = rules
                .map(|rule| ApiRule {
                    modified_at: at,
                    ..rule
                })
                .collect();
            Ok(())
        })
        .await;
    }
    call.only_get()?;
    Ok(Reply::of(written(&room.content().rules)))
}

pub(super) async fn one(call: &Call<'_>, room: &Room, id: &str) -> Answer {
    if call.method == Method::DELETE {
        return change(call, room, "rule delete", |rules, _| {
            let found = position(rules, id)?;
            rules.remove(found);
            Ok(())
        })
        .await;
    }
    if call.method != Method::PATCH {
        return Err(Refusal::method());
    }
    let body = call.object()?;
    let mut mistakes = Mistakes::default();
    set(body, &mut ApiRule::default(), "", &mut mistakes);
    let place = body.get("position").filter(|place| !place.is_null());
    let place = place.map(Place::of).transpose()?;
    mistakes.check()?;
    change(call, room, "rule edit", |rules, at| {
        let found = position(rules, id)?;
        let mut rule = rules.remove(found);
        set(body, &mut rule, "", &mut Mistakes::default());
        rule.version += 1;
        rule.modified_at = at;
        let to = match &place {
            Some(place) => place.among(rules)?,
            None => found,
        };
        rules.insert(to, rule);
        Ok(())
    })
    .await
}

fn position(rules: &[ApiRule], id: &str) -> Result<usize, RoomRefusal> {
    let found = rules.iter().position(|rule| rule.id == id);
    found.ok_or(RoomRefusal::NotFound)
}

/// Changes the rules of a room, and returns them.
async fn change(
    call: &Call<'_>,
    room: &Room,
    what: &str,
    edit: impl Fn(&mut Vec<ApiRule>, u64) -> Result<(), RoomRefusal>,
) -> Answer {
    let edit = |known: &ApiRoom, at: u64| {
        let mut next = known.clone();
        edit(&mut next.rules, at)?;
        Ok(next)
    };
    let room = change_room(call, room, what, RULES, edit).await?;
    Ok(Reply::of(written(&room.rules)))
}

/// Reads a rule that has everything it needs. `prefix` is its path in the body.
fn new_rule(body: &Value, prefix: &str) -> Result<ApiRule, Refusal> {
    let mut mistakes = Mistakes::default();
    let mut rule = ApiRule {
        id: new_id()?,
        version: 1,
        enabled: true,
        ..ApiRule::default()
    };
    match body.as_object() {
        Some(body) => {
            for key in ["action", "expression"] {
                if body.get(key).is_none_or(Value::is_null) {
                    mistakes.add(&format!("{prefix}{key}"), format!("{key}: missing"));
                }
            }
            set(body, &mut rule, prefix, &mut mistakes);
        }
        None => mistakes.add(prefix.trim_end_matches('.'), "a rule has to be an object"),
    }
    mistakes.check()?;
    Ok(rule)
}

/// Sets the fields of a body in a rule.
fn set(body: &Map<String, Value>, rule: &mut ApiRule, prefix: &str, mistakes: &mut Mistakes) {
    let mut wrong = |key: &str, allowed: &str| {
        mistakes.add(
            &format!("{prefix}{key}"),
            format!("{key} has to be {allowed}"),
        );
    };
    match body.get("action") {
        None | Some(Value::Null) => {}
        Some(Value::String(action)) if action == ACTION => {}
        Some(_) => wrong("action", "\"bypass_waiting_room\""),
    }
    match body.get("expression") {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => {
            rule.expression.clone_from(text);
            if let Some(cel) = cel::of(text) {
                wrong("expression", &format!("in CEL, where it would be: {cel}"));
            }
        }
        Some(_) => wrong("expression", "a text in CEL"),
    }
    match body.get("description") {
        None => {}
        Some(Value::Null) => rule.description.clear(),
        Some(Value::String(text)) => rule.description.clone_from(text),
        Some(_) => wrong("description", "a text"),
    }
    match body.get("enabled") {
        None | Some(Value::Null) => {}
        Some(Value::Bool(enabled)) => rule.enabled = *enabled,
        Some(_) => wrong("enabled", "true or false"),
    }
}

/// New place of a rule.
enum Place {
    /// Number from 1.
    Index(usize),
    /// Before the rule of this id; the empty one is the first.
    Before(String),
    /// After the rule of this id; the empty one is the last.
    After(String),
}

impl Place {
    fn of(body: &Value) -> Result<Self, Refusal> {
        let text = |key: &str| body.get(key).and_then(Value::as_str).map(str::to_owned);
        let index = body
            .get("index")
            .and_then(Value::as_u64)
            .filter(|index| *index > 0);
        let index = index.and_then(|index| usize::try_from(index).ok());
        let place = index
            .map(Self::Index)
            .or_else(|| text("before").map(Self::Before))
            .or_else(|| text("after").map(Self::After));
        place.ok_or_else(|| {
            let mut mistakes = Mistakes::default();
            let allowed = "position has to be {\"index\": N} from 1, {\"before\": id} or \
                           {\"after\": id}";
            mistakes.add("position", allowed);
            Refusal::invalid(mistakes)
        })
    }

    /// Returns the place among the other rules, from 0.
    fn among(&self, rules: &[ApiRule]) -> Result<usize, RoomRefusal> {
        match self {
            Self::Index(index) => Ok((index - 1).min(rules.len())),
            Self::Before(id) if id.is_empty() => Ok(0),
            Self::Before(id) => position(rules, id),
            Self::After(id) if id.is_empty() => Ok(rules.len()),
            Self::After(id) => position(rules, id).map(|found| found + 1),
        }
    }
}
