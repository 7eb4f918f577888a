//! Buckets: tokens that come back, and requests that wait.

use anteroom_limit::registry::AlgorithmKind;

use super::Page;
use super::facts::{LIMIT, PARTS, back_after, policy, under_attack, visits};

pub(super) fn push(page: &mut Page) {
    page.push(format_args!(
        "## Pocket money: the token bucket (`token-bucket`, `gcra`)\n\
         \n\
         In the article's picture, parents leave a child in an arcade with a bucket, and put five \
         dollars into it every hour. A client's bucket holds up to {LIMIT} tokens. A request takes \
         one, and {LIMIT} come back in a minute. No timer fills it: the next request computes the \
         new tokens from two numbers, the tokens and the time. {LIMIT} requests a minute, step by \
         step:\n\
         \n"
    ));
    let rows = visits().map(|visit| {
        [
            format!("{} s", visit.at_secs),
            visit.tokens.to_string(),
            visit.requests.to_string(),
            visit.admitted.to_string(),
            (visit.tokens - visit.admitted).to_string(),
        ]
    });
    page.table(
        ["at", "tokens", "requests", "allowed", "tokens left"],
        &rows,
    );
    let bucket = policy(AlgorithmKind::TokenBucket, PARTS);
    page.push(format_args!(
        "After half a minute without requests {half} tokens have come back. After a minute the \
         bucket is full, and it never has more. The article warns that new tokens must be computed \
         correctly. A frequent mistake is to drop the time that did not make a whole token. Then a \
         client never gets its full rate. A new client may start with more than {LIMIT} tokens. \
         They pass at once, and do not come back.\n\
         \n\
         The article calls this very accurate, and for a rate it is. For a limit in any minute it \
         is not. A client spends {LIMIT} tokens in an instant, and then those that come back. That \
         makes **{highest}** in one minute. `gcra` is the same in one number. For at most {LIMIT} \
         in any minute you need a small burst, or windows.\n\
         \n\
         Both algorithms read, decide and write back, so the store must do that in one step. This \
         decides the article's choice. The token bucket is its best compromise of speed and \
         accuracy, *if* the store has transactions. With Redis a script does it (`store = \
         \"valkey\"`). Memcached has counters and no transactions. *Therefore* the article \
         approximates by windows, as above. Memcached can also swap values, and the article \
         expects that to slow down under load. See below.\n\
         \n\
         ## Let them wait: the leaky bucket (`leaky-bucket`)\n\
         \n\
         The other bucket has a hole. Requests enter it and leave at an even rate, and the bucket \
         rejects those that do not fit. The origin sees requests at least {apart} ms apart and \
         never more than {LIMIT} in a minute. A request may have to wait. That is useful where the \
         origin needs an even load, and a nuisance elsewhere.\n\
         \n",
        half = back_after(30),
        highest = under_attack(bucket).highest,
        apart = 60_000 / LIMIT,
    ));
}
