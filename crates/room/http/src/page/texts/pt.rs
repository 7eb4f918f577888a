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
    what: "Esta é uma sala de espera. Ela deixa entrar de cada vez só tantas pessoas quantas este \
           site consegue atender bem.",
    full: "Neste momento há tantos visitantes quantos este site consegue atender bem. Você entra \
           assim que houver lugar para você.",
    line_moves: "As pessoas estão entrando agora, uma depois da outra. Você entra assim que for a \
                 sua vez.",
    lot_moves: "As pessoas estão entrando agora, e desta vez outras foram sorteadas. O próximo \
                sorteio é uma nova chance.",
    queue_all: "O organizador está mantendo todos aqui por enquanto e deixará entrar mais tarde.",
    paused: "O organizador pausou a entrada. Ninguém entra até que ela seja retomada, e ninguém \
             perde o seu lugar.",
    early: "A abertura será no horário indicado abaixo. Você chegou cedo e não precisa fazer nada \
            até lá.",
    early_unknown: "Não está aberto, e o horário de abertura ainda não foi definido.",
    rejecting: "Este site não está recebendo novos visitantes no momento, e não há fila. Volte \
                mais tarde.",
    store_away: "Uma parte desta sala de espera está fora do ar. Até ela voltar ninguém entra, \
                 para que o site não fique sobrecarregado.",
    recovering: "Depois de uma falha, todos os que estão dentro estão sendo contados de novo. Até \
                 terminar ninguém mais entra, para que o site não fique sobrecarregado.",
    recovering_unknown: "Ainda não se sabe quanto tempo isso vai levar.",
    origin_down: "O site por trás desta sala de espera não está respondendo bem. Até que responda \
                  ninguém entra: você só veria um erro.",
    order_first: "Quem chegou primeiro entra primeiro.",
    order_draw: "Todos os que estiverem aqui antes da abertura participam de um sorteio da ordem; \
                 chegar mais cedo não é vantagem. Quem chegar depois fica atrás.",
    order_drawn: "A ordem de quem estava aqui antes da abertura foi sorteada. Quem chegou depois \
                  fica atrás, por ordem de chegada.",
    order_lot: "Não há ordem fixa: sempre que há lugar, é sorteado quem entra. Recarregar a \
                página não ajuda nem atrapalha.",
    kept: "Seu lugar está guardado. Você pode recarregar esta página, ou fechá-la e voltar em até \
           {time}, sem perder nada. Ele é lembrado por um cookie, então use o mesmo navegador.",
    label_ahead: "Pessoas na sua frente",
    label_waiting: "Pessoas esperando",
    label_moved: "Entraram no último minuto",
    label_wait: "Espera estimada",
    label_progress: "Seu avanço na fila até agora",
    label_since: "Esperando desde",
    label_opens: "Abertura",
    label_reopens: "Previsão para voltar a deixar entrar",
    label_updated: "Última atualização",
    label_room: "Sala de espera",
    label_message: "Mensagem do organizador",
    label_language: "Idioma",
    nobody: "Ninguém",
    unknown: "Ainda não se sabe",
    unknown_organiser: "Não se sabe: o organizador decide",
    unknown_fault: "Não se sabe até que seja consertado",
    any_moment: "A qualquer momento",
    up_to: "Até {time}",
    about: "Cerca de {time}",
    more_than: "Mais de {time}",
    less_than_minute: "Menos de um minuto",
    more_than_day: "Mais de um dia",
    not_sent: "O que você enviou não foi repassado.",
    send_again: "Quando for a sua vez, envie de novo.",
    cookies: "Parece que este navegador não guarda os cookies deste site. Sem um cookie o seu \
              lugar não pode ser lembrado. Permita os cookies e recarregue a página.",
    check: "Verificar agora",
    change: "Mudar",
    live: "Esta página se atualiza sozinha.",
    checked: "Verificado agora mesmo: você ainda está esperando.",
    reloads: "Esta página pergunta de novo sozinha a cada {time}.",
    turn_now: "Você está entrando agora.",
    turn_again: "Nova tentativa em 20 segundos.",
    turn_send: "Envie de novo o que não foi repassado.",
    offline: "Você está sem internet.",
    cut: "Sem conexão no momento.",
    safe: "Seu lugar fica guardado por {time} desde a última atualização; tentando de novo.",
};
