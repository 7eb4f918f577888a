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
    heading_line: "È in coda",
    heading_lot: "È nella sala d’attesa",
    heading_early: "Non ancora aperto",
    heading_rejecting: "Al momento non disponibile",
    heading_cookies: "Consenta i cookie",
    heading_turn: "È il Suo turno",
    what: "Questa è una sala d’attesa. Fa entrare per volta solo tante persone quante questo sito \
           può servire bene.",
    full: "In questo momento sono dentro tanti visitatori quanti il sito può servire bene. \
           Entrerà appena ci sarà posto per Lei.",
    line_moves: "In questo momento si entra, uno dopo l’altro. Entrerà appena sarà il Suo turno.",
    lot_moves: "In questo momento si entra, e questa volta sono state sorteggiate altre persone. \
                Il prossimo sorteggio è una nuova possibilità.",
    queue_all: "Per ora l’organizzatore trattiene tutti qui e farà entrare più tardi.",
    paused: "L’organizzatore ha sospeso gli ingressi. Nessuno entra fino alla ripresa e nessuno \
             perde il proprio posto.",
    early: "L’apertura è all’ora indicata sotto. È in anticipo e fino ad allora non deve fare \
            nulla.",
    early_unknown: "Non è aperto, e l’ora dell’apertura non è ancora stata fissata.",
    rejecting: "Al momento questo sito non accoglie nuovi visitatori e non c’è una coda. Torni \
                più tardi.",
    store_away: "Una parte di questa sala d’attesa non è raggiungibile. Finché non torna non \
                 entra nessuno, per non sovraccaricare il sito.",
    recovering: "Dopo un guasto si stanno ricontando tutte le persone che sono dentro. Fino ad \
                 allora non entra nessun altro, per non sovraccaricare il sito.",
    recovering_unknown: "Non si sa ancora quanto tempo ci vorrà.",
    origin_down: "Il sito dietro questa sala d’attesa non risponde correttamente. Finché non lo \
                  fa non entra nessuno: vedrebbe solo un errore.",
    order_first: "Chi è arrivato prima entra prima.",
    order_draw: "Tutte le persone presenti prima dell’apertura partecipano a un sorteggio \
                 dell’ordine; arrivare prima non è un vantaggio. Chi arriva dopo si mette dietro.",
    order_drawn: "L’ordine di chi era qui prima dell’apertura è stato sorteggiato. Chi è arrivato \
                  dopo sta dietro, in ordine di arrivo.",
    order_lot: "Non c’è un ordine fisso: quando c’è posto, si sorteggia chi entra. Ricaricare la \
                pagina non aiuta e non danneggia.",
    kept: "Il Suo posto è conservato. Può ricaricare questa pagina, o chiuderla e tornare entro \
           {time}, senza perdere nulla. È ricordato da un cookie: usi quindi lo stesso browser.",
    label_ahead: "Persone davanti a Lei",
    label_waiting: "Persone in attesa",
    label_moved: "Entrate nell’ultimo minuto",
    label_wait: "Attesa stimata",
    label_progress: "Il Suo percorso nella coda finora",
    label_since: "In attesa da",
    label_opens: "Apertura",
    label_reopens: "Si prevede di far entrare di nuovo",
    label_updated: "Ultimo aggiornamento",
    label_room: "Sala d’attesa",
    label_message: "Messaggio dell’organizzatore",
    label_language: "Lingua",
    nobody: "Nessuno",
    unknown: "Non ancora noto",
    unknown_organiser: "Non noto: decide l’organizzatore",
    unknown_fault: "Non noto fino alla riparazione",
    any_moment: "Da un momento all’altro",
    up_to: "Fino a {time}",
    about: "Circa {time}",
    more_than: "Più di {time}",
    less_than_minute: "Meno di un minuto",
    more_than_day: "Più di un giorno",
    not_sent: "Quello che ha inviato non è stato trasmesso.",
    send_again: "Quando sarà il Suo turno, lo invii di nuovo.",
    cookies: "Sembra che questo browser non conservi i cookie di questo sito. Senza un cookie il \
              Suo posto non può essere ricordato. Consenta i cookie e ricarichi la pagina.",
    check: "Controlla ora",
    change: "Cambia",
    live: "Questa pagina si aggiorna da sola.",
    checked: "Appena controllato: è ancora in attesa.",
    reloads: "Questa pagina chiede di nuovo da sola ogni {time}.",
    turn_now: "Sta entrando adesso.",
    turn_again: "Nuovo tentativo tra 20 secondi.",
    turn_send: "Invii di nuovo quello che non è stato trasmesso.",
    offline: "Non è in linea.",
    cut: "Nessuna connessione al momento.",
    safe: "Il Suo posto è conservato per {time} dall’ultimo aggiornamento; nuovo tentativo in \
           corso.",
};
