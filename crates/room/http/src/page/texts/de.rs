//! German.

use super::list::Texts;
use crate::page::grammar::{Category, Grammar, Unit, one_or_other};

pub(super) static TEXTS: Texts = Texts {
    grammar: Grammar {
        separator: ".",
        digits_grouped: 4,
        category: one_or_other,
        seconds: Unit::plain(&[
            (Category::One, "{n} Sekunde"),
            (Category::Other, "{n} Sekunden"),
        ]),
        minutes: Unit::plain(&[
            (Category::One, "{n} Minute"),
            (Category::Other, "{n} Minuten"),
        ]),
        hours: Unit::plain(&[
            (Category::One, "{n} Stunde"),
            (Category::Other, "{n} Stunden"),
        ]),
        days: Unit {
            alone: &[(Category::One, "{n} Tag"), (Category::Other, "{n} Tage")],
            bound: &[(Category::One, "{n} Tag"), (Category::Other, "{n} Tagen")],
        },
    },
    name: "Deutsch",
    heading_line: "Sie stehen in der Schlange",
    heading_lot: "Sie sind im Warteraum",
    heading_early: "Noch nicht geöffnet",
    heading_rejecting: "Zurzeit nicht verfügbar",
    heading_cookies: "Bitte erlauben Sie Cookies",
    heading_turn: "Sie sind an der Reihe",
    what: "Das ist ein Warteraum. Er lässt nur so viele Menschen auf einmal ein, wie diese Seite \
           gut bedienen kann.",
    full: "Im Moment sind so viele Besucher drinnen, wie diese Seite gut bedienen kann. Sie \
           kommen hinein, sobald Platz für Sie ist.",
    line_moves: "Gerade wird einer nach dem anderen eingelassen. Sie kommen hinein, sobald Sie an \
                 der Reihe sind.",
    lot_moves: "Gerade wird eingelassen, und diesmal wurden andere ausgelost. Die nächste \
                Auslosung ist eine neue Chance.",
    queue_all: "Der Veranstalter hält im Moment alle hier fest und lässt später wieder ein.",
    paused: "Der Veranstalter hat den Einlass unterbrochen. Bis es weitergeht, kommt niemand \
             hinein, und niemand verliert seinen Platz.",
    early: "Geöffnet wird zu der Zeit, die unten steht. Sie sind früh da und müssen bis dahin \
            nichts tun.",
    early_unknown: "Hier ist noch nicht geöffnet, und eine Zeit dafür steht noch nicht fest.",
    rejecting: "Diese Seite nimmt zurzeit keine neuen Besucher auf, und es gibt keine Schlange. \
                Bitte kommen Sie später wieder.",
    store_away: "Ein Teil dieses Warteraums ist nicht erreichbar. Bis er wieder da ist, wird \
                 niemand eingelassen, damit die Seite nicht überfüllt wird.",
    recovering: "Nach einer Störung wird neu gezählt, wer alles drinnen ist. Bis das fertig ist, \
                 wird niemand Neues eingelassen, damit die Seite nicht überfüllt wird.",
    recovering_unknown: "Wie lange das dauert, ist noch nicht bekannt.",
    origin_down: "Die Seite hinter diesem Warteraum antwortet nicht richtig. Bis sie es wieder \
                  tut, wird niemand eingelassen: Sie würden nur einen Fehler sehen.",
    order_first: "Wer zuerst kam, kommt zuerst hinein.",
    order_draw: "Alle, die vor der Öffnung hier sind, nehmen an einer Auslosung der Reihenfolge \
                 teil; früher zu kommen ist kein Vorteil. Wer später kommt, steht dahinter.",
    order_drawn: "Die Reihenfolge derer, die vor der Öffnung hier waren, wurde ausgelost. Wer \
                  später kam, steht dahinter, in der Reihenfolge des Kommens.",
    order_lot: "Es gibt keine feste Reihenfolge: Sobald Platz ist, wird ausgelost, wer als \
                Nächstes hineinkommt. Neu laden hilft nicht und schadet nicht.",
    kept: "Ihr Platz bleibt erhalten. Sie können diese Seite neu laden oder schließen und \
           innerhalb von {time} wiederkommen und verlieren nichts. Gemerkt wird er in einem \
           Cookie; bitte benutzen Sie denselben Browser.",
    label_ahead: "Personen vor Ihnen",
    label_waiting: "Wartende Personen",
    label_moved: "In der letzten Minute eingelassen",
    label_wait: "Geschätzte Wartezeit",
    label_progress: "Ihr Weg durch die Schlange bisher",
    label_since: "Sie warten seit",
    label_opens: "Öffnung",
    label_reopens: "Voraussichtlich geht es weiter",
    label_updated: "Zuletzt aktualisiert",
    label_room: "Warteraum",
    label_message: "Nachricht des Veranstalters",
    label_language: "Sprache",
    nobody: "Niemand",
    unknown: "Noch nicht bekannt",
    unknown_organiser: "Nicht bekannt: Das entscheidet der Veranstalter",
    unknown_fault: "Nicht bekannt, bis der Fehler behoben ist",
    any_moment: "Jeden Moment",
    up_to: "Bis zu {time}",
    about: "Etwa {time}",
    more_than: "Mehr als {time}",
    less_than_minute: "Weniger als eine Minute",
    more_than_day: "Mehr als ein Tag",
    not_sent: "Was Sie abgeschickt haben, wurde nicht weitergegeben.",
    send_again: "Bitte schicken Sie es noch einmal ab, wenn Sie an der Reihe sind.",
    cookies: "Dieser Browser scheint von dieser Seite keine Cookies zu behalten. Ohne Cookie kann \
              Ihr Platz nicht gemerkt werden. Bitte erlauben Sie Cookies und laden Sie neu.",
    check: "Jetzt nachsehen",
    change: "Ändern",
    live: "Diese Seite aktualisiert sich selbst.",
    checked: "Gerade nachgesehen: Sie warten noch.",
    reloads: "Diese Seite fragt von selbst wieder nach, alle {time}.",
    turn_now: "Sie werden jetzt eingelassen.",
    turn_again: "Neuer Versuch in 20 Sekunden.",
    turn_send: "Bitte schicken Sie noch einmal ab, was nicht weitergegeben wurde.",
    offline: "Sie sind offline.",
    cut: "Im Moment keine Verbindung.",
    safe: "Ihr Platz bleibt ab der letzten Aktualisierung {time} erhalten; neuer Versuch folgt.",
};
