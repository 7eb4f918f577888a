//! English.

use super::list::Texts;
use crate::page::grammar::{Category, Grammar, Unit, one_or_other};

pub(super) static TEXTS: Texts = Texts {
    grammar: Grammar {
        separator: ",",
        digits_grouped: 4,
        category: one_or_other,
        seconds: Unit::plain(&[
            (Category::One, "{n} second"),
            (Category::Other, "{n} seconds"),
        ]),
        minutes: Unit::plain(&[
            (Category::One, "{n} minute"),
            (Category::Other, "{n} minutes"),
        ]),
        hours: Unit::plain(&[(Category::One, "{n} hour"), (Category::Other, "{n} hours")]),
        days: Unit::plain(&[(Category::One, "{n} day"), (Category::Other, "{n} days")]),
    },
    name: "English",
    heading_line: "You are in line",
    heading_lot: "You are in the waiting room",
    heading_early: "Not open yet",
    heading_rejecting: "Not available right now",
    heading_cookies: "Please allow cookies",
    heading_turn: "It is your turn",
    what: "This is a waiting room. It lets in only as many people at a time as this site can \
           serve well.",
    full: "As many visitors are inside right now as this site can serve well. You go in as soon \
           as there is room for you.",
    line_moves: "People are being let in right now, one after the other. You go in as soon as it \
                 is your turn.",
    lot_moves: "People are being let in right now, and this time others were drawn. The next draw \
                is a new chance.",
    queue_all: "The organiser is keeping everybody here for the moment and will let people in \
                later.",
    paused: "The organiser has paused the entry. Nobody goes in until it is resumed, and nobody \
             loses their place.",
    early: "This opens at the time below. You are early, and you do not have to do anything until \
            then.",
    early_unknown: "This is not open, and no time for the opening has been set yet.",
    rejecting: "This site is not taking any new visitors at the moment, and there is no line to \
                wait in. Please come back later.",
    store_away: "A part of this waiting room is not reachable. Until it is back nobody is let in, \
                 so that the site is not overfilled.",
    recovering: "After a fault, everybody who is inside is being counted anew. Until that is done \
                 nobody new is let in, so that the site is not overfilled.",
    recovering_unknown: "How long that takes is not known yet.",
    origin_down: "The site behind this waiting room is not answering properly. Nobody is let in \
                  until it does: you would only see an error.",
    order_first: "Whoever came first goes in first.",
    order_draw: "Everybody who is here before the opening takes part in one draw for the order, \
                 so coming earlier is no advantage. Those who come later stand behind.",
    order_drawn: "The order of those who were here before the opening was drawn by lot. Those who \
                  came later stand behind, in the order in which they came.",
    order_lot: "There is no fixed order: whenever there is room, it is drawn by lot who is let in \
                next. Reloading neither helps nor harms.",
    kept: "Your place is kept. You can reload this page, or close it and come back within {time}, \
           and lose nothing. It is remembered by a cookie, so please use the same browser.",
    label_ahead: "People ahead of you",
    label_waiting: "People waiting",
    label_moved: "Let in during the last minute",
    label_wait: "Estimated wait",
    label_progress: "Your way through the line so far",
    label_since: "Waiting since",
    label_opens: "Opens",
    label_reopens: "People are expected to go in again",
    label_updated: "Last updated",
    label_room: "Waiting room",
    label_message: "Message from the organiser",
    label_language: "Language",
    nobody: "Nobody",
    unknown: "Not known yet",
    unknown_organiser: "Not known: the organiser decides",
    unknown_fault: "Not known until this is mended",
    any_moment: "Any moment now",
    up_to: "Up to {time}",
    about: "About {time}",
    more_than: "More than {time}",
    less_than_minute: "Less than a minute",
    more_than_day: "More than a day",
    not_sent: "What you sent was not passed on.",
    send_again: "When it is your turn, please send it again.",
    cookies: "This browser does not seem to keep cookies from this site. Without one your place \
              cannot be remembered. Please allow cookies and reload.",
    check: "Check now",
    change: "Change",
    live: "This page updates itself.",
    checked: "Checked just now: you are still waiting.",
    reloads: "This page asks again by itself every {time}.",
    turn_now: "You are being taken in now.",
    turn_again: "Trying again in 20 seconds.",
    turn_send: "Please send again what was not passed on.",
    offline: "You are offline.",
    cut: "No connection at the moment.",
    safe: "Your place is safe for {time} from the last update; trying again.",
};
