//! Remedies for mistakes, which the reference does not give.

use super::Defect;
use crate::config::algorithm::{names, whose_settings};
use crate::config::reading::keys;

/// Returns the remedy, a sentence without a full stop.
pub(super) fn of(defect: &Defect) -> String {
    let text = match defect {
        Defect::NotYaml { message } => of_yaml(message),
        Defect::WrongType(wrong) => return of_type(wrong.into),
        Defect::KeyNotText { .. } => "write a name as the key, or put it in quotes",
        Defect::UnknownKey { key } => return of_key(key),
        Defect::ElementNotMap { .. } => {
            "begin the element with a key, as in `- key: user` or `- name: other_limit`"
        }
        Defect::ValueOfNoUse { .. } => {
            "numbers here are whole and at most 4294967295; put a text in quotes"
        }
        Defect::EmptyDomain => "begin the file with `domain: NAME`, as in Envoy's filter",
        Defect::DuplicateDomain { .. } => {
            "put the descriptors into one file, or merge domains in the config"
        }
        Defect::EmptyKey => "give the descriptor a `key`, as Envoy's action sends it",
        Defect::DuplicateDescriptor { .. } => {
            "keep one of the two; what is nested in them belongs under that one"
        }
        Defect::UnknownUnit { .. } => {
            "allowed: second, minute, hour, day, week, month (30 days), year (365 days)"
        }
        Defect::UnitOfUnlimited => "take out `unit`, or `unlimited`",
        Defect::EmptyReplaces => "write the name of a limit: `replaces: [{name: other_limit}]`",
        Defect::ReplacesItself => "name another limit, or give this one another name",
        Defect::SharedWithoutWildcard { .. } => {
            "write a value with `*` in it, or take out `share_threshold`"
        }
        Defect::UnknownAlgorithm { .. } => {
            return format!("allowed: {}", names().join(", "));
        }
        Defect::AlgorithmOfUnlimited => "take it out, or `unlimited`",
        Defect::SettingOfAnother { .. } => {
            let whose = whose_settings();
            return format!("take it out, or choose an algorithm that has it: {whose}");
        }
        Defect::SettingOutOfRange { .. } => "write a number in this range, or take it out",
        Defect::CannotKeep { .. } => "change the limit, its algorithm or the store",
        Defect::TooLong { .. } => "split it into several files, merged if they have one domain",
        Defect::TooManyValues { .. } => {
            "split it into several files; an alias counts as what it repeats"
        }
        Defect::TooDeep { .. } | Defect::DescriptorsTooDeep { .. } => {
            "check for an extra bracket or indent: no request goes that deep"
        }
        Defect::NamesTooLong { .. } => {
            "use a shorter domain or shorter keys: a name includes those of all outer descriptors"
        }
        Defect::TooManyDescriptors { .. } => {
            "replace values by one key without a value, or with `*`: each value still has a \
             counter of its own"
        }
    };
    text.to_owned()
}

/// Returns the remedy for the usual cause.
fn of_yaml(message: &str) -> &'static str {
    if message.contains("octet") || message.contains("UTF-8") {
        return "save the file as UTF-8";
    }
    if message.contains("invalid map key") {
        return "put a text that begins with `{` in quotes; a template has to be filled in first";
    }
    if message.contains("cannot start any token") {
        return "put a text that begins with `@`, `%` or a backtick in quotes";
    }
    if message.contains("mapping values") {
        return "look for a line that is indented too far, or put a text with `: ` in it in quotes";
    }
    if message.contains("tab") {
        return "indent with spaces";
    }
    if message.contains("anchor") || message.contains("alias") {
        return "write an anchor (`&name`) before its alias (`*name`); put a text that begins with \
                `*` in quotes";
    }
    "look at this line and the one before: indents, quotes, brackets"
}

fn of_type(into: &str) -> String {
    let text = match into {
        "bool" => "write true or false, without quotes",
        "uint32" => "write a whole number from 0 to 4294967295, without quotes",
        "string" => "write a text",
        "[]config.YamlDescriptor" => "write a list: `- key: NAME`",
        "[]config.yamlReplaces" => "write a list: `- name: NAME`",
        "config.YamlRateLimit" => "write `unit` and `requests_per_unit`, indented under it",
        _ => "write keys and values, indented under it",
    };
    text.to_owned()
}

fn of_key(key: &str) -> String {
    let letters = |text: &str| -> String {
        let letters = text.chars().filter(|character| character.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect()
    };
    let wanted = letters(key);
    let known = keys::KNOWN.iter().chain(keys::OURS);
    let near = known.copied().find(|known| letters(known) == wanted);
    match near {
        Some(near) if near == key => format!("'{near}' belongs under 'rate_limit'"),
        Some(near) => format!("did you mean '{near}'?"),
        None => format!("allowed: {}", keys::KNOWN.join(", ")),
    }
}
