//! The one file of a new alternative, begun as a copy of one that is there: it compiles and keeps its promise as it is.
//!
//! The copy is made from the checkout's own file, so that it cannot fall behind the interfaces; what is replaced are its
//! names, its comment and its summary.

mod name;
mod rust;

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Outcome};

pub(crate) use name::Name;

/// An axis, as far as writing a file for it goes.
#[derive(Debug)]
pub(crate) struct Axis {
    /// As in `--describe`, and the folder's name.
    pub(crate) name: &'static str,
    /// The alternative that a new one is begun from: the simplest that does what it has to.
    pub(crate) template: &'static str,
    /// The experiment that ranks the alternatives of the axis, where one does; it has an arm for each by itself.
    pub(crate) ranked_by: Option<&'static str>,
    /// What the tests hold a file to, as comment lines without `//`.
    expectations: &'static str,
}

/// Every axis.
pub(crate) const AXES: [Axis; 4] = [
    Axis {
        name: "inserts",
        template: "multi-row",
        ranked_by: Some("fixes-batched"),
        expectations: include_str!("inserts.txt"),
    },
    Axis {
        name: "touch",
        template: "update-last",
        ranked_by: Some("hot-row-fixes"),
        expectations: include_str!("touch.txt"),
    },
    Axis {
        name: "announce",
        template: "after-commit",
        ranked_by: Some("announcements"),
        expectations: include_str!("announce.txt"),
    },
    Axis {
        name: "placement",
        template: "single",
        ranked_by: None,
        expectations: include_str!("placement.txt"),
    },
];

/// Where the alternatives of tour-data are, below the checkout.
const SOURCE: &str = "services/tour-data/src";

/// The axis of that name.
///
/// # Errors
/// There is none.
pub(crate) fn axis(name: &str) -> Outcome<&'static Axis> {
    AXES.iter().find(|axis| axis.name == name).ok_or_else(|| {
        let known = AXES.each_ref().map(|axis| axis.name);
        Failure::Usage(format!(
            "there is no axis `{name}`; axes are: {} (an alternative is begun with `cargo rowlock new touch NAME`)",
            known.join(", ")
        ))
    })
}

impl Axis {
    /// Writes the file in the checkout at `root`; gives back its path below it.
    ///
    /// # Errors
    /// The name cannot be had, or the template cannot be read.
    pub(crate) fn write(&self, root: &Path, name: &str) -> Outcome<PathBuf> {
        let folder = PathBuf::from(SOURCE).join(self.name);
        let name = Name::parse(name).map_err(Failure::Usage)?;
        let inside = folder.join(format!("{}.rs", name.module()));
        if root.join(&inside).exists() {
            return Err(self.exists(root, &name));
        }
        let template = Name::parse(self.template).map_err(Failure::Gate)?;
        let source = read(&root.join(&folder).join(format!("{}.rs", template.module())))?;
        let around = read(&root.join(&folder).join("mod.rs"))?;
        if let Some(taken) = name.taken(&source, &around) {
            return Err(Failure::Usage(format!(
                "an alternative of {} cannot be called `{name}`: `{taken}` is something else there; choose another name",
                self.name
            )));
        }
        let text = self.render(&source, &template, &name).map_err(|why| {
            let file = folder.join(format!("{}.rs", template.module()));
            Failure::Gate(format!("{} is no template any more: {why}", file.display()))
        })?;
        let failed = |error: std::io::Error| match error.kind() {
            ErrorKind::AlreadyExists => self.exists(root, &name),
            _ => Failure::Gate(format!("{} cannot be written: {error}", inside.display())),
        };
        let mut file = std::fs::File::create_new(root.join(&inside)).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        Ok(inside)
    }

    fn exists(&self, root: &Path, name: &Name) -> Failure {
        let entries = std::fs::read_dir(root.join(SOURCE).join(self.name))
            .into_iter()
            .flatten();
        let mut known: Vec<String> = entries
            .filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.strip_suffix(".rs")?.replace('_', "-")))
            .filter(|stem| stem != "mod")
            .collect();
        known.sort();
        Failure::Usage(format!(
            "{} has a `{name}` already; there are: {}; choose another name",
            self.name,
            known.join(", ")
        ))
    }

    /// The text of the new file.
    fn render(&self, source: &str, template: &Name, name: &Name) -> Result<String, String> {
        let code = rust::after_module_comment(source);
        let code = rust::rename(code, template, name);
        let code = rust::replace_line(&code, "    baseline: ", "    baseline: false,")?;
        let summary = format!("    summary: \"begun as {template}: say in one sentence what it does instead\",");
        let code = rust::replace_line(&code, "    summary: ", &summary)?;
        let expectations: String = self
            .expectations
            .lines()
            .map(|line| format!("// {line}").trim_end().to_owned() + "\n")
            .collect();
        let code = rust::insert_before(&code, "pub(super) static SPEC", &expectations)?;
        Ok(format!(
            "//! The idea in one sentence. Begun as a copy of `{template}`.\n\
             //!\n\
             //! How it works, and what it costs: round trips, time under the row's lock, what is written besides.\n\
             //!\n\
             //! Gives up: say what a reader, a subscriber or the next engineer no longer has. Not to be used where somebody \
             needs\n//! that: say who. (`cargo rowlock fixes` lists both.)\n{code}"
        ))
    }
}

fn read(path: &Path) -> Outcome<String> {
    std::fs::read_to_string(path).map_err(|error| {
        Failure::Missing(format!(
            "cannot read {}: {error}; a new alternative is begun in a checkout of Rowlock",
            path.display()
        ))
    })
}

#[cfg(test)]
mod tests;
