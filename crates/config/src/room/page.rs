//! Reader of the waiting page: the operator's own one, or the look of the built-in one.

use std::path::PathBuf;

use super::keys::{
    CUSTOM_PAGE_FILE, CUSTOM_PAGE_HTML, PAGE_ACCENT, PAGE_FACTS, PAGE_HELP, PAGE_IMPRINT,
    PAGE_LOGO, PAGE_MESSAGE_TEXT, PAGE_NOUN, PAGE_NOUN_TEXT, PAGE_TEXT_LANGUAGE, PAGE_TITLE,
};
use crate::checks::Checks;
use crate::kind::Text;
use crate::language::Language;
use crate::model::{PageConfig, PageLogo, PageTemplate, PageTexts};
use crate::notes::Located;
use crate::problem::Finding;
use crate::reader::{Key, Table};

/// Reads the page or its path; `None` if there is none.
pub(super) fn read_template(table: &mut Table<'_>, checks: Checks) -> Option<PageTemplate> {
    let html = table.optional(&CUSTOM_PAGE_HTML);
    let path = table.optional(&CUSTOM_PAGE_FILE);
    let location = table.location(CUSTOM_PAGE_FILE.name);
    if html.is_some() && path.is_some() {
        let finding = Finding::Remark("found together with custom_page_html".to_owned());
        table
            .notes
            .report(&location, finding, "one of the two", None);
    }
    if let Some(html) = &html {
        check(table, html, checks);
    }
    let file = |path: String| PageTemplate::File {
        path: PathBuf::from(path),
        line: location.line,
    };
    html.map(PageTemplate::Html).or_else(|| path.map(file))
}

/// Most facts: a visitor goes through them one by one.
const FACTS_MAX: usize = 20;

/// Reads `[room.page]`, the look of the built-in page.
pub(super) fn read_look(room: &mut Table<'_>, page: &mut PageConfig) {
    let mut table = room.table("page");
    page.title = table.optional(&PAGE_TITLE);
    page.logo = table.optional(&PAGE_LOGO).map(|path| PageLogo::File {
        path: PathBuf::from(path),
        line: table.location(PAGE_LOGO.name).line,
    });
    page.accent = table.optional(&PAGE_ACCENT);
    page.noun = table.optional(&PAGE_NOUN);
    page.nouns = read_texts(
        &mut table,
        "nouns",
        "a list of tables, such as [{ language = \"de\", text = \"Shop\" }]",
        &PAGE_NOUN_TEXT,
    );
    page.help = table.optional(&PAGE_HELP);
    page.imprint = table.optional(&PAGE_IMPRINT);
    let facts = table.list(&PAGE_FACTS).unwrap_or_default();
    if let Some(first_too_many) = facts.get(FACTS_MAX) {
        let found = Finding::Value(format!("{} facts", facts.len()));
        let allowed = format!("at most {FACTS_MAX}");
        table
            .notes
            .report(&first_too_many.location, found, allowed, None);
    }
    page.facts = facts.into_iter().map(|fact| fact.value).collect();
    page.messages = read_texts(
        &mut table,
        "messages",
        "a list of tables, such as [{ language = \"en\", text = \"Doors open at ten.\" }]",
        &PAGE_MESSAGE_TEXT,
    );
    table.finish();
}

/// Reads a text in several languages.
fn read_texts(
    table: &mut Table<'_>,
    name: &'static str,
    expected: &'static str,
    text: &Key<Text<String>>,
) -> PageTexts {
    let elements = table.elements(name, expected);
    let mut texts: Vec<Located<(Language, String)>> = Vec::new();
    for element in &elements {
        let mut inner = table.enter(element);
        let language = inner.required(&PAGE_TEXT_LANGUAGE);
        let text = inner.required(text);
        let location = inner.location(PAGE_TEXT_LANGUAGE.name);
        inner.finish();
        let (Some(language), Some(text)) = (language, text) else {
            continue;
        };
        let value = (language, text);
        if texts.iter().any(|known| known.value.0 == language) {
            let finding = Finding::Remark("the same language a second time".to_owned());
            table.notes.report(&location, finding, "", None);
        }
        texts.push(Located { value, location });
    }
    PageTexts(texts.into_iter().map(|text| text.value).collect())
}

fn check(table: &mut Table<'_>, html: &str, checks: Checks) {
    let location = table.location(CUSTOM_PAGE_HTML.name);
    for (line, mistake) in (checks.template)(html) {
        let finding = Finding::Remark(format!("line {line} of the template: {mistake}"));
        table.notes.report(&location, finding, "", None);
    }
}
