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
    noun: "site web",
    range: "{from}–{to}",
    tag_moving: "La file avance",
    tag_waiting: "En attente",
    tag_paused: "En pause",
    tag_origin: "Problème du site",
    tag_store: "Problème de la salle d’attente",
    tag_offline: "Pas de connexion",
    tag_early: "Pas encore ouvert",
    tag_full: "Complet",
    tag_turn: "À vous",
    tag_held: "Votre tour, réservé",
    tag_session: "Session terminée",
    tag_position: "Position perdue",
    tag_missed: "Tour passé",
    tag_revoked: "Position supprimée",
    tag_cookies: "Pas encore dans la file",
    tag_left: "File quittée",
    heading_line: "Vous êtes dans la file d’attente",
    heading_lot: "Vous êtes dans la salle d’attente",
    heading_near: "Vous y êtes presque",
    heading_early: "Vous êtes en avance, et c’est très bien",
    heading_paused: "Les entrées sont suspendues",
    heading_safe: "Votre position est conservée",
    heading_rejecting: "Pas de place pour le moment",
    heading_offline: "Votre appareil est hors ligne",
    heading_cut: "Pas de connexion pour le moment",
    heading_cookies: "Veuillez autoriser les cookies",
    heading_turn: "C’est votre tour",
    heading_held: "Votre tour vous est réservé",
    heading_session: "Votre session est terminée",
    heading_away: "Votre absence a été trop longue",
    heading_missed: "Votre tour est passé",
    heading_revoked: "Votre position a été supprimée",
    heading_left: "Vous avez quitté la file d’attente",
    title_line: "{n} dans la file",
    moving: "Les visiteurs entrent l’un après l’autre. Vous entrerez dès que ce sera votre tour.",
    lot_moves: "Des visiteurs entrent en ce moment. Chaque tirage est une nouvelle chance.",
    queue_all: "Tout le monde attend ici pour l’instant. L’organisateur laissera entrer les \
                visiteurs plus tard.",
    paused: "Personne n’entre pour le moment, et personne ne perd sa position.",
    early: "Gardez cette page ouverte. Elle vous fera entrer après l’ouverture.",
    early_unknown: "L’heure d’ouverture n’est pas encore fixée.",
    rejecting: "C’est complet côté {noun}, et il n’y a pas de file d’attente pour le moment.",
    store_away: "Une partie de cette salle d’attente est injoignable. Jusqu’à son retour, personne \
                 d’autre n’entre, pour éviter une surcharge côté {noun}. Nous réessayons sans \
                 cesse, et cette page reprendra toute seule.",
    recovering: "Après une panne, nous recomptons les personnes déjà entrées. En attendant, \
                 personne d’autre n’entre, pour éviter une surcharge côté {noun}.",
    recovering_unknown: "On ne sait pas encore combien de temps cela prendra.",
    origin_down: "Les pages ne répondent pas correctement côté {noun} en ce moment. Nous ne \
                  laissons entrer personne jusqu’à ce que ce soit réglé, car vous ne verriez \
                  qu’une erreur. Vous n’avez rien à faire.",
    counting: "Comptage…",
    counting_text: "Votre position et votre attente s’affichent ici dans quelques secondes. Les \
                    personnes arrivées avant vous restent devant, les suivantes se placent \
                    derrière.",
    rise_title: "Plus long qu’avant",
    rise_limit: "L’organisateur a réduit le nombre d’entrées par minute, pour que tout reste \
                 rapide côté {noun}. Votre position n’a pas changé.",
    rise_slower: "Les personnes déjà entrées restent plus longtemps qu’avant, donc moins de \
                  visiteurs entrent chaque minute. Votre position n’a pas changé.",
    rise_earlier: "Des personnes arrivées avant vous sont revenues dans la file d’attente. Elles \
                   sont devant vous.",
    loss_session: "Vous n’avez ouvert aucune page côté {noun} pendant {time}. Votre place à \
                   l’intérieur est donc revenue à la personne suivante à {at}.",
    loss_position: "Le dernier signe de ce navigateur nous est parvenu à {last}. Les positions \
                    sont conservées pendant {time}, la vôtre a donc été libérée à {at}.",
    loss_turn: "Votre tour vous était réservé jusqu’à {at}. Vous ne l’avez pas pris, la personne \
                suivante est donc entrée.",
    loss_turn_near: "Vous restez tout près du début de la file, et vous aurez encore un tour.",
    loss_revoked: "L’organisateur a supprimé votre position. Si vous pensez que c’est une erreur, \
                   contactez l’aide avec votre référence.",
    loss_end: "Vous êtes de nouveau dans la file d’attente, à la fin.",
    not_sent: "Votre formulaire n’a pas été envoyé",
    not_sent_text: "Vous avez rejoint la file d’attente pendant l’envoi, rien n’a donc été reçu \
                    côté {noun}. À votre tour, nous vous ramènerons au formulaire. Veuillez le \
                    remplir et l’envoyer à nouveau.",
    order_first: "Les premiers arrivés entrent les premiers.",
    order_draw: "À l’ouverture, l’ordre de toutes les personnes présentes est tiré au sort. Les \
                 suivantes se placent derrière.",
    order_drawn: "L’ordre de toutes les personnes présentes avant l’ouverture a été tiré au sort. \
                  Les suivantes sont derrière, par ordre d’arrivée.",
    order_lot: "Il n’y a pas d’ordre fixe\u{a0}: dès qu’il y a de la place, on tire au sort qui \
                entre. Recharger la page ne change rien.",
    step_now: "Maintenant\u{a0}:",
    step_now_text: "vous participez au tirage au sort. Arriver plus tôt ou recharger la page ne \
                    change rien.",
    step_opening_text: "l’ordre de toutes les personnes présentes est tiré au sort. Vous voyez \
                        votre position.",
    step_after: "Ensuite\u{a0}:",
    step_after_text: "les visiteurs entrent l’un après l’autre. Les personnes arrivées plus tard \
                      sont derrière.",
    close_title: "Vous pouvez fermer cette page.",
    close_text: "Revenez avec ce navigateur avant {at}, et vous participerez quand même.",
    kept_title: "Votre position est enregistrée.",
    kept: "Vous pouvez recharger cette page, ou la fermer et revenir en moins de {time}. Utilisez \
           ce navigateur.",
    near_title: "Restez sur cette page.",
    near: "Quand ce sera votre tour, cette page vous préviendra et vous fera entrer.",
    near_held: "Si vous regardez ailleurs, votre tour vous sera réservé pendant {time}.",
    checks_title: "Cette page vérifie toutes les 30 secondes.",
    checks: "Elle vous fera entrer dès qu’il y aura de la place. Vous pouvez aussi revenir plus \
             tard.",
    label_position: "Votre position dans la file d’attente",
    label_position_new: "Votre nouvelle position",
    label_last: "Dernière position connue, {at}",
    label_waiting: "Personnes en attente",
    label_wait: "Attente estimée",
    label_entry: "Entrée prévue",
    label_progress: "Votre avancée dans la file d’attente",
    label_opens: "Temps avant l’ouverture",
    label_opening: "Heure d’ouverture",
    label_reopens: "Reprise prévue des entrées",
    label_message: "Message de l’organisateur",
    label_language: "Langue",
    label_reference: "Votre référence",
    updated: "Mis à jour à {at}",
    joined: "Départ à {n}",
    part: "{n}\u{a0}% du chemin",
    moved: "{n} personnes sont entrées au cours de la dernière minute.",
    moved_one: "Une personne est entrée au cours de la dernière minute.",
    moved_none: "Personne n’est entré au cours de la dernière minute.",
    nobody: "Personne",
    unknown: "Pas encore connu",
    unknown_organiser: "Inconnu\u{a0}: c’est l’organisateur qui décide",
    unknown_fault: "Inconnu pour le moment",
    any_moment: "D’un instant à l’autre",
    up_to: "Jusqu’à {time}",
    about: "Environ {time}",
    more_than: "Plus de {time}",
    less_than_minute: "Moins d’une minute",
    more_than_day: "Plus d’un jour",
    after_pause: "{time} après la reprise des entrées",
    offline: "Votre position est conservée jusqu’à {at}. Reconnectez-vous avant\u{a0}; cette page \
              continue d’essayer.",
    cut: "Votre position est conservée jusqu’à {at}. Cette page continue d’essayer.",
    again: "Réessayer maintenant",
    cookies: "Votre navigateur n’a pas gardé le cookie qui enregistre votre position. Sans lui, \
              vous ne pouvez pas être dans la file d’attente.",
    cookies_1: "Ouvrez les réglages de votre navigateur pour ce site.",
    cookies_2: "Autorisez les cookies. Le nôtre contient votre position et rien d’autre.",
    cookies_3: "Revenez ici et réessayez.",
    cookies_try: "J’ai autorisé les cookies, réessayer",
    cookies_other: "Une fenêtre privée ou un autre navigateur suffit souvent.",
    check: "Vérifier maintenant",
    checked: "Vérifié à l’instant\u{a0}: vous attendez toujours.",
    reloads: "Cette page vérifie de nouveau toute seule toutes les {time}.",
    turn_in: "Entrée automatique dans",
    enter: "Entrer maintenant",
    not_yet: "Pas encore, garder mon tour {time}",
    extend: "Garder mon tour plus longtemps",
    turn_inside: "À l’intérieur, vous avez {time}. Ce temps recommence à chaque page que vous \
                  ouvrez.",
    held_away: "Cette page était en arrière-plan, nous vous avons donc attendu avant d’entrer.",
    held_asked: "Vous nous avez demandé d’attendre. Entrez quand vous voulez.",
    turn_next: "Si le temps s’écoule, la personne suivante entre.",
    label_within: "Temps restant pour entrer",
    time_left: "Il reste {time} pour entrer.",
    turn_now: "Vous entrez maintenant.",
    turn_again: "Nouvel essai dans 20 secondes.",
    turn_send: "Veuillez envoyer à nouveau votre formulaire.",
    notify: "Quand ce sera votre tour\u{a0}:",
    sound: "Son",
    notification: "Notifications",
    facts: "Bon à savoir",
    next: "Suivant",
    fact_of: "{n} sur {m}",
    leave: "Quitter la file d’attente",
    leave_text: "Vous renoncez à votre position. Vous ne pourrez pas la récupérer.",
    leave_yes: "Oui, quitter la file d’attente",
    left_text: "Vous avez renoncé à votre position. Si vous revenez dans la file, vous commencerez \
                à la fin.",
    join: "Revenir dans la file d’attente",
    help: "Aide",
    imprint: "Mentions légales",
};
