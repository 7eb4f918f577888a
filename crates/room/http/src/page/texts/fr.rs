//! French.

use super::list::Texts;
use crate::page::grammar::{Category, Grammar, Unit, one_with_zero};

pub(super) static TEXTS: Texts = Texts {
    grammar: Grammar {
        separator: "\u{202f}",
        digits_grouped: 4,
        category: one_with_zero,
        seconds: Unit::plain(&[
            (Category::One, "{n} seconde"),
            (Category::Other, "{n} secondes"),
        ]),
        minutes: Unit::plain(&[
            (Category::One, "{n} minute"),
            (Category::Other, "{n} minutes"),
        ]),
        hours: Unit::plain(&[
            (Category::One, "{n} heure"),
            (Category::Other, "{n} heures"),
        ]),
        days: Unit::plain(&[(Category::One, "{n} jour"), (Category::Other, "{n} jours")]),
    },
    name: "Français",
    heading_line: "Vous êtes dans la file d’attente",
    heading_lot: "Vous êtes dans la salle d’attente",
    heading_early: "Pas encore ouvert",
    heading_rejecting: "Indisponible pour le moment",
    heading_cookies: "Veuillez autoriser les cookies",
    heading_turn: "C’est votre tour",
    what: "Ceci est une salle d’attente. Elle ne laisse entrer à la fois que le nombre de \
           personnes que ce site peut bien servir.",
    full: "Il y a actuellement autant de visiteurs que ce site peut bien servir. Vous entrerez \
           dès qu’il y aura de la place pour vous.",
    line_moves: "Les visiteurs entrent en ce moment, l’un après l’autre. Vous entrerez dès que ce \
                 sera votre tour.",
    lot_moves: "Des visiteurs entrent en ce moment, et cette fois d’autres ont été tirés au sort. \
                Le prochain tirage est une nouvelle chance.",
    queue_all: "L’organisateur fait patienter tout le monde ici pour l’instant et laissera entrer \
                plus tard.",
    paused: "L’organisateur a suspendu les entrées. Personne n’entre avant la reprise, et \
             personne ne perd sa place.",
    early: "L’ouverture aura lieu à l’heure indiquée ci-dessous. Vous êtes en avance et n’avez \
            rien à faire d’ici là.",
    early_unknown: "Ce n’est pas ouvert, et l’heure d’ouverture n’est pas encore fixée.",
    rejecting: "Ce site n’accepte pas de nouveaux visiteurs pour le moment, et il n’y a pas de \
                file d’attente. Veuillez revenir plus tard.",
    store_away: "Une partie de cette salle d’attente est injoignable. Personne n’entre tant \
                 qu’elle n’est pas revenue, pour que le site ne soit pas surchargé.",
    recovering: "Après une panne, toutes les personnes déjà entrées sont recomptées. En \
                 attendant, personne d’autre n’entre, pour que le site ne soit pas surchargé.",
    recovering_unknown: "On ne sait pas encore combien de temps cela prendra.",
    origin_down: "Le site derrière cette salle d’attente ne répond pas correctement. Personne \
                  n’entre d’ici là : vous ne verriez qu’une erreur.",
    order_first: "Les premiers arrivés entrent les premiers.",
    order_draw: "Toutes les personnes présentes avant l’ouverture participent à un tirage au sort \
                 de l’ordre ; arriver plus tôt n’est pas un avantage. Les suivantes se placent \
                 derrière.",
    order_drawn: "L’ordre des personnes présentes avant l’ouverture a été tiré au sort. Les \
                  suivantes sont derrière, dans l’ordre de leur arrivée.",
    order_lot: "Il n’y a pas d’ordre fixe : dès qu’il y a de la place, on tire au sort qui entre. \
                Recharger la page n’aide pas et ne nuit pas.",
    kept: "Votre place est gardée. Vous pouvez recharger cette page, ou la fermer et revenir en \
           moins de {time}, sans rien perdre. Elle est retenue par un cookie : utilisez donc le \
           même navigateur.",
    label_ahead: "Personnes devant vous",
    label_waiting: "Personnes en attente",
    label_moved: "Entrées au cours de la dernière minute",
    label_wait: "Attente estimée",
    label_progress: "Votre avancée dans la file jusqu’ici",
    label_since: "Vous attendez depuis",
    label_opens: "Ouverture",
    label_reopens: "Reprise prévue des entrées",
    label_updated: "Dernière mise à jour",
    label_room: "Salle d’attente",
    label_message: "Message de l’organisateur",
    label_language: "Langue",
    nobody: "Personne",
    unknown: "Pas encore connu",
    unknown_organiser: "Inconnu : c’est l’organisateur qui décide",
    unknown_fault: "Inconnu jusqu’à la réparation",
    any_moment: "D’un instant à l’autre",
    up_to: "Jusqu’à {time}",
    about: "Environ {time}",
    more_than: "Plus de {time}",
    less_than_minute: "Moins d’une minute",
    more_than_day: "Plus d’un jour",
    not_sent: "Ce que vous avez envoyé n’a pas été transmis.",
    send_again: "Quand ce sera votre tour, veuillez l’envoyer à nouveau.",
    cookies: "Ce navigateur ne semble pas conserver les cookies de ce site. Sans cookie, votre \
              place ne peut pas être retenue. Veuillez autoriser les cookies et recharger la page.",
    check: "Vérifier maintenant",
    change: "Changer",
    live: "Cette page se met à jour toute seule.",
    checked: "Vérifié à l’instant : vous attendez toujours.",
    reloads: "Cette page se recharge toute seule ; intervalle : {time}.",
    turn_now: "Vous allez entrer maintenant.",
    turn_again: "Nouvel essai dans 20 secondes.",
    turn_send: "Veuillez envoyer à nouveau ce qui n’a pas été transmis.",
    offline: "Vous êtes hors ligne.",
    cut: "Pas de connexion pour le moment.",
    safe: "Votre place est gardée {time} à partir de la dernière mise à jour ; nouvel essai en \
           cours.",
};
