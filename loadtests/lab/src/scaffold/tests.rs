//! New files from the checkout's own templates.

use std::path::PathBuf;

use super::rust::words;
use super::*;
use crate::experiment;

/// A folder like a checkout, with the real templates and interfaces.
struct Checkout(PathBuf);

impl Checkout {
    fn new(test: &str) -> Self {
        let root = std::env::temp_dir().join(format!("rowlock-scaffold-{test}-{}", std::process::id()));
        for axis in &AXES {
            let folder = PathBuf::from(SOURCE).join(axis.name);
            std::fs::create_dir_all(root.join(&folder)).unwrap();
            for stem in ["mod", &axis.template.replace('-', "_")] {
                let file = folder.join(format!("{stem}.rs"));
                std::fs::copy(deploy::root().join(&file), root.join(&file)).unwrap();
            }
        }
        Self(root)
    }

    fn write(&self, axis: &str, name: &str) -> Outcome<String> {
        let file = super::axis(axis)?.write(&self.0, name)?;
        Ok(std::fs::read_to_string(self.0.join(file)).unwrap())
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_new_file_is_its_template_with_another_name_comment_and_summary() {
    let checkout = Checkout::new("template");
    for axis in &AXES {
        let text = checkout.write(axis.name, "my-own-2").unwrap();
        assert!(text.starts_with("//! "), "{text}");
        for said in [
            "Gives up: ",
            "Not to be used ",
            "name: \"my-own-2\",",
            "baseline: false,",
            "MyOwn2",
        ] {
            assert!(text.contains(said), "{}: `{said}` is missing:\n{text}", axis.name);
        }
        assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");

        // Line by line nothing else differs: whatever compiles and passes there does here.
        let template = Name::parse(axis.template).unwrap();
        let file = format!("{SOURCE}/{}/{}.rs", axis.name, template.module());
        let source = std::fs::read_to_string(deploy::root().join(file)).unwrap();
        let plain = |line: &&str| !line.starts_with("//") && !line.starts_with("    summary:");
        let before = source.lines().filter(plain);
        let after: Vec<&str> = text.lines().filter(plain).collect();
        assert_eq!(before.clone().count(), after.len());
        for (before, after) in before.zip(after) {
            let named = words(before).any(|word| word == template.type_name()) || before.contains(axis.template);
            assert!(
                before == after || named || before.contains("baseline"),
                "{before}\n{after}"
            );
        }
        let code = rust::after_module_comment(&text);
        assert!(!words(code).any(|word| word == template.type_name()), "{text}");
    }
}

#[test]
fn what_exists_is_not_written_over() {
    let checkout = Checkout::new("exists");
    let before = checkout.write("touch", "mine").unwrap();
    for name in ["mine", "update-last"] {
        let failure = checkout.write("touch", name).unwrap_err();
        assert_eq!(failure.exit_code(), 2);
        assert!(failure.to_string().contains("mine, update-last"), "{failure}");
    }
    let file = checkout.0.join(SOURCE).join("touch/mine.rs");
    assert_eq!(std::fs::read_to_string(file).unwrap(), before);
}

#[test]
fn a_name_that_could_not_be_one_is_refused_with_what_is_possible() {
    let checkout = Checkout::new("name");
    let long = "a".repeat(41);
    for (name, told) in [
        ("Mine", "small letters"),
        ("my_own", "small letters"),
        ("my--own", "small letters"),
        ("-own", "small letters"),
        ("own-", "small letters"),
        ("2nd", "begins with a letter"),
        ("../own", "small letters"),
        ("", "small letters"),
        (long.as_str(), "at most 40"),
        ("self", "word of Rust"),
        ("mod", "word of Rust"),
        // The axis's folder has these under another meaning.
        ("store", "something else"),
        ("shape", "`Shape` is something else"),
    ] {
        let failure = checkout.write("touch", name).unwrap_err();
        assert_eq!(failure.exit_code(), 2, "{name}");
        assert!(failure.to_string().contains(told), "{name}: {failure}");
    }
    assert!(checkout.write("inserts", "shared").is_err());
    let failure = checkout.write("tuch", "mine").unwrap_err();
    assert_eq!(failure.exit_code(), 2);
    assert!(
        failure.to_string().contains("inserts, touch, announce, placement"),
        "{failure}"
    );
}

#[test]
fn what_a_file_may_declare_is_told_as_it_is() {
    let spec = std::fs::read_to_string(deploy::root().join(SOURCE).join("plan/spec.rs")).unwrap();
    let expectations = |axis: &str| super::axis(axis).unwrap().expectations;
    for (kind, told) in [
        ("Config", expectations("touch")),
        ("Order", expectations("touch")),
        ("Kept", expectations("touch")),
        ("Delivery", expectations("announce")),
    ] {
        let (_, body) = spec.split_once(&format!("pub enum {kind} {{\n")).unwrap();
        let (body, _) = body.split_once("\n}").unwrap();
        let variants = body.lines().map(str::trim).filter(|line| !line.starts_with("///"));
        for variant in variants {
            let variant = words(variant).next().unwrap();
            assert!(words(told).any(|word| word == variant), "{kind}::{variant} is not told");
        }
    }
}

#[test]
fn the_experiments_that_rank_an_axis_are_there() {
    let names = experiment::names().unwrap();
    for experiment in AXES.iter().filter_map(|axis| axis.ranked_by) {
        assert!(names.iter().any(|name| name == experiment), "{experiment}");
    }
}
