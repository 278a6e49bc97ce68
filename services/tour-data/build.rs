//! Lists the alternatives of each axis from the files in its folder, so that adding one is adding a file.
//!
//! For every axis it writes `$OUT_DIR/<axis>.rs` with a module per file and the registry of their entries; the
//! axis's `mod.rs` includes it. A file `some_name.rs` has to define `SPEC` and `make`.

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
        writeln!(entries, "    Entry {{ spec: &{module}::SPEC, make: {module}::make }},").expect("a string takes it");
    }
    format!("{modules}\nstatic REGISTRY: &[Entry<dyn {interface}>] = &[\n{entries}];\n")
}
