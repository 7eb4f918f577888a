//! List of the texts that each language fills.
//!
//! Placeholders: `{time}` is a duration (in the form after a preposition where the key's comment
//! says so), `{at}` and `{last}` are clock times such as `10:26 CET`, `{n}` and `{m}` are numbers,
//! `{from}` and `{to}` the ends of a range. `{noun}` is the operator's word for the site, without
//! an article; a language may leave it out where its grammar would have to change the word.

use crate::page::grammar::Grammar;

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Texts of one language.
        pub(crate) struct Texts {
            /// Rules of numbers and durations.
            pub(crate) grammar: Grammar,
            $($(#[$doc])* pub(crate) $name: &'static str,)*
        }

        impl Texts {
            /// Returns all texts by name.
            pub(crate) fn all(&self) -> Vec<(&'static str, &'static str)> {
                vec![$((stringify!($name), self.$name),)*]
            }
        }
    };
}

texts! {
    /// Name of the language, in the language.
    name,
    /// Word for the site if the operator has none: nominative, without an article.
    noun,
    /// Range of numbers or times: with an en dash, or with words in languages from right to left.
    range,
    /// Tags: one to three words above the heading that name the state.
    tag_moving,
    tag_waiting,
    tag_paused,
    tag_origin,
    tag_store,
    tag_offline,
    tag_early,
    tag_closed,
    tag_full,
    tag_turn,
    tag_held,
    tag_session,
    tag_position,
    tag_missed,
    tag_revoked,
    tag_cookies,
    tag_left,
    heading_line,
    heading_lot,
    heading_near,
    heading_early,
    heading_paused,
    heading_safe,
    heading_closed,
    heading_rejecting,
    heading_offline,
    heading_cut,
    heading_cookies,
    heading_turn,
    heading_held,
    heading_session,
    heading_away,
    heading_missed,
    heading_revoked,
    heading_left,
    /// Title of the tab: the position comes first, `{n}`.
    title_line,
    /// Reasons, one to three sentences each.
    moving,
    lot_moves,
    queue_all,
    paused,
    early,
    early_unknown,
    /// A room that lets nobody in, with a message of the organiser below.
    closed,
    rejecting,
    store_away,
    recovering,
    /// Sentence after `recovering` if no time is known.
    recovering_unknown,
    origin_down,
    /// Texts while the queue is counted: in place of the position, and below it.
    counting,
    counting_text,
    /// Reasons why it takes longer than the page said before.
    rise_title,
    rise_limit,
    rise_slower,
    rise_earlier,
    /// Notices of a loss. `{time}` is a duration after a preposition.
    loss_session,
    loss_position,
    loss_turn,
    loss_turn_near,
    loss_revoked,
    /// Sentence after a loss: the visitor is in line again, behind the others.
    loss_end,
    /// Notice above the queue after a form that was not sent.
    not_sent,
    not_sent_text,
    /// Rules of the queue.
    order_first,
    order_draw,
    order_drawn,
    order_lot,
    /// Steps before a draw: the time in bold with a colon, and what happens then.
    step_now,
    step_now_text,
    step_opening_text,
    step_after,
    step_after_text,
    /// Before a draw the page may be closed; `{at}` is the opening.
    close_title,
    close_text,
    /// Promise to keep the position; `{time}` follows a preposition.
    kept_title,
    kept,
    /// Near the front; `{time}` follows a preposition.
    near_title,
    near,
    near_held,
    /// A room without a line.
    checks_title,
    checks,
    /// Labels, above a value or in front of it.
    label_position,
    label_position_new,
    label_last,
    label_waiting,
    label_wait,
    label_entry,
    label_progress,
    label_opens,
    label_opening,
    label_reopens,
    label_message,
    label_language,
    label_reference,
    /// Time of the last update.
    updated,
    /// First position of the visitor, and the part of the way in percent.
    joined,
    part,
    /// Admissions in the last minute: more than one, one, none. `{n}` is 2 or more.
    moved,
    moved_one,
    moved_none,
    /// Values.
    nobody,
    unknown,
    unknown_organiser,
    unknown_fault,
    any_moment,
    /// Estimates; `{time}` follows a preposition.
    up_to,
    about,
    more_than,
    less_than_minute,
    more_than_day,
    /// Estimated wait during a pause, which does not count.
    after_pause,
    /// Notices of the connection; `{at}` is until when the position is kept.
    offline,
    cut,
    again,
    /// Browsers without cookies: explanation, three steps, a button, an alternative.
    cookies,
    cookies_1,
    cookies_2,
    cookies_3,
    cookies_try,
    cookies_other,
    check,
    checked,
    /// Notice of reloads; `{time}` is their interval.
    reloads,
    /// The visitor's turn. `{time}` in `not_yet` and `turn_inside` has the form without a
    /// preposition.
    turn_in,
    enter,
    not_yet,
    extend,
    turn_inside,
    held_away,
    held_asked,
    turn_next,
    label_within,
    time_left,
    turn_now,
    turn_again,
    turn_send,
    /// Switches of sound and notification; the first one is their common label.
    notify,
    sound,
    notification,
    facts,
    next,
    fact_of,
    leave,
    leave_text,
    leave_yes,
    left_text,
    join,
    help,
    imprint,
}
