//! What several inserters stand on: the tables as data, the columns of a tour, a second driver, and the ways in which
//! statements go.

pub(super) mod columns;
pub(super) mod driver;
pub(super) mod fused;
pub(super) mod stepwise;
pub(super) mod tables;
