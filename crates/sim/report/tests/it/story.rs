//! docs/allocations.md matches the code, and its sentences match its tables.

use anteroom_report::story::tell;

use crate::pages;

#[test]
fn the_page_about_allocations_matches_the_code() {
    let story = tell();
    pages::check(&story);
    check_sentences(&story.markdown());
}

/// Checks what the text claims about its three tables of simulations.
fn check_sentences(markdown: &str) {
    let [calm, spike, uniform] = tables(markdown)
        .try_into()
        .expect("an ordinary day and two spikes");
    for table in [&calm, &spike, &uniform] {
        let leases = &table[3];
        assert_eq!(leases[..2], ["never", "never"], "leases keep both limits");
        assert_eq!(table[0][..2], ["never", "never"], "so does even");
    }
    let waited = |row: &[String]| percent(&row[3]);
    for other in &calm[1..] {
        assert!(waited(&calm[0]) > 3.0 * waited(other), "{calm:#?}");
    }
    for table in [&spike, &uniform] {
        assert_ne!(table[1][1], "never", "curve is above the admissions");
        let fill = |row: usize| percent(&table[row][4]);
        assert!(
            fill(0) < 90.0 && fill(2) < 90.0 && fill(3) > 95.0,
            "{table:#?}"
        );
    }
}

/// Returns the cells of the tables with a row for each allocation and eight columns, without the
/// names.
fn tables(markdown: &str) -> Vec<Vec<Vec<String>>> {
    let cells = |line: &str| -> Vec<String> {
        let cells = line.trim_matches('|').split('|').skip(1);
        cells.map(|cell| cell.trim().to_owned()).collect()
    };
    let rows = markdown.lines().filter(|line| line.starts_with("| `"));
    let rows: Vec<Vec<String>> = rows.map(cells).filter(|row| row.len() == 7).collect();
    rows.chunks(4).map(<[_]>::to_vec).collect()
}

fn percent(cell: &str) -> f64 {
    let number = cell.trim_end_matches(" %").trim_start_matches('<');
    number.parse().expect("a share in percent")
}
