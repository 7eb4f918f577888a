//! Collects the how-to pages of `docs/`, so that `anteroom help` can print them.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

const FOLDER: &str = "../../docs/how-to";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={FOLDER}");
    let folder = fs::canonicalize(FOLDER)?;
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        paths.push(entry?.path());
    }
    paths.sort();
    let mut table = "&[\n".to_owned();
    for path in paths {
        let name = path.file_stem().unwrap_or_default();
        writeln!(table, "    ({name:?}, include_str!({path:?})),").map_err(io::Error::other)?;
    }
    table.push(']');
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("OUT_DIR is not set"))?;
    fs::write(Path::new(&out).join("pages.rs"), table)
}
