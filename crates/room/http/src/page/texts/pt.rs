//! Portuguese, as in Brazil.

use super::list::Texts;
use crate::page::grammar::{Category, Grammar, Unit, one_with_zero};

pub(super) static TEXTS: Texts = Texts {
    grammar: Grammar {
        separator: ".",
        digits_grouped: 4,
        category: one_with_zero,
        seconds: Unit::plain(&[
            (Category::One, "{n} segundo"),
            (Category::Other, "{n} segundos"),
        ]),
        minutes: Unit::plain(&[
            (Category::One, "{n} minuto"),
            (Category::Other, "{n} minutos"),
        ]),
        hours: Unit::plain(&[(Category::One, "{n} hora"), (Category::Other, "{n} horas")]),
        days: Unit::plain(&[(Category::One, "{n} dia"), (Category::Other, "{n} dias")]),
    },
    name: "Português",
    heading_line: "Você está na fila",
    heading_lot: "Você está na sala de espera",
    heading_early: "Ainda não abriu",
    heading_rejecting: "Indisponível no momento",
    heading_cookies: "Permita os cookies",
    heading_turn: "É a sua vez",
    what: "Esta é uma sala de espera. Ela deixa entrar de cada vez só as pessoas que este site \
           consegue atender.",
    full: "Este site está com muito movimento agora. Você entra assim que houver lugar para você.",
    line_moves: "As pessoas estão entrando agora, uma depois da outra. Você entra assim que for a \
                 sua vez.",
    lot_moves: "As pessoas estão entrando agora. Desta vez, outras foram sorteadas. O próximo \
                sorteio é uma nova chance.",
    queue_all: "Por enquanto, todos esperam aqui. O organizador vai liberar a entrada mais tarde.",
    paused: "O organizador pausou a entrada. Ninguém entra neste momento, e ninguém perde o seu \
             lugar.",
    early: "Você chegou cedo. Deixe esta página aberta; depois da abertura, você vai entrar.",
    early_unknown: "O horário de abertura ainda não foi definido.",
    rejecting: "Este site não está recebendo novos visitantes no momento, e não há fila. Volte \
                mais tarde.",
    store_away: "Uma parte desta sala de espera está fora do ar. Até ela voltar, ninguém mais \
                 entra, para não sobrecarregar o site.",
    recovering: "Depois de uma falha, estamos contando de novo quem está dentro. Até terminar, \
                 ninguém mais entra, para não sobrecarregar o site.",
    recovering_unknown: "Ainda não se sabe quanto tempo isso vai levar.",
    origin_down: "O site não está respondendo bem agora. Até que responda, ninguém mais entra, \
                  porque você só veria um erro.",
    order_first: "Quem chegou primeiro entra primeiro.",
    order_draw: "Na abertura, a ordem de todos os que estiverem aqui é sorteada. Chegar mais cedo \
                 ou recarregar a página não muda nada. Quem chegar depois fica atrás.",
    order_drawn: "A ordem de todos os que estavam aqui antes da abertura foi sorteada. Quem \
                  chegou depois fica atrás, por ordem de chegada.",
    order_lot: "Não há ordem fixa: sempre que há lugar, é sorteado quem entra. Recarregar a \
                página não muda nada.",
    kept: "Seu lugar está guardado. Você pode recarregar esta página, ou fechá-la e voltar em até \
           {time}. Um cookie guarda o seu lugar, então use o mesmo navegador.",
    label_ahead: "Pessoas na sua frente",
    label_waiting: "Pessoas esperando",
    label_moved: "Entraram no último minuto",
    label_wait: "Espera estimada",
    label_progress: "Seu progresso até agora",
    label_since: "Esperando desde",
    label_opens: "Abertura",
    label_reopens: "Previsão de retomada da entrada",
    label_updated: "Última atualização",
    label_room: "Sala de espera",
    label_message: "Mensagem do organizador",
    label_language: "Idioma",
    nobody: "Ninguém",
    unknown: "Ainda não se sabe",
    unknown_organiser: "Não se sabe: o organizador decide",
    unknown_fault: "Não se sabe até que o problema seja resolvido",
    any_moment: "A qualquer momento",
    up_to: "Até {time}",
    about: "Cerca de {time}",
    more_than: "Mais de {time}",
    less_than_minute: "Menos de um minuto",
    more_than_day: "Mais de um dia",
    not_sent: "Seu formulário não foi enviado.",
    send_again: "Quando for a sua vez, envie de novo.",
    cookies: "Parece que o seu navegador não guarda os cookies deste site. Sem um cookie, não \
              podemos guardar o seu lugar. Permita os cookies e recarregue a página.",
    check: "Verificar agora",
    change: "Mudar",
    live: "Esta página se atualiza sozinha.",
    checked: "Verificado agora mesmo: você ainda está esperando.",
    reloads: "Esta página verifica de novo sozinha a cada {time}.",
    turn_now: "Você está entrando agora.",
    turn_again: "Nova tentativa em 20 segundos.",
    turn_send: "Envie de novo o seu formulário.",
    offline: "Você está sem internet.",
    cut: "Sem conexão no momento.",
    safe: "Seu lugar fica guardado por {time} desde a última atualização. Tentando de novo.",
};
