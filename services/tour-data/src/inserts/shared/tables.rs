//! The five tables of a tour, and the statements that fill them.

/// A table with the columns that are written, in the order of their binds.
pub(in crate::inserts) struct Table {
    pub(in crate::inserts) name: &'static str,
    /// Names and types.
    pub(in crate::inserts) columns: &'static [(&'static str, &'static str)],
}

pub(in crate::inserts) const TOUR: Table = Table {
    name: "tour",
    columns: &[
        ("id", "uuid"),
        ("tenant_config_id", "bigint"),
        ("tour_number", "text"),
        ("trip_number", "text"),
        ("tour_status", "text"),
        ("tour_date", "date"),
        ("vehicle_number", "text"),
        ("license_plate", "text"),
        ("vehicle_type", "text"),
        ("driver_number", "text"),
        ("driver_first_name", "text"),
        ("driver_last_name", "text"),
        ("driver_phone", "text"),
        ("idempotency_key", "text"),
        ("request_digest", "bytea"),
        ("created_at", "timestamptz"),
    ],
};

pub(in crate::inserts) const ADDRESS: Table = Table {
    name: "address",
    columns: &[
        ("id", "uuid"),
        ("name", "text"),
        ("contact_person", "text"),
        ("phone", "text"),
        ("street", "text"),
        ("postal_code", "text"),
        ("city", "text"),
        ("country_code", "text"),
        ("latitude_e6", "integer"),
        ("longitude_e6", "integer"),
    ],
};

pub(in crate::inserts) const STOP: Table = Table {
    name: "stop",
    columns: &[
        ("id", "uuid"),
        ("tour_id", "uuid"),
        ("address_id", "uuid"),
        ("sequence", "integer"),
        ("stop_type", "text"),
        ("planned_arrival", "timestamptz"),
        ("planned_departure", "timestamptz"),
    ],
};

pub(in crate::inserts) const ORDER: Table = Table {
    name: "tour_order",
    columns: &[
        ("id", "uuid"),
        ("stop_id", "uuid"),
        ("address_id", "uuid"),
        ("order_number", "text"),
        ("customer_number", "text"),
        ("order_type", "text"),
        ("reference", "text"),
    ],
};

pub(in crate::inserts) const POSITION: Table = Table {
    name: "order_position",
    columns: &[
        ("id", "uuid"),
        ("order_id", "uuid"),
        ("position_number", "integer"),
        ("article_number", "text"),
        ("description", "text"),
        ("quantity", "integer"),
        ("unit", "text"),
        ("weight_grams", "bigint"),
    ],
};

/// All of them.
pub(in crate::inserts) const ALL: [Table; 5] = [TOUR, ADDRESS, STOP, ORDER, POSITION];

/// The tables that a tour has many rows of, parents before their children.
pub(in crate::inserts) const MANY: [Table; 4] = [ADDRESS, STOP, ORDER, POSITION];

impl Table {
    /// INSERT of one row, whose parameters are numbered from `first` on.
    pub(in crate::inserts) fn insert_one(&self, first: usize) -> String {
        let values = self.parameters(first, |_| String::new());
        format!("INSERT INTO {} ({}) VALUES ({values})", self.name, self.names())
    }

    /// INSERT of any number of rows from one array a column, whose parameters are numbered from `first` on.
    pub(in crate::inserts) fn insert_many(&self, first: usize) -> String {
        let arrays = self.parameters(first, |kind| format!("::{kind}[]"));
        format!(
            "INSERT INTO {} ({}) SELECT * FROM unnest({arrays})",
            self.name,
            self.names()
        )
    }

    pub(in crate::inserts) fn names(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }

    fn parameters(&self, first: usize, cast: impl Fn(&str) -> String) -> String {
        let numbered = self.columns.iter().zip(first..);
        let parameters: Vec<String> = numbered
            .map(|((_, kind), number)| format!("${number}{}", cast(kind)))
            .collect();
        parameters.join(", ")
    }
}
