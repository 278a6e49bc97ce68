//! End to end: the program `rowlock`, real servers, real services.
//!
//! The tests bring up stacks of their own on free ports and run one at a time: two stacks under load on one machine
//! would measure each other.

mod anonymise;
mod demo;
mod experiments;
mod faults;
mod fuzz;
mod gate;
mod judgement;
mod load;
mod originals;
mod overload;
mod rowlock;
mod stack;
mod tours;
mod usage;
