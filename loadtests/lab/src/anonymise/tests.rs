//! What must go, what must stay, and what keeps anything from being written.

use serde_json::json;

use super::*;

fn document(root: Value) -> Document {
    Document {
        name: "captured.json".to_owned(),
        root,
    }
}

fn shipped() -> Rules {
    Rules::parse(SHIPPED).unwrap()
}

/// Structure, types and lengths, without the values.
fn shape(value: &Value) -> Value {
    match value {
        Value::String(text) => json!(format!("text of {}", text.chars().count())),
        Value::Number(number) => json!(format!("number of {}", number.to_string().len())),
        Value::Array(elements) => elements.iter().map(shape).collect(),
        Value::Object(fields) => Value::Object(fields.iter().map(|(k, v)| (k.clone(), shape(v))).collect()),
        other => other.clone(),
    }
}

#[test]
fn the_shipped_payload_keeps_its_shape_and_its_repeats_and_loses_its_names() {
    let path = deploy::root().join("loadtests/payloads/create-tour.json");
    let root: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut documents = [document(root.clone())];
    let report = anonymise(&mut documents, &shipped()).unwrap();
    let anonymous = &documents[0].root;
    assert_eq!(shape(anonymous), shape(&root));

    let at = |value: &Value, pointer: &str| value.pointer(pointer).unwrap().clone();
    for pointer in [
        "/stops/0/address/name",
        "/stops/0/orders/0/orderNumber",
        "/stops/0/address/latitudeE6",
    ] {
        assert_ne!(at(anonymous, pointer), at(&root, pointer), "{pointer}");
    }
    for pointer in [
        "/tourNumber",
        "/tenantConfig/tenantKey",
        "/stops/3/sequence",
        "/stops/0/address/countryCode",
    ] {
        assert_eq!(at(anonymous, pointer), at(&root, pointer), "{pointer}");
    }
    // The same city twice is the same other city twice.
    let cities = |value: &Value| -> Vec<Value> {
        value["stops"]
            .as_array()
            .unwrap()
            .iter()
            .map(|stop| stop["address"]["city"].clone())
            .collect()
    };
    for (a, b) in cities(&root).iter().zip(cities(anonymous)) {
        for (c, d) in cities(&root).iter().zip(cities(anonymous)) {
            assert_eq!(a == c, b == d);
        }
    }
    assert!(
        report
            .replaced
            .iter()
            .any(|line| line.place == "/stops/*/address/name" && line.values == 9)
    );
    assert!(report.left.iter().any(|line| line.place == "/tourNumber"));
}

#[test]
fn a_value_that_also_stands_elsewhere_is_replaced_there_too() {
    let mut documents = [
        document(json!({"customerNumber": "C-10201", "driver": {"lastName": "Jansen"}})),
        document(json!({"billTo": "C-10201", "sortKey": "Jansen"})),
    ];
    let report = anonymise(&mut documents, &shipped()).unwrap();
    assert_eq!(documents[0].root["customerNumber"], documents[1].root["billTo"]);
    assert_ne!(documents[1].root["billTo"], "C-10201");
    assert_eq!(documents[0].root["driver"]["lastName"], documents[1].root["sortKey"]);
    let equal = report.replaced.iter().find(|line| line.place == "/billTo").unwrap();
    assert!(equal.by.as_ref().unwrap().contains("equal"));
}

#[test]
fn a_value_left_inside_another_text_or_a_field_name_is_refused_and_not_repeated() {
    for leak in [
        json!({"lastName": "Jansen", "label": "for MR JANSEN, by noon"}),
        json!({"lastName": "Jansen", "by": {"jansen": 1}}),
    ] {
        let mut documents = [document(leak)];
        let error = anonymise(&mut documents, &shipped()).unwrap_err();
        assert!(
            error.contains("/lastName") && error.contains("captured.json"),
            "{error}"
        );
        assert!(!error.contains("Jansen"), "{error}");
    }
}

#[test]
fn a_kept_field_with_a_personal_value_is_refused() {
    let rules = Rules::parse(
        "[[rule]]\nname = \"k\"\nkeys = [\"alias\"]\nreplace = \"keep\"\n\
         [[rule]]\nname = \"n\"\nkeys = [\"name\"]\nreplace = \"synthetic\"\n",
    )
    .unwrap();
    let mut documents = [document(json!({"name": "Jansen", "alias": "Jansen"}))];
    assert!(anonymise(&mut documents, &rules).unwrap_err().contains("/alias"));
}

#[test]
fn free_text_becomes_null_and_what_lies_under_a_personal_field_goes_with_it() {
    let mut documents = [document(json!({
        "note": "ring twice, Ms Jansen", "name": {"given": "Ada", "family": "Jansen", "since": 1815}, "count": 3
    }))];
    anonymise(&mut documents, &shipped()).unwrap();
    let root = &documents[0].root;
    assert_eq!(root["note"], Value::Null);
    assert_ne!(root["name"]["given"], "Ada");
    assert_ne!(root["name"]["since"], 1815);
    assert!(root["name"]["since"].is_u64());
    assert_eq!(root["count"], 3);
}

#[test]
fn a_value_for_which_there_is_no_other_is_an_error_that_says_what_to_do() {
    let names: Vec<String> = (b'a'..=b'z').map(|c| char::from(c).to_string()).collect();
    let mut documents = [document(json!({ "name": names }))];
    let error = anonymise(&mut documents, &shipped()).unwrap_err();
    assert!(error.contains("/name/*") && error.contains("null"), "{error}");
}
