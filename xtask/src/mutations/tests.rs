//! Tests of the files of mutations and of the copy. They build nothing: the command itself tests
//! the mutations.

use std::fs;
use std::time::SystemTime;

use super::Selection;
use super::patch::{Found, Mutation, read_all};
use super::tree::{apply, entries, read_line, sync};
use crate::workspace;

const DIFF: &str = "
diff --git a/crates/a.rs b/crates/a.rs
--- a/crates/a.rs
+++ b/crates/a.rs
@@ -1,2 +1,1 @@
 kept
-Rule: removed
";

fn broken(checker: &str) -> Found {
    let seed = 7;
    let checker = checker.to_owned();
    Found::Broken { seed, checker }
}

#[test]
fn the_lines_above_the_diff_name_rule_and_checkers() {
    let text = format!("Rule: A seat is\n  counted: once.\nNoticed by: Seats, Rate\n{DIFF}");
    let mutation = Mutation::parse("counts-twice", &text).unwrap();
    assert_eq!(mutation.name, "counts-twice");
    assert_eq!(mutation.rule, "A seat is counted: once.");
    assert_eq!(mutation.noticed_by(), "Seats, Rate");
    assert_eq!(mutation.files, ["crates/a.rs"]);
    for (found, expected) in [
        (broken("Seats"), true),
        (broken("Rate"), true),
        (broken("Order"), false),
        (Found::Nothing, false),
    ] {
        assert_eq!(mutation.expects(&found), expected, "{found:?}");
    }
}

#[test]
fn a_file_without_a_line_is_rejected_naming_the_line() {
    let check = |header: &str, diff: &str, expected: &str| {
        let error = Mutation::parse("bad", &format!("{header}{diff}")).unwrap_err();
        assert_eq!(error.to_string(), expected, "{header}");
    };
    check("Noticed by: Seats\n", DIFF, "no line starts with `Rule:`");
    check("Rule: One.\n", DIFF, "no line starts with `Noticed by:`");
    check("Rule:\nNoticed by: Seats\n", DIFF, "`Rule:` has no text");
    let no_name = "`Noticed by:` lacks a name";
    check("Rule: One.\nNoticed by:\n", DIFF, no_name);
    check("Rule: One.\nNoticed by: Seats,\n", DIFF, no_name);
    let no_diff = "no line starts with `diff --git`";
    check("Rule: One.\nNoticed by: Seats\n", "", no_diff);
}

#[test]
fn mutations_take_turns_and_so_do_those_of_changed_files() {
    let named = |name: String| {
        let diff = DIFF.replace("a.rs", &format!("{name}.rs"));
        Mutation::parse(&name, &format!("Rule: One.\nNoticed by: Seats\n{diff}")).unwrap()
    };
    let all: Vec<_> = (0..10).map(|number| named(number.to_string())).collect();
    let names = |mutations: &[Mutation]| -> String {
        mutations
            .iter()
            .map(|mutation| mutation.name.as_str())
            .collect()
    };
    let check = |turn, of_changed, changed: &[&str], selected: &str| {
        let changed = changed.iter().map(|file| format!("crates/{file}.rs"));
        let few = 4;
        let selection = Selection {
            few,
            of_changed,
            turn,
        };
        let (found, others) = selection.select(all.clone(), &changed.collect());
        assert_eq!(names(&found), selected);
        assert_eq!(found.len() + others.len(), all.len());
        assert!(others.iter().all(|other| !found.contains(other)));
    };
    check(0, 2, &[], "0123");
    check(1, 2, &[], "4567");
    check(2, 2, &[], "8901");
    check(1, 2, &["9", "x"], "45679");
    check(0, 2, &["3", "5", "6", "7", "8"], "012356");
    check(10, 2, &["3", "5", "6", "7", "8"], "012356");
    check(5, 2, &["3", "5", "6", "7", "8"], "012378");
    check(0, usize::MAX, &["5", "6", "7"], "0123567");
}

#[test]
fn every_patch_applies_and_changes_something() {
    for mutation in read_all().unwrap() {
        assert!(!mutation.files.is_empty(), "{}", mutation.name);
        apply(&mutation, workspace::root(), &["--check"]).unwrap();
    }
}

#[test]
fn the_line_that_the_simulator_prints_is_parsed() {
    assert_eq!(read_line("broken: seed 7 NoWaste"), Some(broken("NoWaste")));
    assert_eq!(read_line("kept: 8000 seeds"), Some(Found::Nothing));
    for other in [
        "",
        "broken: seed",
        "broken: seed x Seats",
        "thread panicked",
    ] {
        assert_eq!(read_line(other), None, "{other}");
    }
}

#[test]
fn a_copy_keeps_the_times_of_files_that_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    fs::create_dir_all(from.join("inner")).unwrap();
    fs::create_dir_all(to.join("gone")).unwrap();
    for (file, text) in [("same", "1"), ("changed", "2"), ("inner/new", "3")] {
        fs::write(from.join(file), text).unwrap();
    }
    for file in ["same", "changed", "gone/file"] {
        fs::write(to.join(file), "1").unwrap();
        let file = fs::File::options().write(true).open(to.join(file)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    }

    sync(&from, &to, &entries(&from).unwrap()).unwrap();
    assert_eq!(entries(&to).unwrap(), entries(&from).unwrap());
    assert_eq!(fs::read_to_string(to.join("changed")).unwrap(), "2");
    assert_eq!(fs::read_to_string(to.join("inner/new")).unwrap(), "3");
    let is_old = |file: &str| {
        let modified = fs::metadata(to.join(file)).unwrap().modified();
        modified.unwrap() == SystemTime::UNIX_EPOCH
    };
    assert!(is_old("same"));
    assert!(!is_old("changed"));
}
