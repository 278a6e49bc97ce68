//! The tour-data service.

fn main() -> std::process::ExitCode {
    chassis::service::main::<tour_data::TourData>()
}
