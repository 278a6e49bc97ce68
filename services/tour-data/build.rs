//! Lists the alternatives of each axis from the files in its folder, so that adding one is adding a file.
//!
//! For every axis it writes `$OUT_DIR/<axis>.rs` with a module per file and the registry of their entries; the
//! axis's `mod.rs` includes it. A file `some_name.rs` has to define `SPEC` and `make`, and its module comment to say what the
//! alternative gives up and where it is not to be used: it is read from there, so that it stands in one place.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The axes: folder under `src/` and the trait its alternatives implement.
const AXES: [(&str, &str); 4] = [
    ("inserts", "Inserts"),
    ("touch", "Touch"),
    ("announce", "Announce"),
    ("placement", "Placement"),
];

fn main() {
    let source = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("src");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    for (axis, interface) in AXES {
        let folder = source.join(axis);
        println!("cargo::rerun-if-changed={}", folder.display());
        let generated = registry(interface, &alternatives(&folder));
        fs::write(out.join(axis).with_extension("rs"), generated).expect("OUT_DIR can be written");
    }
    println!("cargo::rerun-if-changed=../../migrations/tour-data");
}

/// Files of the folder but `mod.rs`, in the order of their names.
fn alternatives(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("mod.rs"))
        .collect();
    files.sort();
    files
}

fn registry(interface: &str, files: &[PathBuf]) -> String {
    let mut modules = String::new();
    let mut entries = String::new();
    for file in files {
        let module = file
            .file_stem()
            .and_then(|stem| stem.to_str())
            .expect("a module is named in UTF-8");
        writeln!(modules, "#[path = {file:?}]\nmod {module};").expect("a string takes it");
        let (gives_up, not_for) = price(file);
        writeln!(
            entries,
            "    Entry {{ spec: &{module}::SPEC, make: {module}::make, gives_up: {gives_up:?}, not_for: {not_for:?} }},"
        )
        .expect("a string takes it");
    }
    format!("{modules}\nstatic REGISTRY: &[Entry<dyn {interface}>] = &[\n{entries}];\n")
}

/// The end of a file's module comment, "Gives up: this. Not to be used there.", in its two parts; each is empty where it is
/// missing, which a test finds.
fn price(file: &Path) -> (String, String) {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let lines: Vec<&str> = text
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(str::trim)
        .collect();
    let comment = lines.join(" ");
    let Some((_, price)) = comment.split_once("Gives up: ") else {
        return (String::new(), String::new());
    };
    let (gives_up, not_for) = match price.find("Not to be used") {
        Some(at) => price.split_at(at),
        None => (price, ""),
    };
    (gives_up.trim().to_owned(), not_for.trim().to_owned())
}
