//! Italian.

use super::list::Texts;
use crate::page::grammar::{Category, Grammar, Unit, one_or_other};

pub(super) static TEXTS: Texts = Texts {
    grammar: Grammar {
        separator: ".",
        digits_grouped: 4,
        category: one_or_other,
        seconds: Unit::plain(&[
            (Category::One, "{n} secondo"),
            (Category::Other, "{n} secondi"),
        ]),
        minutes: Unit::plain(&[
            (Category::One, "{n} minuto"),
            (Category::Other, "{n} minuti"),
        ]),
        hours: Unit::plain(&[(Category::One, "{n} ora"), (Category::Other, "{n} ore")]),
        days: Unit::plain(&[
            (Category::One, "{n} giorno"),
            (Category::Other, "{n} giorni"),
        ]),
    },
    name: "Italiano",
    heading_line: "Sei in coda",
    heading_lot: "Sei nella sala d’attesa",
    heading_early: "Non ancora aperto",
    heading_rejecting: "Al momento non disponibile",
    heading_cookies: "Consenti i cookie",
    heading_turn: "È il tuo turno",
    what: "Questa è una sala d’attesa. Fa entrare per volta solo le persone che questo sito può \
           gestire.",
    full: "In questo momento il sito è molto affollato. Entrerai appena ci sarà posto per te.",
    line_moves: "In questo momento si entra, uno dopo l’altro. Entrerai appena sarà il tuo turno.",
    lot_moves: "In questo momento si entra. Questa volta sono state sorteggiate altre persone. Il \
                prossimo sorteggio è una nuova possibilità.",
    queue_all: "Per ora tutti aspettano qui. L’organizzatore farà entrare i visitatori più tardi.",
    paused: "L’organizzatore ha sospeso gli ingressi. Al momento nessuno entra e nessuno perde il \
             proprio posto.",
    early: "Sei in anticipo. Tieni aperta questa pagina: ti faremo entrare dopo l’apertura.",
    early_unknown: "L’ora dell’apertura non è ancora stata fissata.",
    rejecting: "Al momento questo sito non accetta nuovi visitatori e non c’è una coda. Torna più \
                tardi.",
    store_away: "Una parte di questa sala d’attesa non è raggiungibile. Finché non torna non \
                 entra nessun altro, per non sovraccaricare il sito.",
    recovering: "Dopo un guasto stiamo ricontando chi è già dentro. Fino ad allora non entra \
                 nessun altro, per non sovraccaricare il sito.",
    recovering_unknown: "Non si sa ancora quanto tempo ci vorrà.",
    origin_down: "In questo momento il sito non risponde correttamente. Finché non lo fa non \
                  entra nessun altro, perché vedresti solo un errore.",
    order_first: "Chi prima arriva, prima entra.",
    order_draw: "All’apertura l’ordine di tutte le persone presenti viene sorteggiato. Arrivare \
                 prima o ricaricare la pagina non cambia nulla. Chi arriva dopo si mette dietro.",
    order_drawn: "L’ordine di chi era qui prima dell’apertura è stato sorteggiato. Chi è arrivato \
                  dopo sta dietro, in ordine di arrivo.",
    order_lot: "Non c’è un ordine fisso: quando c’è posto, si sorteggia chi entra. Ricaricare la \
                pagina non cambia nulla.",
    kept: "Il tuo posto è conservato. Puoi ricaricare questa pagina, o chiuderla e tornare entro \
           {time}. Un cookie lo ricorda: usa quindi lo stesso browser.",
    label_ahead: "Persone davanti a te",
    label_waiting: "Persone in attesa",
    label_moved: "Entrate nell’ultimo minuto",
    label_wait: "Attesa stimata",
    label_progress: "Il tuo avanzamento finora",
    label_since: "In attesa dalle ore",
    label_opens: "Apertura",
    label_reopens: "Ripresa prevista degli ingressi",
    label_updated: "Ultimo aggiornamento",
    label_room: "Sala d’attesa",
    label_message: "Messaggio dell’organizzatore",
    label_language: "Lingua",
    nobody: "Nessuno",
    unknown: "Non ancora noto",
    unknown_organiser: "Non noto: decide l’organizzatore",
    unknown_fault: "Non noto fino alla risoluzione del problema",
    any_moment: "Da un momento all’altro",
    up_to: "Fino a {time}",
    about: "Circa {time}",
    more_than: "Più di {time}",
    less_than_minute: "Meno di un minuto",
    more_than_day: "Più di un giorno",
    not_sent: "Il tuo modulo non è stato inviato.",
    send_again: "Quando sarà il tuo turno, invialo di nuovo.",
    cookies: "Il tuo browser non sembra conservare i cookie di questo sito. Senza un cookie non \
              possiamo conservare il tuo posto. Consenti i cookie e ricarica la pagina.",
    check: "Controlla ora",
    change: "Cambia",
    live: "Questa pagina si aggiorna da sola.",
    checked: "Appena controllato: sei ancora in attesa.",
    reloads: "Questa pagina controlla di nuovo da sola ogni {time}.",
    turn_now: "Stai entrando adesso.",
    turn_again: "Nuovo tentativo tra 20 secondi.",
    turn_send: "Invia di nuovo il tuo modulo.",
    offline: "Sei offline.",
    cut: "Nessuna connessione al momento.",
    safe: "Il tuo posto è al sicuro per {time} dall’ultimo aggiornamento. Nuovo tentativo in \
           corso.",
};
