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
           personnes que ce site peut accueillir.",
    full: "Il y a beaucoup de monde sur ce site en ce moment. Vous entrerez dès qu’il y aura de \
           la place pour vous.",
    line_moves: "Les visiteurs entrent en ce moment, l’un après l’autre. Vous entrerez dès que ce \
                 sera votre tour.",
    lot_moves: "Des visiteurs entrent en ce moment. Cette fois, d’autres ont été tirés au sort. \
                Le prochain tirage est une nouvelle chance.",
    queue_all: "Tout le monde attend ici pour l’instant. L’organisateur laissera entrer les \
                visiteurs plus tard.",
    paused: "L’organisateur a suspendu les entrées. Personne n’entre pour le moment, et personne \
             ne perd sa place.",
    early: "Vous êtes en avance. Gardez cette page ouverte ; nous vous ferons entrer après \
            l’ouverture.",
    early_unknown: "L’heure d’ouverture n’est pas encore fixée.",
    rejecting: "Ce site n’accepte pas de nouveaux visiteurs pour le moment, et il n’y a pas de \
                file d’attente. Veuillez revenir plus tard.",
    store_away: "Une partie de cette salle d’attente est injoignable. Jusqu’à son retour, \
                 personne d’autre n’entre, pour ne pas surcharger le site.",
    recovering: "Après une panne, nous recomptons les personnes déjà entrées. En attendant, \
                 personne d’autre n’entre, pour ne pas surcharger le site.",
    recovering_unknown: "On ne sait pas encore combien de temps cela prendra.",
    origin_down: "Le site ne répond pas correctement en ce moment. En attendant, personne d’autre \
                  n’entre, car vous ne verriez qu’une erreur.",
    order_first: "Les premiers arrivés entrent les premiers.",
    order_draw: "À l’ouverture, l’ordre de toutes les personnes présentes est tiré au sort. \
                 Arriver plus tôt ou recharger la page ne change rien. Les suivantes se placent \
                 derrière.",
    order_drawn: "L’ordre de toutes les personnes présentes avant l’ouverture a été tiré au sort. \
                  Les suivantes sont derrière, par ordre d’arrivée.",
    order_lot: "Il n’y a pas d’ordre fixe : dès qu’il y a de la place, on tire au sort qui entre. \
                Recharger la page ne change rien.",
    kept: "Votre place est conservée. Vous pouvez recharger cette page, ou la fermer et revenir \
           en moins de {time}. Un cookie la garde en mémoire : utilisez donc le même navigateur.",
    label_ahead: "Personnes devant vous",
    label_waiting: "Personnes en attente",
    label_moved: "Entrées au cours de la dernière minute",
    label_wait: "Attente estimée",
    label_progress: "Votre progression jusqu’ici",
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
    unknown_fault: "Inconnu jusqu’à la résolution du problème",
    any_moment: "D’un instant à l’autre",
    up_to: "Jusqu’à {time}",
    about: "Environ {time}",
    more_than: "Plus de {time}",
    less_than_minute: "Moins d’une minute",
    more_than_day: "Plus d’un jour",
    not_sent: "Votre formulaire n’a pas été envoyé.",
    send_again: "Quand ce sera votre tour, veuillez l’envoyer à nouveau.",
    cookies: "Votre navigateur ne semble pas conserver les cookies de ce site. Sans cookie, nous \
              ne pouvons pas garder votre place. Veuillez autoriser les cookies et recharger la \
              page.",
    check: "Vérifier maintenant",
    change: "Changer",
    live: "Cette page se met à jour toute seule.",
    checked: "Vérifié à l’instant : vous attendez toujours.",
    reloads: "Cette page se recharge toute seule toutes les {time}.",
    turn_now: "Vous entrez maintenant.",
    turn_again: "Nouvel essai dans 20 secondes.",
    turn_send: "Veuillez envoyer à nouveau votre formulaire.",
    offline: "Vous êtes hors ligne.",
    cut: "Pas de connexion pour le moment.",
    safe: "Votre place est conservée {time} à partir de la dernière mise à jour. Nouvel essai en \
           cours.",
};
