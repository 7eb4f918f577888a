//! `anteroom help`: the how-to pages of the documentation, and the help of commands.

use std::fmt::Write as _;
use std::io::Write;
use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, Command};

/// Names and Markdown of the how-to pages, by name.
const PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// Flags of `anteroom help`.
#[derive(Args, Clone, Debug)]
pub(crate) struct HelpOptions {
    /// A page or a command; without it, all of them are listed
    #[arg(value_name = "TOPIC")]
    topic: Option<String>,
}

/// Prints a page, the help of a command, or a list of both.
///
/// # Errors
///
/// If there is no such topic or nothing can be printed.
pub(crate) fn run(
    options: &HelpOptions,
    program: &Command,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let text = match &options.topic {
        Some(topic) => page(topic, program)?,
        None => list(program),
    };
    out.write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn page(topic: &str, program: &Command) -> anyhow::Result<String> {
    let wanted = topic.strip_suffix(".md").unwrap_or(topic);
    if let Some((_, text)) = PAGES.iter().find(|(name, _)| *name == wanted) {
        return Ok((*text).to_owned());
    }
    if let Some(command) = program.find_subcommand(wanted) {
        let name = format!("{} {wanted}", program.get_name());
        let mut command = command.clone().bin_name(name);
        return Ok(command.render_long_help().to_string());
    }
    bail!("there is no page and no command \"{topic}\"; `anteroom help` lists them");
}

fn list(program: &Command) -> String {
    let width = PAGES.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut list = "How to do one task (anteroom help PAGE):\n".to_owned();
    for (name, text) in PAGES {
        let title = text.lines().next().unwrap_or_default();
        push(&mut list, width, name, title.trim_start_matches("# "));
    }
    list.push_str("\nCommands (anteroom COMMAND --help):\n");
    for command in program.get_subcommands() {
        let about = command.get_about().map(ToString::to_string);
        push(
            &mut list,
            width,
            command.get_name(),
            &about.unwrap_or_default(),
        );
    }
    list
}

fn push(list: &mut String, width: usize, name: &str, what: &str) {
    writeln!(list, "  {name:width$}  {what}").expect("a String takes all that is written to it");
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::command_line::Cli;

    fn help(topic: Option<&str>) -> anyhow::Result<String> {
        let options = HelpOptions {
            topic: topic.map(str::to_owned),
        };
        let mut out = Vec::new();
        run(&options, &Cli::command(), &mut out)?;
        Ok(String::from_utf8(out)?)
    }

    #[test]
    fn every_page_is_listed_with_its_title_and_can_be_printed() {
        let list = help(None).unwrap();
        assert!(list.contains("three-nodes"), "{list}");
        for (name, text) in PAGES {
            assert!(text.starts_with("# "), "{name}");
            assert!(list.contains(&format!("  {name} ")), "{name}");
            assert_eq!(help(Some(name)).unwrap(), *text);
        }
    }

    #[test]
    fn a_command_is_a_topic_and_anything_else_names_the_list() {
        let text = help(Some("check")).unwrap();
        assert!(text.contains("Usage: anteroom check"), "{text}");
        let error = help(Some("no-such-page")).unwrap_err().to_string();
        assert!(error.contains("`anteroom help` lists them"), "{error}");
    }
}
