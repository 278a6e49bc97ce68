//! Everything a service can be told: its fields with their variables and flags, read from the clap arguments.

use std::any::TypeId;

use clap::{Args, Command};

use super::{Address, Common, Secret};

/// Below this similarity a known variable is not worth suggesting.
const SIMILAR: f64 = 0.6;

/// The fields of a service and the command that parses them.
pub(crate) struct Surface {
    /// `TOUR_DATA_`.
    pub(crate) prefix: String,
    pub(crate) fields: Vec<Field>,
    pub(crate) command: Command,
}

pub(crate) struct Field {
    /// Name in the configuration struct.
    pub(crate) id: String,
    /// `TOUR_DATA_TOUCH`.
    pub(crate) variable: String,
    /// `--touch`.
    pub(crate) flag: String,
    pub(crate) default: Option<String>,
    pub(crate) help: String,
    pub(crate) required: bool,
    /// What may be given, if that is a closed list.
    pub(crate) values: Vec<String>,
    kind: FieldKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldKind {
    Secret,
    Address,
    /// Tells the replicas of a service apart.
    Instance,
    Setting,
}

impl Field {
    /// Whether the value must not appear in an error message.
    pub(crate) fn confidential(&self) -> bool {
        matches!(self.kind, FieldKind::Secret | FieldKind::Address)
    }

    /// Whether replicas, or two machines, may differ in it and still be the same configuration.
    pub(crate) fn local(&self) -> bool {
        matches!(self.kind, FieldKind::Address | FieldKind::Instance)
    }
}

impl Surface {
    pub(crate) fn of<C: Args>(service: &'static str) -> Self {
        let prefix = format!("{}_", service.replace('-', "_").to_ascii_uppercase());
        let command = Common::augment_args(Command::new(service));
        let instance: Vec<String> = ["http_addr", "admin_addr", "instance_id"].map(str::to_owned).into();
        let command = C::augment_args(command).args_override_self(true).mut_args(|arg| {
            let id = arg.get_id().to_string();
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            arg.long(id.replace('_', "-"))
                .help(format!("{help} [variable: {prefix}{}]", id.to_ascii_uppercase()))
        });
        let fields = C::augment_args(Common::augment_args(Command::new(service)))
            .get_arguments()
            .map(|arg| {
                let id = arg.get_id().to_string();
                let value_type = arg.get_value_parser().type_id();
                let kind = if value_type == TypeId::of::<Secret>() {
                    FieldKind::Secret
                } else if value_type == TypeId::of::<Address>() {
                    FieldKind::Address
                } else if instance.contains(&id) {
                    FieldKind::Instance
                } else {
                    FieldKind::Setting
                };
                Field {
                    variable: format!("{prefix}{}", id.to_ascii_uppercase()),
                    flag: format!("--{}", id.replace('_', "-")),
                    default: arg
                        .get_default_values()
                        .first()
                        .map(|value| value.to_string_lossy().into_owned()),
                    help: arg.get_help().map(ToString::to_string).unwrap_or_default(),
                    required: arg.is_required_set(),
                    values: arg
                        .get_possible_values()
                        .iter()
                        .map(|value| value.get_name().to_owned())
                        .collect(),
                    kind,
                    id,
                }
            })
            .collect();
        Self {
            prefix,
            fields,
            command,
        }
    }

    /// The known variable most like `variable`.
    pub(crate) fn nearest(&self, variable: &str) -> Option<String> {
        self.fields
            .iter()
            .map(|field| {
                (
                    strsim::normalized_damerau_levenshtein(&field.variable, variable),
                    &field.variable,
                )
            })
            .filter(|(similarity, _)| *similarity >= SIMILAR)
            .max_by(|(a, _), (b, _)| a.total_cmp(b))
            .map(|(_, variable)| variable.clone())
    }
}
