//! Serves the rooms of the API in a node, and keeps a copy of them in its data folder.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::Arc;

use anteroom_admin::api_rooms::RoomsHost;
use anteroom_config::{Config, RoomId};
use anteroom_embedded::DataDir;
use anteroom_node::Node;
use anteroom_room_http::layer::WaitingRoomLayer;
use anteroom_room_http::page::{PreviewState, preview};
use anteroom_store::chain;

/// Node, its route table and its data folder.
pub(crate) struct NodeRooms {
    pub(crate) node: Arc<Node>,
    pub(crate) rooms: WaitingRoomLayer,
    pub(crate) dir: DataDir,
}

impl RoomsHost for NodeRooms {
    fn name(&self) -> String {
        self.node.name()
    }

    fn serve(
        &self,
        config: &Config,
        deleted: &[RoomId],
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let next = self.rooms.plan(config)?;
        self.node.end_ledgers(deleted);
        self.node.reload(config.rooms.clone());
        Ok(self.rooms.commit(next)?)
    }

    fn preview(
        &self,
        html: &str,
        query: &BTreeMap<String, String>,
    ) -> Result<Option<String>, Vec<String>> {
        let value = |key: &str| query.get(key).map(String::as_str);
        let is_set = |key: &str| matches!(value(key), Some("" | "true" | "1"));
        let state = PreviewState {
            queue_all: is_set("force_queue"),
            queueing_method: value("queueing_method").unwrap_or_default().to_owned(),
            is_prequeue: value("event") == Some("prequeueing"),
            is_shuffled: is_set("shuffle_at_event_start"),
            wait_minutes: value("waitTime").and_then(|minutes| minutes.parse().ok()),
        };
        preview(html, &state).map_err(|mistakes| {
            let mistakes = mistakes.into_iter();
            mistakes
                .map(|mistake| {
                    format!("line {} of the template: {}", mistake.line, mistake.message)
                })
                .collect()
        })
    }

    fn set_known(&self, is_known: bool) {
        self.rooms.set_known(is_known);
        if is_known {
            self.node.forget_predecessors();
        }
    }

    fn read_copy(&self) -> Result<Option<String>, Box<dyn Error + Send + Sync>> {
        Ok(self.dir.api_rooms()?)
    }

    fn write_copy(&self, text: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(self.dir.keep_api_rooms(text.to_owned())?)
    }

    fn read_page(&self, name: &str) -> Result<Option<String>, Box<dyn Error + Send + Sync>> {
        Ok(self.dir.custom_page(name)?)
    }

    fn write_page(&self, name: &str, text: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(self.dir.keep_custom_page(name, text)?)
    }

    fn remove_other_pages(&self, names: &BTreeSet<&str>) {
        if let Err(error) = self.dir.remove_other_custom_pages(names) {
            tracing::warn!(cause = chain(&error), "old custom pages not removed");
        }
    }
}
