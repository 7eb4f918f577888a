//! Buckets: tokens that come back, and calls that wait.

use anteroom_limit::registry::AlgorithmKind;

use super::Page;
use super::facts::{LIMIT, PARTS, back_after, policy, under_attack, visits};

pub(super) fn push(page: &mut Page) {
    page.push(format_args!(
        "## Pocket money: the token bucket (`token-bucket`, `gcra`)\n\
         \n\
         In the article's picture parents leave a child in an arcade with a bucket, and put five \
         dollars into it every hour. A client's bucket\n\
         holds up to {LIMIT} tokens, a call takes one, and {LIMIT} come back in a minute. Nobody \
         has to come and fill it: what has come in since the last\n\
         call is worked out at the next one, from two numbers, the tokens and the time. {LIMIT} \
         calls a minute, step by step:\n\
         \n"
    ));
    let rows = visits().map(|visit| {
        [
            format!("{} s", visit.at_secs),
            visit.tokens.to_string(),
            visit.calls.to_string(),
            visit.admitted.to_string(),
            (visit.tokens - visit.admitted).to_string(),
        ]
    });
    page.table(["at", "tokens", "calls", "admitted", "tokens left"], &rows);
    let bucket = policy(AlgorithmKind::TokenBucket, PARTS);
    page.push(format_args!(
        "After half a minute of silence {half} have come back, after a minute it is full, and \
         never above that. The article warns that new tokens must be worked out correctly.\n\
         What is easily done wrong there is the time that did not make a whole token: it must be \
         kept, or a client never gets all that its rate says. A new client may be given more than \
         {LIMIT}: that passes at\n\
         once, and does not come back.\n\
         \n\
         The article calls this very accurate, and it is, for a rate. For a limit in any minute \
         it is not: a client spends {LIMIT} tokens in an instant, and\n\
         then those that come back. That makes **{highest}** in one minute. `gcra` is the same in \
         one number. Anyone who wants {LIMIT} in any minute\n\
         and no more needs a small burst, or windows.\n\
         \n\
         Both read, decide and write back, so the store must do that in one piece. On this the \
         article turns: the token bucket is its best compromise of speed and accuracy, *if* the\n\
         store has transactions. With Redis it would be a script (`store = \"valkey\"` is that). \
         Memcached has counters and no transactions: *therefore* the article\n\
         approximates by windows, as above. Memcached can also swap, which the article expects to \
         get slower under load; of that more below.\n\
         \n\
         ## Let them wait: the leaky bucket (`leaky-bucket`)\n\
         \n\
         The other bucket has a hole. Calls are poured in and drip out at an even rate; what does \
         not fit is refused. The origin sees calls at least\n\
         {apart} ms apart and never more than {LIMIT} in a minute, and a call may have to wait. \
         That is the point where an even load is worth it, and a\n\
         nuisance elsewhere.\n\
         \n",
        half = back_after(30),
        highest = under_attack(bucket).highest,
        apart = 60_000 / LIMIT,
    ));
}
