//! The outbox: messages in the order of the tours, and tours without a broker.

use reqwest::StatusCode;

use crate::support::{Database, Link, MessageTap, Names, TourService, payload};

#[tokio::test]
async fn messages_of_a_tenant_come_in_the_order_of_its_tours_whichever_replica_relays_them() {
    let database = Database::create().await;
    let settings = [("TOUR_DATA_ANNOUNCE", "outbox")];
    let names = Names::new();
    let mut tap = MessageTap::on(&names).await;
    let own = [
        ("TOUR_DATA_EXCHANGE", names.exchange.as_str()),
        ("TOUR_DATA_QUEUE", names.queue.as_str()),
    ];
    let settings = [&settings[..], &own].concat();
    let (one, other) = futures::join!(
        TourService::start(&database, &settings),
        TourService::start(&database, &settings)
    );
    let mut sent = Vec::new();
    for at in 0..30 {
        let service = if at % 3 == 0 { &one } else { &other };
        sent.push(service.create(&payload(), None).await.id.to_string());
    }
    tap.messages_of(sent.iter().cloned()).await;
    assert_eq!(tap.order(), sent);
    for service in [one, other] {
        service.running.shutdown().await.expect("it drains");
    }
    assert_eq!(database.number("SELECT count(*) FROM outbox").await, 0);
}

#[tokio::test]
async fn without_a_broker_tours_are_created_and_announced_later() {
    let database = Database::create().await;
    let link = Link::to(Names::server_addr()).await;
    let url = Names::amqp().replace(&Names::server_addr(), &link.addr.to_string());
    let settings = [
        ("TOUR_DATA_ANNOUNCE", "outbox"),
        ("TOUR_DATA_AMQP_URL", url.as_str()),
        ("TOUR_DATA_PUBLISH_TIMEOUT", "300ms"),
    ];
    let service = TourService::start(&database, &settings).await;
    let mut tap = MessageTap::on(&service.names).await;
    link.cut();
    let mut sent = Vec::new();
    for _ in 0..3 {
        sent.push(service.create(&payload(), None).await.id.to_string());
    }
    assert_eq!(service.readiness().await.0, StatusCode::OK);
    link.restore();
    tap.messages_of(sent.iter().cloned()).await;
    service.running.shutdown().await.expect("it drains");
}
