//! What every store must do that lends in one step: what [`Step::take`] says, to the byte.

use anteroom_limit::lending::epoch::{Before, Epoch, EpochId, StoreIdentity};
use anteroom_limit::lending::message::{Request, RequestId};
use anteroom_limit::lending::record::Record;
use anteroom_limit::lending::widened::LeasedLimit;
use anteroom_limit::rate::Rate;
use anteroom_limit::registry::{AlgorithmKind, LeaseRule, Remembers};
use anteroom_limit::settings::Settings;
use anteroom_limit::time::DurationUs;
use futures_util::future::join_all;

use super::{On, client};
use crate::lent::step::{Step, Stepped};
use crate::lent::{Kept, LeaseKey, Loaded, Swapped, Token, record};
use crate::shared::CountsError;

/// Longer than any of this takes.
const WINDOW: DurationUs = DurationUs::from_secs(600);
/// So many steps are taken at once.
const AT_ONCE: u32 = 8;

fn request(least: u32, wants: u32, most: u32) -> Request {
    Request {
        id: RequestId {
            incarnation: 1,
            number: 1,
        },
        least,
        wants,
        most,
    }
}

/// One of each algorithm that can be lent.
fn lendings() -> Vec<LeasedLimit> {
    let fits = "it fits";
    let rate = Rate::new(50, WINDOW).expect(fits);
    let settings = Settings {
        sub_windows: Some(4),
        burst: Some(40),
        initial_burst: Some(50),
        queue: None,
    };
    let lent = AlgorithmKind::ALL.iter();
    let lent = lent.filter(|kind| kind.row().lent != LeaseRule::Never);
    let policies = lent.map(|kind| kind.build(rate, &settings).expect(fits));
    policies
        .map(|policy| LeasedLimit::new(policy).expect(fits))
        .collect()
}

/// What a step leaves alone.
struct Unusual {
    what: &'static str,
    /// As the node knows it.
    epoch: (Epoch, Token),
    lending: LeasedLimit,
    /// The record that is there.
    value: Vec<u8>,
}

fn all_that_is_unusual(epoch: &(Epoch, Token), lending: &LeasedLimit) -> Vec<Unusual> {
    let (known, token) = *epoch;
    let ahead = known.began_at + WINDOW;
    let later = EpochId {
        number: 8,
        random: 1,
    };
    let later = Epoch { id: later, ..known };
    let in_future = Epoch {
        began_at: ahead,
        ..known
    };
    let other_limit = LeasedLimit::with_part(*lending.promised(), 400).expect("it is short");
    let record = Record::unheard_of(lending, &known);
    let as_of_ahead = Record {
        as_of: ahead,
        ..record.clone()
    };
    let nothing_until_ahead = Record {
        nothing_until: ahead,
        ..record.clone()
    };
    let usual = record::encode(&record);
    let with_state = |state: &str| [&usual[..usual.len() - 1], state.as_bytes(), b";"].concat();
    let by = |what, epoch, lending: &LeasedLimit, value: &[u8]| Unusual {
        what,
        epoch,
        lending: *lending,
        value: value.to_vec(),
    };
    let of = |what, value: Vec<u8>| by(what, (known, token), lending, &value);
    let unheard_of = Token(0xFFFF);
    let mut all = vec![
        by(
            "another write's epoch",
            (known, unheard_of),
            lending,
            &usual,
        ),
        by("another epoch", (later, token), lending, &usual),
        by("an epoch to come", (in_future, token), lending, &usual),
        by("another limit", (known, token), &other_limit, &usual),
        of("a record that lies ahead", record::encode(&as_of_ahead)),
        of("all is spent", record::encode(&nothing_until_ahead)),
        of("a record that cannot be read", with_state("x")),
        of("no record at all", Vec::new()),
    ];
    if lending.promised().row().remembers == Remembers::Calls {
        // All of them of calls that do not count any more, so nothing but their form speaks against
        // them.
        for damaged in [
            "d",
            "d 5",
            "d 5 1 7",
            "d 5 1 ",
            "d  5 1",
            "d 5  1",
            "d 5 1  7 1",
            "d 5 0",
            "d 5 1 7 0",
            "d 5 4294967296",
        ] {
            all.push(of("a log that cannot be read", with_state(damaged)));
        }
    }
    all
}

impl On<'_> {
    /// Runs this part of the list, if the store lends in steps at all.
    pub(super) async fn steps(&self) -> Result<(), CountsError> {
        let lendings = lendings();
        let epoch = self.epoch().await?;
        let probe = request(0, 0, 0);
        let probe = self.one(&epoch, &lendings[0], &probe);
        let client = client("steps", 1);
        if self.store.step(self.shelf, client, probe).is_none() {
            return Ok(());
        }
        for (limit, lending) in lendings.iter().enumerate() {
            let limit = format!("steps-{limit}");
            self.what_is_lent_in_one_step_is_what_would_have_been_lent(&epoch, &limit, lending)
                .await?;
            self.what_is_unusual_is_brought_and_left_alone(&epoch, &limit, lending)
                .await?;
            self.steps_at_once_lend_no_more_together_than_there_is(&epoch, &limit, lending)
                .await?;
        }
        Ok(())
    }

    /// An epoch before which nothing was spent, in the place of the one that lies here.
    async fn epoch(&self) -> Result<(Epoch, Token), CountsError> {
        let here = self.store.load(self.shelf, None).await?;
        let token = 0x5000 + here.now.0;
        let written = self.swap_epoch(here.expected(), token.into(), b"").await?;
        assert_eq!(written, Swapped::Written);
        let epoch = Epoch {
            id: EpochId {
                number: 7,
                random: u64::MAX,
            },
            identity: here.identity,
            began_at: here.now,
            before: Before::Nothing,
        };
        Ok((epoch, Token(token.into())))
    }

    fn one<'s>(
        &self,
        (epoch, token): &'s (Epoch, Token),
        lending: &'s LeasedLimit,
        request: &'s Request,
    ) -> Step<'s> {
        Step {
            epoch,
            epoch_token: *token,
            token: Token(0x6000 + u128::from(request.most)),
            lending,
            request,
        }
    }

    async fn take(&self, client: LeaseKey<'_>, step: Step<'_>) -> Result<Stepped, CountsError> {
        let stepped = self.store.step(self.shelf, client, step);
        stepped.expect("it lends by all of them or by none").await
    }

    async fn what_is_lent_in_one_step_is_what_would_have_been_lent(
        &self,
        epoch: &(Epoch, Token),
        limit: &str,
        lending: &LeasedLimit,
    ) -> Result<(), CountsError> {
        let one = client(limit, 1);
        // The first finds nothing; the last finds too little.
        for (least, wants, most, is_lent) in [
            (1, 2, 5, true),
            (1, 1, 3, true),
            (0, 0, 0, false),
            (1, 0, 9, true),
            (1, 900, 901, true),
            (1, 1, 4, false),
        ] {
            let request = request(least, wants, most);
            let step = self.one(epoch, lending, &request);
            let found = self.load(one).await?;
            let stepped = self.take(one, step).await?;
            let left = self.load(one).await?;
            let Stepped::GrantOutcome(lent) = stepped else {
                assert!(!is_lent, "{lending:?} {request:?}: {stepped:?}");
                assert_eq!(left.client, found.client);
                continue;
            };
            assert!(lent.now >= found.now && lent.now <= left.now);
            let now = lent.now;
            let taken = step.take(&Loaded { now, ..found });
            let taken = taken.expect("it is lent by the algorithm too");
            assert_eq!(lent, taken.lent, "{lending:?} {request:?}");
            let (token, value) = (step.token, taken.value);
            assert_eq!(left.client, Some(Kept { token, value }), "{lending:?}");
        }
        Ok(())
    }

    /// Whatever it is: nothing is written, and what is there is brought.
    async fn what_is_unusual_is_brought_and_left_alone(
        &self,
        epoch: &(Epoch, Token),
        limit: &str,
        lending: &LeasedLimit,
    ) -> Result<(), CountsError> {
        let one = client(limit, 2);
        let request = request(1, 1, 1);
        for unusual in all_that_is_unusual(epoch, lending) {
            let what = unusual.what;
            let expected = self.load(one).await?.expected();
            let written = self.swap(one, expected, 0x7000, &unusual.value).await?;
            assert_eq!(written, Swapped::Written);
            let step = self.one(&unusual.epoch, &unusual.lending, &request);
            let stepped = self.take(one, step).await?;
            let Stepped::Not(brought) = stepped else {
                panic!("{what}: {lending:?}: {stepped:?}");
            };
            let there = self.load(one).await?;
            let now = brought.now;
            assert!(now <= there.now, "{what}");
            assert_eq!(brought, Loaded { now, ..there }, "{what}");
            let value = brought.client.map(|kept| kept.value);
            assert_eq!(value, Some(unusual.value), "{what}");
        }
        self.another_store_is_not_asked(epoch, one, lending).await?;
        self.a_client_who_has_none_is_brought_too(epoch, limit, lending)
            .await
    }

    async fn another_store_is_not_asked(
        &self,
        (epoch, token): &(Epoch, Token),
        one: LeaseKey<'_>,
        lending: &LeasedLimit,
    ) -> Result<(), CountsError> {
        let elsewhere = Epoch {
            identity: StoreIdentity(epoch.identity.0 ^ 1),
            ..*epoch
        };
        let before = self.load(one).await?.client;
        let (request, elsewhere) = (request(1, 1, 1), (elsewhere, *token));
        let stepped = self.take(one, self.one(&elsewhere, lending, &request));
        assert_eq!(stepped.await?, Stepped::OtherStore);
        assert_eq!(self.load(one).await?.client, before);
        Ok(())
    }

    /// Before a loss it may have had one.
    async fn a_client_who_has_none_is_brought_too(
        &self,
        (epoch, token): &(Epoch, Token),
        limit: &str,
        lending: &LeasedLimit,
    ) -> Result<(), CountsError> {
        let lost = Epoch {
            before: Before::Lost,
            // So a bucket has not filled up.
            began_at: self.store.load(self.shelf, None).await?.now,
            ..*epoch
        };
        let (nobody, request) = (client(limit, 3), request(30, 30, 30));
        let lost = (lost, *token);
        let stepped = self
            .take(nobody, self.one(&lost, lending, &request))
            .await?;
        assert!(
            matches!(stepped, Stepped::Not(_)),
            "{lending:?}: {stepped:?}"
        );
        assert_eq!(self.load(nobody).await?.client, None);
        Ok(())
    }

    async fn steps_at_once_lend_no_more_together_than_there_is(
        &self,
        epoch: &(Epoch, Token),
        limit: &str,
        lending: &LeasedLimit,
    ) -> Result<(), CountsError> {
        let one = client(limit, 4);
        let requests: Vec<Request> = (0..AT_ONCE).map(|at| request(1, 7, 7 + at)).collect();
        let steps = requests
            .iter()
            .map(|request| self.take(one, self.one(epoch, lending, request)));
        let stepped: Result<Vec<Stepped>, CountsError> =
            join_all(steps).await.into_iter().collect();
        let held = stepped?.into_iter().map(|stepped| match stepped {
            Stepped::GrantOutcome(lent) => u64::from(lent.held),
            _ => 0,
        });
        // Each asks for seven at least, and nothing comes back meanwhile but what a bucket gives.
        let most = lending.widened().rate().calls().min(50);
        let sum: u64 = held.sum();
        assert!(sum > 28 && sum <= u64::from(most), "{lending:?}: {sum}");
        Ok(())
    }
}
