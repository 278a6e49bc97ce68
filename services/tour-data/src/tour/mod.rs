//! A tour as requests bring it, as the plan writes it and as readers get it.

mod dto;
mod new_tour;
mod parse;
mod path;

pub use dto::{AddressDto, DriverDto, OrderDto, PositionDto, StopDto, TenantConfigDto, TourDto, VehicleDto};
pub use new_tour::{Address, NewTour, Order, Position, Stop, Tenant, TenantId, TenantKey};
pub use parse::{Identity, Invalid, parse};
