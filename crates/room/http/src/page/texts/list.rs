//! List of the texts that each language fills.

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
    heading_line,
    heading_lot,
    heading_early,
    heading_rejecting,
    heading_cookies,
    heading_turn,
    /// Explanation of this page.
    what,
    /// Reasons, one or two sentences each.
    full,
    line_moves,
    lot_moves,
    queue_all,
    paused,
    early,
    early_unknown,
    rejecting,
    store_away,
    recovering,
    /// Sentence after `recovering` if no time is known.
    recovering_unknown,
    origin_down,
    /// Rules of the queue.
    order_first,
    order_draw,
    order_drawn,
    order_lot,
    /// Promise to keep the position; `{time}` follows a preposition.
    kept,
    /// Labels, in front of a value.
    label_ahead,
    label_waiting,
    label_moved,
    label_wait,
    label_progress,
    label_since,
    label_opens,
    label_reopens,
    label_updated,
    label_room,
    label_message,
    label_language,
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
    not_sent,
    send_again,
    cookies,
    check,
    change,
    live,
    checked,
    /// Notice of reloads; `{time}` is their interval.
    reloads,
    turn_now,
    turn_again,
    turn_send,
    offline,
    cut,
    /// Notice while offline; `{time}` is how long the position is kept.
    safe,
}
