//! A client that leaves at any moment leaves no open transaction and no lock.

use std::time::Duration;

use futures::future::join_all;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tour_data::inserts::Inserts;
use uuid::Uuid;

use crate::audit::audit;
use crate::support::{Database, TourService, eventually, payload, specs, tours_of};

/// Clients that leave, in each of several waves beside clients that stay.
const LEAVING: usize = 12;
const STAYING: usize = 4;
const WAVES: usize = 3;

#[tokio::test]
async fn clients_that_leave_at_any_moment_leave_no_transaction_and_no_lock() {
    // The program is what could leave something. It does so most likely where the row is locked for the whole of it.
    for inserts in specs::<dyn Inserts>() {
        eprintln!("{}", inserts.name);
        leaves_nothing(inserts.name).await;
    }
}

async fn leaves_nothing(inserts: &str) {
    let database = Database::create().await;
    let settings = [("TOUR_DATA_INSERTS", inserts), ("TOUR_DATA_DB_POOL_MAX", "5")];
    let service = TourService::start(&database, &settings).await;
    let tour = payload();
    // How long one takes alone says over which time to spread the leaving.
    service.create(&tour, None).await;
    let started = std::time::Instant::now();
    service.create(&tour, None).await;
    let alone = started.elapsed();
    for _ in 0..WAVES {
        let leaving = join_all((0..LEAVING).map(|_| leave_within(&service, alone * LEAVING as u32)));
        let staying = join_all((0..STAYING).map(|_| service.create(&tour, None)));
        futures::join!(leaving, staying);
    }
    // Sessions of the service bear the name of the database, as does its instance.
    let open = "SELECT count(*) FROM pg_stat_activity \
        WHERE application_name = current_database() AND (xact_start IS NOT NULL OR state LIKE 'idle in transaction%')";
    let locks = "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) \
        WHERE a.application_name = current_database() AND l.locktype IN ('transactionid', 'tuple', 'relation')";
    eventually("no transaction of the service is open", async || {
        (database.number(open).await == 0 && database.number(locks).await == 0).then_some(())
    })
    .await;
    // Nothing was left behind in the pool either: what is written now is there for others to see.
    let before = tours_of(&database).await;
    let last = join_all((0..5).map(|_| service.create(&tour, None))).await;
    assert_eq!(tours_of(&database).await, before + 5);
    assert!(last.iter().all(|posted| posted.body["rows"] == 87));
    let announced: Vec<_> = Vec::<(String, i32)>::new();
    assert_eq!(audit(&database, &[], announced, false).await, [""; 0]);
    service.running.shutdown().await.expect("it drains");
}

/// Sends a whole request and hangs up at a random moment.
async fn leave_within(service: &TourService, spread: Duration) {
    let body = payload().to_string();
    let request = format!(
        "POST /api/v1/tours HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        service.token(),
        body.len()
    );
    let mut connection = TcpStream::connect(service.running.http_addr)
        .await
        .expect("the service listens");
    connection.write_all(request.as_bytes()).await.expect("it is sent");
    // A random UUID is as good a source as any, and one dependency less.
    let share = f64::from(Uuid::new_v4().as_fields().0) / f64::from(u32::MAX);
    tokio::time::sleep(spread.mul_f64(share)).await;
    drop(connection);
}
