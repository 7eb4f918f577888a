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
    heading_line: "Sie sind in der Warteschlange",
    heading_lot: "Sie sind im Warteraum",
    heading_early: "Noch nicht geöffnet",
    heading_rejecting: "Zurzeit nicht verfügbar",
    heading_cookies: "Bitte erlauben Sie Cookies",
    heading_turn: "Sie sind an der Reihe",
    what: "Das ist ein Warteraum. Er lässt nur so viele Menschen gleichzeitig hinein, wie diese \
           Website bewältigen kann.",
    full: "Auf dieser Website ist gerade viel los. Sie kommen hinein, sobald Platz für Sie ist.",
    line_moves: "Gerade wird eingelassen, einer nach dem anderen. Sie kommen hinein, sobald Sie \
                 an der Reihe sind.",
    lot_moves: "Gerade wird eingelassen. Dieses Mal wurden andere ausgelost. Die nächste \
                Auslosung ist eine neue Chance.",
    queue_all: "Im Moment warten alle hier. Der Veranstalter lässt später Besucher ein.",
    paused: "Der Veranstalter hat den Einlass unterbrochen. Im Moment kommt niemand hinein, und \
             niemand verliert seinen Platz.",
    early: "Sie sind früh da. Lassen Sie diese Seite offen; nach der Öffnung lassen wir Sie \
            hinein.",
    early_unknown: "Wann geöffnet wird, steht noch nicht fest.",
    rejecting: "Diese Website nimmt zurzeit keine neuen Besucher auf, und es gibt keine \
                Warteschlange. Bitte kommen Sie später wieder.",
    store_away: "Ein Teil dieses Warteraums ist nicht erreichbar. Bis er wieder da ist, kommt \
                 niemand Neues hinein, damit die Website nicht überlastet wird.",
    recovering: "Nach einer Störung zählen wir neu, wer schon drinnen ist. Bis das fertig ist, \
                 kommt niemand Neues hinein, damit die Website nicht überlastet wird.",
    recovering_unknown: "Wie lange das dauert, ist noch nicht bekannt.",
    origin_down: "Die Website antwortet gerade nicht richtig. Bis sie es wieder tut, kommt \
                  niemand Neues hinein, denn Sie würden nur einen Fehler sehen.",
    order_first: "Wer zuerst kommt, kommt zuerst hinein.",
    order_draw: "Bei der Öffnung wird die Reihenfolge aller ausgelost, die hier sind. Früher \
                 kommen oder neu laden ändert nichts. Wer später kommt, steht dahinter.",
    order_drawn: "Die Reihenfolge aller, die vor der Öffnung hier waren, wurde ausgelost. Wer \
                  später kam, steht dahinter, in der Reihenfolge der Ankunft.",
    order_lot: "Es gibt keine feste Reihenfolge: Sobald Platz ist, wird ausgelost, wer als \
                Nächstes hineinkommt. Neu laden ändert nichts.",
    kept: "Ihr Platz ist gesichert. Sie können diese Seite neu laden oder sie schließen und \
           innerhalb von {time} wiederkommen. Ein Cookie merkt sich Ihren Platz; benutzen Sie \
           also denselben Browser.",
    label_ahead: "Personen vor Ihnen",
    label_waiting: "Wartende Personen",
    label_moved: "In der letzten Minute eingelassen",
    label_wait: "Geschätzte Wartezeit",
    label_progress: "Ihr Fortschritt bisher",
    label_since: "Sie warten seit",
    label_opens: "Öffnung",
    label_reopens: "Einlass geht voraussichtlich weiter",
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
    not_sent: "Ihr Formular wurde nicht gesendet.",
    send_again: "Bitte senden Sie es noch einmal, wenn Sie an der Reihe sind.",
    cookies: "Ihr Browser scheint keine Cookies dieser Website zu speichern. Ohne Cookie können \
              wir Ihren Platz nicht sichern. Bitte erlauben Sie Cookies und laden Sie neu.",
    check: "Jetzt nachsehen",
    change: "Ändern",
    live: "Diese Seite aktualisiert sich selbst.",
    checked: "Gerade nachgesehen: Sie warten noch.",
    reloads: "Diese Seite sieht alle {time} von selbst wieder nach.",
    turn_now: "Sie kommen jetzt hinein.",
    turn_again: "Neuer Versuch in 20 Sekunden.",
    turn_send: "Bitte senden Sie Ihr Formular noch einmal.",
    offline: "Sie sind offline.",
    cut: "Im Moment keine Verbindung.",
    safe: "Ihr Platz ist ab der letzten Aktualisierung {time} sicher. Neuer Versuch läuft.",
};
