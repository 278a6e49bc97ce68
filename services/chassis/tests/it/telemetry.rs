//! Logs, metrics and traces as they leave the process.

use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use reqwest::Client;

use crate::collector::{Collector, attribute, text};
use crate::process::{self, Finished};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Serves one request that has `flags` in its `traceparent`, then stops the process.
async fn one_request(variables: &[(&str, &str)], flags: &str) -> Finished {
    let hello = process::serve(variables);
    let answer = Client::new()
        .get(format!("http://{}/hello/you", hello.http))
        .header("traceparent", format!("00-{TRACE}-{PARENT}-{flags}"))
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 200);
    hello.terminate();
    tokio::task::spawn_blocking(|| hello.finished()).await.unwrap()
}

#[tokio::test]
async fn span_log_and_metric_reach_the_collector_with_the_callers_trace() {
    let collector = Collector::start().await;
    let finished = one_request(
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint()),
            ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test"),
            ("HELLO_INSTANCE_ID", "hello-7"),
            ("HELLO_LOG", "trace"),
        ],
        "01",
    )
    .await;
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);

    let spans = collector.spans();
    let span = spans
        .iter()
        .find(|span| span.name == "GET /hello/{whom}")
        .expect("the request's span");
    assert_eq!(hex(&span.trace_id), TRACE);
    assert_eq!(hex(&span.parent_span_id), PARENT);
    assert_eq!(attribute(&span.attributes, "http.route"), Some("/hello/{whom}"));

    let resource = collector.resource();
    for (key, value) in [
        ("service.name", "hello"),
        ("service.namespace", "rowlock"),
        ("service.version", env!("CARGO_PKG_VERSION")),
        ("service.instance.id", "hello-7"),
        ("deployment.environment.name", "test"),
    ] {
        assert_eq!(attribute(&resource, key), Some(value), "{key}");
    }

    let logs = collector.logs();
    let log = logs
        .iter()
        .find(|log| text(log.body.as_ref()) == Some("greeting"))
        .expect("the handler's log record");
    assert_eq!((&log.trace_id, &log.span_id), (&span.trace_id, &span.span_id));
    let line = finished
        .logs
        .iter()
        .find(|line| line["message"] == "greeting")
        .expect("the handler's log line");
    assert_eq!(
        (line["trace_id"].as_str(), line["span_id"].as_str()),
        (Some(TRACE), Some(&*hex(&span.span_id)))
    );
    assert_eq!(
        (line["whom"].as_str(), line["level"].as_str()),
        (Some("you"), Some("INFO"))
    );

    let metrics = collector.metrics();
    let duration = metrics
        .iter()
        .find(|metric| metric.name == "http.server.request.duration")
        .expect("the metric");
    assert_eq!(duration.unit, "s");
    let Some(Data::Histogram(histogram)) = &duration.data else {
        panic!("not a histogram: {duration:?}")
    };
    assert_eq!(histogram.data_points[0].explicit_bounds.first(), Some(&0.005));

    let own = |scope: &String| {
        ["hyper", "h2", "tonic", "tower", "opentelemetry"]
            .iter()
            .any(|own| scope.starts_with(own))
    };
    assert!(
        !collector.log_scopes().iter().any(own),
        "the exporters' own logs are exported: {:?}",
        collector.log_scopes()
    );
}

#[tokio::test]
async fn the_standard_variables_choose_the_sampler() {
    for (sampler, flags, sampled) in [
        (("always_off", ""), "01", false),
        (("parentbased_traceidratio", "0"), "01", true),
        (("parentbased_always_on", ""), "00", false),
        (("traceidratio", "1"), "00", true),
    ] {
        let collector = Collector::start().await;
        let variables = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &*collector.endpoint()),
            ("OTEL_TRACES_SAMPLER", sampler.0),
            ("OTEL_TRACES_SAMPLER_ARG", sampler.1),
        ];
        let finished = one_request(&variables, flags).await;
        assert_eq!(finished.code, Some(0));
        assert_eq!(
            !collector.spans().is_empty(),
            sampled,
            "{sampler:?} after a caller with {flags}"
        );
        let log = collector
            .logs()
            .into_iter()
            .find(|log| text(log.body.as_ref()) == Some("greeting"));
        assert_eq!(hex(&log.expect("logs do not depend on the sampler").trace_id), TRACE);
    }
}

#[tokio::test]
async fn telemetry_is_sent_when_the_service_crashes_or_does_not_start() {
    let collector = Collector::start().await;
    let endpoint = collector.endpoint();
    let hello = process::serve(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)]);
    Client::new()
        .post(format!("http://{}/crash", hello.http))
        .send()
        .await
        .unwrap();
    let finished = tokio::task::spawn_blocking(|| hello.finished()).await.unwrap();
    assert_eq!(finished.code, Some(1));
    assert!(collector.spans().iter().any(|span| span.name == "POST /crash"));
    assert!(
        collector
            .metrics()
            .iter()
            .any(|metric| metric.name == "http.server.request.duration")
    );

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let finished = tokio::task::spawn_blocking(move || {
        process::run(
            &[
                ("HELLO_API_KEY", "k"),
                ("HELLO_HTTP_ADDR", &address),
                ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
            ],
            &[],
        )
    })
    .await
    .unwrap();
    assert_eq!(finished.code, Some(3));
    assert!(
        collector
            .logs()
            .iter()
            .any(|log| text(log.body.as_ref()) == Some("did not start"))
    );
}

#[tokio::test]
async fn without_a_collector_log_lines_still_carry_the_callers_trace() {
    let finished = one_request(&[], "01").await;
    assert_eq!(finished.code, Some(0));
    let line = finished
        .logs
        .iter()
        .find(|line| line["message"] == "greeting")
        .expect("the handler's log line");
    assert_eq!(line["trace_id"], TRACE);
    assert_eq!(line["service"], "hello");
    assert!(line["timestamp"].as_str().unwrap().ends_with('Z'));
}

#[tokio::test]
async fn a_malformed_collector_address_exits_with_2_and_names_the_variable() {
    let variables = [
        ("HELLO_API_KEY", "k"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://[nowhere"),
    ];
    let finished = tokio::task::spawn_blocking(move || process::run(&variables, &[]))
        .await
        .unwrap();
    assert_eq!(finished.code, Some(2));
    assert!(
        finished.stderr.contains("OTEL_EXPORTER_OTLP_ENDPOINT"),
        "{}",
        finished.stderr
    );
}
