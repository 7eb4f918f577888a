//! Conformance list of stores that grant in one step: results equal those of [`Step::take`], to the
//! byte.

use anteroom_limit::leases::epoch::{Before, Epoch, EpochId, StoreIdentity};
use anteroom_limit::leases::message::{Request, RequestId};
use anteroom_limit::leases::record::Record;
use anteroom_limit::leases::widened::LeasedLimit;
use anteroom_limit::rate::Rate;
use anteroom_limit::registry::{AlgorithmKind, LeaseRule, Remembers};
use anteroom_limit::settings::Settings;
use anteroom_limit::time::DurationUs;
use futures_util::future::join_all;

use super::{PartitionUnderTest, client};
use crate::lease_store::step::{Step, Stepped};
use crate::lease_store::{LeaseKey, Loaded, StoredRecord, Swapped, Token, record};
use crate::shared::CountsError;

/// Longer than the whole list takes.
const WINDOW: DurationUs = DurationUs::from_secs(600);
/// Number of concurrent steps.
const AT_ONCE: u32 = 8;

fn request(least: u32, waiting: u32, most: u32) -> Request {
    Request {
        id: RequestId {
            incarnation: 1,
            number: 1,
        },
        least,
        waiting,
        most,
    }
}

/// Returns a limit of each algorithm that can be leased.
fn leased_limits() -> Vec<LeasedLimit> {
    let fits = "it fits";
    let rate = Rate::new(50, WINDOW).expect(fits);
    let settings = Settings {
        sub_windows: Some(4),
        burst: Some(40),
        initial_burst: Some(50),
        queue: None,
    };
    let leasable = AlgorithmKind::ALL.iter();
    let leasable = leasable.filter(|kind| kind.row().lease_rule != LeaseRule::Never);
    let policies = leasable.map(|kind| kind.build(rate, &settings).expect(fits));
    policies
        .map(|policy| LeasedLimit::new(policy).expect(fits))
        .collect()
}

/// Case that a step must leave to the node.
struct UnusualCase {
    what: &'static str,
    /// Epoch as the node knows it.
    epoch: (Epoch, Token),
    leased_limit: LeasedLimit,
    /// Record in the store.
    value: Vec<u8>,
}

fn unusual_cases(epoch: &(Epoch, Token), leased_limit: &LeasedLimit) -> Vec<UnusualCase> {
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
    let other_limit = LeasedLimit::with_part(*leased_limit.promised(), 400).expect("it is short");
    let record = Record::unknown_client(leased_limit, &known);
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
    let by = |what, epoch, leased_limit: &LeasedLimit, value: &[u8]| UnusualCase {
        what,
        epoch,
        leased_limit: *leased_limit,
        value: value.to_vec(),
    };
    let of = |what, value: Vec<u8>| by(what, (known, token), leased_limit, &value);
    let unknown = Token(0xFFFF);
    let mut all = vec![
        by(
            "another write's epoch",
            (known, unknown),
            leased_limit,
            &usual,
        ),
        by("another epoch", (later, token), leased_limit, &usual),
        by("an epoch to come", (in_future, token), leased_limit, &usual),
        by("another limit", (known, token), &other_limit, &usual),
        of("a record that lies ahead", record::encode(&as_of_ahead)),
        of("all is spent", record::encode(&nothing_until_ahead)),
        of("a record that cannot be read", with_state("x")),
        of("no record at all", Vec::new()),
    ];
    if leased_limit.promised().row().remembers == Remembers::Requests {
        // All log entries are so old that they do not count, so only their form is at fault.
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

impl PartitionUnderTest<'_> {
    /// Runs this part of the list, if the store takes steps at all.
    pub(super) async fn steps(&self) -> Result<(), CountsError> {
        let leased_limits = leased_limits();
        let epoch = self.epoch().await?;
        let probe = request(0, 0, 0);
        let probe = self.one(&epoch, &leased_limits[0], &probe);
        let client = client("steps", 1);
        if self.store.step(self.partition, client, probe).is_none() {
            return Ok(());
        }
        for (limit, leased_limit) in leased_limits.iter().enumerate() {
            let limit = format!("steps-{limit}");
            self.a_step_grants_what_the_rule_grants(&epoch, &limit, leased_limit)
                .await?;
            self.unusual_records_are_returned_unchanged(&epoch, &limit, leased_limit)
                .await?;
            self.concurrent_steps_grant_no_more_than_the_limit(&epoch, &limit, leased_limit)
                .await?;
        }
        Ok(())
    }

    /// Writes an epoch before which nothing was spent, in place of the current one.
    async fn epoch(&self) -> Result<(Epoch, Token), CountsError> {
        let current = self.store.load(self.partition, None).await?;
        let token = 0x5000 + current.now.0;
        let written = self
            .swap_epoch(current.expected(), token.into(), b"")
            .await?;
        assert_eq!(written, Swapped::Written);
        let epoch = Epoch {
            id: EpochId {
                number: 7,
                random: u64::MAX,
            },
            identity: current.identity,
            began_at: current.now,
            before: Before::Nothing,
            longest_loss: None,
        };
        Ok((epoch, Token(token.into())))
    }

    fn one<'s>(
        &self,
        (epoch, token): &'s (Epoch, Token),
        leased_limit: &'s LeasedLimit,
        request: &'s Request,
    ) -> Step<'s> {
        Step {
            epoch,
            epoch_token: *token,
            token: Token(0x6000 + u128::from(request.most)),
            leased_limit,
            request,
        }
    }

    async fn take(&self, client: LeaseKey<'_>, step: Step<'_>) -> Result<Stepped, CountsError> {
        let stepped = self.store.step(self.partition, client, step);
        stepped
            .expect("it takes steps for all limits or for none")
            .await
    }

    async fn a_step_grants_what_the_rule_grants(
        &self,
        epoch: &(Epoch, Token),
        limit: &str,
        leased_limit: &LeasedLimit,
    ) -> Result<(), CountsError> {
        let one = client(limit, 1);
        // The first finds no record; the last finds too little left.
        for (least, wants, most, is_granted) in [
            (1, 2, 5, true),
            (1, 1, 3, true),
            (0, 0, 0, false),
            (1, 0, 9, true),
            (1, 900, 901, true),
            (1, 1, 4, false),
        ] {
            let request = request(least, wants, most);
            let step = self.one(epoch, leased_limit, &request);
            let found = self.load(one).await?;
            let stepped = self.take(one, step).await?;
            let left = self.load(one).await?;
            let Stepped::Granted(grant) = stepped else {
                assert!(!is_granted, "{leased_limit:?} {request:?}: {stepped:?}");
                assert_eq!(left.client, found.client);
                continue;
            };
            assert!(grant.now >= found.now && grant.now <= left.now);
            let now = grant.now;
            let taken = step.take(&Loaded { now, ..found });
            let taken = taken.expect("the rule grants it too");
            assert_eq!(grant, taken.grant, "{leased_limit:?} {request:?}");
            let (token, value) = (step.token, taken.value);
            assert_eq!(
                left.client,
                Some(StoredRecord { token, value }),
                "{leased_limit:?}"
            );
        }
        Ok(())
    }

    /// Checks that in all these cases the step writes nothing, and returns the current records.
    async fn unusual_records_are_returned_unchanged(
        &self,
        epoch: &(Epoch, Token),
        limit: &str,
        leased_limit: &LeasedLimit,
    ) -> Result<(), CountsError> {
        let one = client(limit, 2);
        let request = request(1, 1, 1);
        for unusual in unusual_cases(epoch, leased_limit) {
            let what = unusual.what;
            let expected = self.load(one).await?.expected();
            let written = self.swap(one, expected, 0x7000, &unusual.value).await?;
            assert_eq!(written, Swapped::Written);
            let step = self.one(&unusual.epoch, &unusual.leased_limit, &request);
            let stepped = self.take(one, step).await?;
            let Stepped::NotTaken(returned) = stepped else {
                panic!("{what}: {leased_limit:?}: {stepped:?}");
            };
            let current = self.load(one).await?;
            let now = returned.now;
            assert!(now <= current.now, "{what}");
            assert_eq!(returned, Loaded { now, ..current }, "{what}");
            let value = returned.client.map(|kept| kept.value);
            assert_eq!(value, Some(unusual.value), "{what}");
        }
        self.another_store_takes_no_step(epoch, one, leased_limit)
            .await?;
        self.an_absent_record_is_returned_after_a_loss(epoch, limit, leased_limit)
            .await
    }

    async fn another_store_takes_no_step(
        &self,
        (epoch, token): &(Epoch, Token),
        one: LeaseKey<'_>,
        leased_limit: &LeasedLimit,
    ) -> Result<(), CountsError> {
        let other_store = Epoch {
            identity: StoreIdentity(epoch.identity.0 ^ 1),
            ..*epoch
        };
        let before = self.load(one).await?.client;
        let (request, other_store) = (request(1, 1, 1), (other_store, *token));
        let stepped = self.take(one, self.one(&other_store, leased_limit, &request));
        assert_eq!(stepped.await?, Stepped::OtherStore);
        assert_eq!(self.load(one).await?.client, before);
        Ok(())
    }

    async fn an_absent_record_is_returned_after_a_loss(
        &self,
        (epoch, token): &(Epoch, Token),
        limit: &str,
        leased_limit: &LeasedLimit,
    ) -> Result<(), CountsError> {
        let lost = Epoch {
            before: Before::Lost,
            // At the epoch's start no bucket has refilled.
            began_at: self.store.load(self.partition, None).await?.now,
            ..*epoch
        };
        let (nobody, request) = (client(limit, 3), request(30, 30, 30));
        let lost = (lost, *token);
        let stepped = self
            .take(nobody, self.one(&lost, leased_limit, &request))
            .await?;
        assert!(
            matches!(stepped, Stepped::NotTaken(_)),
            "{leased_limit:?}: {stepped:?}"
        );
        assert_eq!(self.load(nobody).await?.client, None);
        Ok(())
    }

    async fn concurrent_steps_grant_no_more_than_the_limit(
        &self,
        epoch: &(Epoch, Token),
        limit: &str,
        leased_limit: &LeasedLimit,
    ) -> Result<(), CountsError> {
        let one = client(limit, 4);
        let requests: Vec<Request> = (0..AT_ONCE).map(|at| request(1, 7, 7 + at)).collect();
        let steps = requests
            .iter()
            .map(|request| self.take(one, self.one(epoch, leased_limit, request)));
        let stepped: Result<Vec<Stepped>, CountsError> =
            join_all(steps).await.into_iter().collect();
        let granted = stepped?.into_iter().map(|stepped| match stepped {
            Stepped::Granted(grant) => u64::from(grant.granted),
            _ => 0,
        });
        // Each request needs at least seven, and only a bucket refills meanwhile.
        let most = leased_limit.widened().rate().requests().min(50);
        let sum: u64 = granted.sum();
        assert!(
            sum > 28 && sum <= u64::from(most),
            "{leased_limit:?}: {sum}"
        );
        Ok(())
    }
}
