//! Deadline of an operator's command, and the log of its failure.

use std::error::Error;
use std::future::Future;
use std::time::Duration;

use tokio::time::timeout;

/// Time after which a store counts as unavailable.
pub(crate) const COMMAND_TIMEOUT: Duration = Duration::from_secs(3);

/// Error of a command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandFailure<E: Error + 'static> {
    /// The command failed.
    #[error(transparent)]
    Failed(E),
    /// The command did not end within [`COMMAND_TIMEOUT`].
    #[error("no reply within {} s", COMMAND_TIMEOUT.as_secs())]
    Late,
    /// The task panicked; the panic is logged.
    #[error("the task ended early")]
    Ended,
}

/// Runs a command with a deadline. After the deadline it continues in its own task, so that this
/// node applies what it has stored.
pub(crate) async fn in_time<T, E>(
    work: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, CommandFailure<E>>
where
    T: Send + 'static,
    E: Error + Send + 'static,
{
    match timeout(COMMAND_TIMEOUT, tokio::spawn(work)).await {
        Ok(Ok(done)) => done.map_err(CommandFailure::Failed),
        Ok(Err(_)) => Err(CommandFailure::Ended),
        Err(_) => Err(CommandFailure::Late),
    }
}

/// Logs that a command was rejected because the store was unreachable.
pub(crate) fn log_rejected(about: &str, command: &str, cause: &(dyn Error + 'static)) {
    tracing::warn!(
        about,
        command,
        cause,
        "operator command rejected: store unreachable"
    );
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Returns the log of one rejected command.
    fn logged(cause: &(dyn Error + 'static)) -> String {
        let text = Arc::new(Mutex::new(Vec::new()));
        let writer = Written(Arc::clone(&text));
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .without_time()
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            log_rejected("room shop", "pause", cause);
        });
        let text = text.lock().unwrap().clone();
        String::from_utf8(text).unwrap()
    }

    #[derive(Clone)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_rejected_command_is_an_event_with_fields() {
        let failing = async { Err::<(), _>(io::Error::other("connection refused")) };
        let failed = in_time(failing).await.unwrap_err();
        let line = logged(&failed);
        assert!(
            line.contains("operator command rejected: store unreachable"),
            "{line}"
        );
        assert!(
            line.contains("command=\"pause\" cause=connection refused"),
            "{line}"
        );
        let late = in_time(std::future::pending::<Result<(), io::Error>>()).await;
        let line = logged(&late.unwrap_err());
        assert!(line.contains("cause=no reply within 3 s"), "{line}");
        assert!(!line.contains("Err(") && !line.contains("Ok("), "{line}");
    }
}
