//! Requests to read the configuration file again, from the API to the part of the program that can.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// Longest wait for a reload. Reading large files and templates takes a second or two.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Requests that may wait; each gets the result of its own reload.
const WAITING_MAX: usize = 4;

/// Sender of requests.
#[derive(Clone, Debug)]
pub struct Reloader(mpsc::Sender<ReloadRequest>);

/// Request to read the file again.
#[derive(Debug)]
pub struct ReloadRequest(oneshot::Sender<Result<(), Vec<String>>>);

/// Reason why a file is not in force.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum ReloadFailure {
    /// The file has mistakes, and the one before it stays in force.
    Mistakes(Vec<String>),
    /// Timeout: the program starts, ends, or reads another file.
    Late,
}

impl Reloader {
    /// Creates a sender and the receiver of its requests.
    #[must_use]
    pub fn new() -> (Self, mpsc::Receiver<ReloadRequest>) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        (Self(sender), receiver)
    }

    /// Has the file read again.
    pub(crate) async fn reload(&self) -> Result<(), ReloadFailure> {
        let (sender, result) = oneshot::channel();
        let reloading = async {
            self.0.send(ReloadRequest(sender)).await.ok()?;
            result.await.ok()
        };
        match timeout(RELOAD_TIMEOUT, reloading).await {
            Ok(Some(result)) => result.map_err(ReloadFailure::Mistakes),
            Ok(None) | Err(_) => Err(ReloadFailure::Late),
        }
    }
}

impl ReloadRequest {
    /// Responds with the mistakes of the file, if it has any.
    pub fn finish(self, result: Result<(), Vec<String>>) {
        // The client may have gone.
        let _ = self.0.send(result);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_gets_the_result_of_its_reload_or_ends() {
        let (reloader, mut requests) = Reloader::new();
        let mistakes = vec!["line 3: no such key".to_owned()];
        let reading = async {
            let results = [Ok(()), Err(mistakes.clone())];
            for result in results {
                requests.recv().await.expect("a request").finish(result);
            }
        };
        let (first, second, ()) = tokio::join!(reloader.reload(), reloader.reload(), reading);
        assert_eq!(first, Ok(()));
        assert_eq!(second, Err(ReloadFailure::Mistakes(mistakes)));
        assert_eq!(
            reloader.reload().await,
            Err(ReloadFailure::Late),
            "nobody reads"
        );
        drop(requests);
        assert_eq!(
            reloader.reload().await,
            Err(ReloadFailure::Late),
            "the process ends"
        );
    }
}
