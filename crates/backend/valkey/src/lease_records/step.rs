//! Calls the script that grants leases in one step, and decodes its replies.

use anteroom_limit::leases::parent::PART_OF_REMAINING;
use anteroom_limit::policy::Policy;
use anteroom_limit::registry::Remembers;
use anteroom_limit::time::TimestampUs;
use anteroom_limit_store::lease_store::record;
use anteroom_limit_store::lease_store::step::{Step, StepGrant, Stepped};
use anteroom_limit_store::lease_store::{Loaded, StoredRecord};
use anteroom_limit_store::shared::TestTime;
use anteroom_store::Identity;
use redis::{Cmd, Value};

use super::{Server, kept, token_bytes};
use crate::counts::is_exact;
use crate::counts::script::add_settings;
use crate::failure::Failure;
use crate::link::ServerReply;
use crate::route::Route;
use crate::script::{Text, number};

/// Creates a script with the parts of one way of counting only, as each part costs time in every
/// call.
macro_rules! text {
    ($($of_the_limit:literal),+) => {
        Text::new(concat!(
            include_str!("../counts/exact.lua"),
            $(include_str!($of_the_limit),)+
            include_str!("step.lua"),
        ))
    };
}

/// Script that grants leases.
pub(super) struct StepScript {
    counters: Text,
    pace: Text,
    bucket: Text,
    log: Text,
    /// Clock of a test.
    time: Option<TestTime>,
}

impl StepScript {
    pub(super) fn new(time: Option<TestTime>) -> Self {
        Self {
            counters: text!(
                "../counts/products.lua",
                "../counts/wide.lua",
                "../counts/counters.lua",
                "counters.lua"
            ),
            pace: text!(
                "../counts/products.lua",
                "../counts/wide.lua",
                "../counts/pace.lua",
                "pace.lua"
            ),
            bucket: text!(
                "../counts/products.lua",
                "../counts/wide.lua",
                "../counts/token_bucket.lua",
                "token_bucket.lua"
            ),
            log: text!("sliding_log.lua"),
            time,
        }
    }

    /// Returns the time of a test's clock.
    pub(super) fn test_time(&self) -> Option<TimestampUs> {
        self.time.as_ref().map(TestTime::now)
    }

    /// Returns the text for a limit; `None` if the script cannot grant leases of it.
    fn text(&self, widened: &Policy) -> Option<&Text> {
        match widened.row().remembers {
            Remembers::Requests => Some(&self.log),
            Remembers::Counts => Some(&self.counters),
            Remembers::Tokens => Some(&self.bucket),
            Remembers::Time => is_exact(widened).then_some(&self.pace),
        }
    }

    /// Returns whether the script can grant leases of this limit.
    pub(super) fn can_grant(&self, step: &Step<'_>) -> bool {
        self.text(step.leased_limit.widened()).is_some()
    }

    /// Calls the script; `names` are the keys of the epoch and of the client.
    pub(super) async fn call(
        &self,
        route: &Route,
        names: &[&str],
        step: &Step<'_>,
    ) -> Result<Stepped, Failure> {
        let widened = step.leased_limit.widened();
        let Some(text) = self.text(widened) else {
            return Ok(Stepped::OtherStore);
        };
        let letter = widened.row().state_letter;
        let now = self.test_time();
        let tokens = [token_bytes(step.epoch_token), token_bytes(step.token)];
        let (head, unheard_of) = (step.head(), record::encode(&step.for_new_client()));
        let add_args = |command: &mut Cmd| {
            command.arg(names.len()).arg(names);
            match now {
                None => command.arg(""),
                Some(TimestampUs(now)) => command.arg(now),
            };
            command.arg(&tokens[0]).arg(step.epoch.began_at.0);
            command.arg(&tokens[1]).arg(&head).arg(&unheard_of);
            let request = step.request;
            command.arg(request.least).arg(request.waiting);
            command.arg(request.most).arg(PART_OF_REMAINING);
            command.arg(step.leased_limit.kept_for().0).arg(letter);
            add_settings(command, widened);
        };
        let key = names.first().copied().unwrap_or_default();
        let meant_for = Identity(step.store().0);
        match text.call_with(route, key, add_args, Some(meant_for)).await {
            Ok(ServerReply { value, connection }) => {
                let read = read(value, Server::of(&connection));
                read.ok_or_else(|| connection.unexpected_reply("no grant"))
            }
            Err(failure) if failure.is_meant_for_another() => Ok(Stepped::OtherStore),
            Err(failure) => Err(failure),
        }
    }
}

/// Decodes the prior record, the grant or the epoch, and the time; `None` if the reply is invalid.
fn read(value: Value, server: Server) -> Option<Stepped> {
    let Value::Array(parts) = value else {
        return None;
    };
    let [client, held, now] = <[Value; 3]>::try_from(parts).ok()?;
    let (client, now) = (kept(client)?, TimestampUs(number(&now)?));
    Some(match held {
        Value::Int(held) => Stepped::Granted(StepGrant {
            granted: u32::try_from(held).ok().filter(|held| *held > 0)?,
            record: client.map(|StoredRecord { value, .. }| value),
            now,
        }),
        epoch => Stepped::NotTaken(Loaded {
            client,
            epoch: kept(epoch)?,
            now,
            identity: server.identity,
            longest_loss: server.longest_loss,
        }),
    })
}

#[cfg(test)]
mod tests {
    use anteroom_limit::leases::epoch::StoreIdentity;
    use anteroom_limit::time::DurationUs;
    use anteroom_limit_store::lease_store::Token;

    use super::super::tests::SERVER;

    use super::*;

    fn bytes(bytes: &[u8]) -> Value {
        Value::BulkString(bytes.to_vec())
    }

    fn check(parts: [Value; 3], expected: Option<Stepped>) {
        let reply = Value::Array(parts.to_vec());
        assert_eq!(read(reply, SERVER), expected);
    }

    #[test]
    fn a_grant_has_the_prior_record() {
        let record = bytes(b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01abc");
        let granted = |record: Option<&[u8]>| {
            let record = record.map(<[u8]>::to_vec);
            let now = TimestampUs(5);
            Some(Stepped::Granted(StepGrant {
                granted: 7,
                record,
                now,
            }))
        };
        let (held, now) = (Value::Int(7), bytes(b"5"));
        check(
            [record.clone(), held.clone(), now.clone()],
            granted(Some(b"abc")),
        );
        check([Value::Nil, held.clone(), now.clone()], granted(None));
        let kept = |value: &[u8]| {
            let (token, value) = (Token(1), value.to_vec());
            Some(StoredRecord { token, value })
        };
        let not = Stepped::NotTaken(Loaded {
            client: None,
            epoch: kept(b"abc"),
            now: TimestampUs(5),
            identity: StoreIdentity(3),
            longest_loss: Some(DurationUs(9)),
        });
        check([Value::Nil, record.clone(), now.clone()], Some(not));
        for held in [
            Value::Int(0),
            Value::Int(-1),
            Value::Int(1 << 32),
            bytes(b"7"),
        ] {
            check([record.clone(), held, now.clone()], None);
        }
        check([bytes(b"abc"), held.clone(), now], None);
        check([record, held, Value::Nil], None);
        assert_eq!(read(Value::Nil, SERVER), None);
    }
}
