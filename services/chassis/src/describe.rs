//! `SERVICE --describe`: what a service can be told and what it promises, for tools that know it only from outside.

use serde_json::{Map, Value, json};

use crate::config::{Field, Surface};
use crate::service::{Action, Service};

/// Keys the service itself gives win over the chassis's.
pub(crate) fn describe<S: Service>() -> Value {
    let fields = Surface::of::<S::Config>(S::NAME).fields;
    // A service that takes the database topic owns a database, and no service owns one without it.
    let migrates = fields.iter().any(|field| field.id == "db_url");
    let mut description = Map::new();
    description.insert("service".to_owned(), S::NAME.into());
    description.insert("version".to_owned(), env!("CARGO_PKG_VERSION").into());
    description.insert("config".to_owned(), fields.iter().map(option).collect());
    description.insert("migrates".to_owned(), migrates.into());
    description.insert("actions".to_owned(), S::ACTIONS.iter().map(action).collect());
    if let Value::Object(own) = S::describe() {
        description.extend(own);
    }
    Value::Object(description)
}

fn action(action: &Action) -> Value {
    json!({"name": action.name, "words": action.words})
}

fn option(field: &Field) -> Value {
    let mut option = json!({
        "name": field.variable,
        "flag": field.flag,
        "default": field.default,
        "help": field.help,
        "required": field.required,
    });
    if !field.values.is_empty() {
        option["values"] = field.values.clone().into();
    }
    option
}
