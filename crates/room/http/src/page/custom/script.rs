//! The page's script in an operator's page.
//!
//! It is the script of our own page. Here, ids and classes begin with [`PREFIX`], so that none of
//! them can be one of the operator's. The script fills the elements that it finds.

use crate::page::html::{Links, SCRIPT, reload, write_settings};
use crate::page::view::WaitingView;

/// Begin of the ids and classes that belong to the script.
pub(super) const PREFIX: &str = "anteroom-";

/// Element that the operator must have: it enters, where the page does not by itself.
pub(super) const BUTTON: &str = "go";

/// Live regions of screen readers, which the operator need not know: their ids and roles.
const REGIONS: [(&str, &str); 3] = [("say", "status"), ("pos", "status"), ("shout", "alert")];

/// Style of a live region, as that of the class `unseen` in our page.
const UNSEEN: &str = "position:absolute;width:1px;height:1px;overflow:hidden;\
                      clip-path:inset(50%);white-space:nowrap";

/// Whether the script fills an element with this id, which has no prefix.
pub(super) fn is_filled(id: &str) -> bool {
    let source = include_str!("../../../templates/waiting.html");
    source.contains(&format!("id=\"{id}\""))
}

/// Returns the script with all that it needs, as HTML for the end of the body: a reload for
/// browsers without scripts, live regions, and the script itself.
pub(super) fn element(view: &WaitingView<'_>, links: Links<'_>, after_post: bool) -> String {
    let reload = reload(view, links, after_post);
    let regions = REGIONS.map(|(id, role)| {
        format!("<p id=\"{PREFIX}{id}\" role=\"{role}\" style=\"{UNSEEN}\"></p>")
    });
    let regions = regions.concat();
    let mut settings = String::new();
    write_settings(&mut settings, view, links, after_post);
    let script = &*SCRIPT;
    format!(
        "<noscript><meta http-equiv=\"refresh\" content=\"{reload}\"></noscript>{regions}\
         <script data-prefix=\"{PREFIX}\"{settings}>{script}</script>"
    )
}
