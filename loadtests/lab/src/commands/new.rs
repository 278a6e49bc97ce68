//! `new`: begins an alternative of an axis by writing its one file.

use crate::failure::Outcome;
use crate::scaffold;

/// Arguments of `new`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// inserts, touch, announce or placement
    axis: String,
    /// As in the configuration: small letters, digits and single hyphens
    name: String,
}

#[expect(clippy::needless_pass_by_value, reason = "every command takes its arguments alike")]
pub(crate) fn run(args: Args) -> Outcome {
    let axis = scaffold::axis(&args.axis)?;
    let file = axis.write(&deploy::root(), &args.name)?;
    let (template, name) = (axis.template, &args.name);
    let setting = format!("TOUR_DATA_{}", axis.name.to_uppercase());
    let measure = match axis.ranked_by {
        Some(experiment) => format!("cargo rowlock run {experiment}   ranks it beside the others"),
        None => format!("Give an experiment an arm with `settings = {{ {setting} = \"{name}\" }}`, and run it"),
    };
    println!(
        "{file}: a copy of `{template}` under its own name. It compiles and keeps its promise as it is; there is no list to add \
         it to.\n\
         1. Say in its comment what it does, what it gives up and where it is not to be used; declare its promise in SPEC.\n\
         2. Make it do that. The comment above SPEC says what the tests hold it to.\n\
         3. cargo rowlock test -- conformance   runs it alone and with all others on real servers\n\
         4. cargo rowlock up --set {setting}={name}\n\
         5. {measure}\n\
         6. cargo rowlock fixes --axis {axis}   has it in the list",
        file = file.display(),
        axis = axis.name,
    );
    Ok(())
}
