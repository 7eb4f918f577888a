//! Builds of later steps while the tests run. Most tests wait, and processors are idle then.
//!
//! The builds have the lowest priority, so tests come first. Nobody looks at their output or at
//! their errors: the later step repeats each command, and reports what fails.

use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};

use crate::step::Step;
use crate::{bench, requirements, workspace};

/// Commands that run one after the other.
#[derive(Debug)]
pub(crate) struct Ahead(JoinHandle<()>);

impl Ahead {
    /// Starts commands.
    pub(crate) fn start(commands: Vec<Vec<String>>) -> Self {
        Self(thread::spawn(move || {
            for command in commands {
                let mut nice = Command::new("nice");
                nice.args(["-n", "19"]).args(command);
                nice.current_dir(workspace::root()).stdin(Stdio::null());
                nice.stdout(Stdio::null()).stderr(Stdio::null());
                // The step that needs it tries again.
                let _ = nice.status();
            }
        }))
    }

    /// Waits until all commands have ended.
    pub(crate) fn finish(self) {
        // A thread that panicked has built nothing.
        let _ = self.0.join();
    }
}

/// Returns the commands that build what these steps need.
pub(crate) fn commands(steps: &[&Step]) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    for step in steps {
        if step.name == bench::counts::STEP {
            commands.push(bench::counts::build_command());
        }
        commands.extend(requirements::builds(step.needs));
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::STEPS;

    #[test]
    fn the_programs_that_are_counted_are_built_ahead() {
        let steps: Vec<&Step> = STEPS.iter().collect();
        let built = commands(&steps);
        let counted = |command: &&Vec<String>| command.iter().any(|word| word == "anteroom");
        assert_eq!(built.iter().filter(counted).count(), 1, "{built:?}");
        assert_eq!(commands(&[]), Vec::<Vec<String>>::new());
    }

    #[test]
    fn commands_run_in_their_order_and_an_error_stops_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("done");
        let touch = vec!["touch".to_owned(), file.display().to_string()];
        Ahead::start(vec![vec!["false".to_owned()], touch]).finish();
        assert!(file.is_file());
    }
}
