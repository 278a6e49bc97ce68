//! The second driver, tokio-postgres: it sends a statement without waiting for the answer to the one before, and sets
//! TCP_NODELAY. It has connections of its own, with the limits of sqlx's pool.

pub(in crate::inserts) mod rows;

mod pool;

use std::future::poll_fn;
use std::task::Poll;

use futures::future::{BoxFuture, maybe_done};
use tokio_postgres::types::{ToSql, Type};

pub(in crate::inserts) use self::pool::{Pools, Session};
use crate::plan::{Bind, Clock, Step, TxError};

/// The values of a step, read when it is sent.
pub(in crate::inserts) type Values<'a> = Vec<Box<dyn ToSql + Sync + Send + 'a>>;

pub(in crate::inserts) fn values(step: &Step, clock: Clock) -> Values<'_> {
    step.binds.iter().map(|bind| value(bind, clock)).collect()
}

fn value(bind: &Bind, clock: Clock) -> Box<dyn ToSql + Sync + Send + '_> {
    match bind {
        Bind::Now => Box::new(clock()),
        Bind::Time(time) => Box::new(*time),
        Bind::Id(id) => Box::new(*id),
        Bind::Text(text) => Box::new(text.as_str()),
        Bind::OptionalText(text) => Box::new(text.as_deref()),
    }
}

/// The types of a step's parameters: PostgreSQL cannot tell them where a parameter stands beside an interval, say.
pub(in crate::inserts) fn types(step: &Step) -> Vec<Type> {
    let kind = |bind: &Bind| match bind {
        Bind::Now | Bind::Time(_) => Type::TIMESTAMPTZ,
        Bind::Id(_) => Type::INT8,
        Bind::Text(_) | Bind::OptionalText(_) => Type::TEXT,
    };
    step.binds.iter().map(kind).collect()
}

/// The type of a column, by its name in the tables' data.
pub(in crate::inserts) fn type_of(name: &str) -> Type {
    match name {
        "uuid" => Type::UUID,
        "bigint" => Type::INT8,
        "integer" => Type::INT4,
        "date" => Type::DATE,
        "timestamptz" => Type::TIMESTAMPTZ,
        "bytea" => Type::BYTEA,
        text => {
            assert_eq!(text, "text", "the tables have no other types");
            Type::TEXT
        }
    }
}

/// What became of the transaction, in the words of the first driver.
pub(in crate::inserts) fn error(error: tokio_postgres::Error) -> TxError {
    let Some(database) = error.as_db_error() else {
        return TxError::Unavailable(sqlx::Error::Io(std::io::Error::other(error)));
    };
    let (code, constraint) = (
        database.code().code().to_owned(),
        database.constraint().map(str::to_owned),
    );
    let words = sqlx::Error::Protocol(format!("{} (SQLSTATE {code})", database.message()));
    TxError::of_state(&code, constraint.as_deref(), words)
}

/// Begins all of them in their order before it waits for the first. (`join_all` promises no order.)
pub(in crate::inserts) async fn in_order<T>(futures: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    let mut begun: Vec<_> = futures.into_iter().map(maybe_done).collect();
    poll_fn(|cx| {
        for future in &mut begun {
            // Ready or not, its statement is on its way.
            let _ = futures::FutureExt::poll_unpin(future, cx);
        }
        Poll::Ready(())
    })
    .await;
    let mut answers = Vec::with_capacity(begun.len());
    for mut future in begun {
        (&mut future).await;
        answers.push(std::pin::Pin::new(&mut future).take_output().expect("it is done"));
    }
    answers
}
