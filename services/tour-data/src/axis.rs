//! What the four axes have in common: a registry of named alternatives, of which configuration chooses one.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::plan::Spec;

/// An axis, implemented for the trait object of its interface (`dyn Touch`).
pub trait Axis: 'static {
    /// As in the configuration: "touch".
    const NAME: &'static str;
    /// How an alternative of this axis is constructed.
    type Make: Copy + Send + Sync + 'static;
    /// Every alternative, in the order of the file names.
    fn registry() -> &'static [Entry<Self>];
}

/// One alternative of an axis.
pub struct Entry<A: Axis + ?Sized> {
    /// What it is and what it promises.
    pub spec: &'static Spec,
    /// Its constructor.
    pub make: A::Make,
    /// What it gives up, in the words of its module comment.
    pub gives_up: &'static str,
    /// Where it is not to be used: the sentence of the module comment that begins so.
    pub not_for: &'static str,
}

/// The alternative that configuration named. Parsing a name that no alternative has fails and names the known ones.
pub struct Chosen<A: Axis + ?Sized>(&'static Entry<A>);

impl<A: Axis + ?Sized> Chosen<A> {
    /// The constructor of the chosen alternative.
    pub fn make(&self) -> A::Make {
        self.0.make
    }
}

impl<A: Axis + ?Sized> FromStr for Chosen<A> {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = A::registry();
        known
            .iter()
            .find(|entry| entry.spec.name == name)
            .map(Self)
            .ok_or_else(|| {
                let names: Vec<_> = known.iter().map(|entry| entry.spec.name).collect();
                format!(
                    "no alternative of {} is called {name:?}; known: {}",
                    A::NAME,
                    names.join(", ")
                )
            })
    }
}

// Derived, these two would ask for `A: Clone`, which a trait object is not.
impl<A: Axis + ?Sized> Clone for Chosen<A> {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

impl<A: Axis + ?Sized> fmt::Debug for Chosen<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.spec.name)
    }
}

impl<A: Axis + ?Sized> Serialize for Chosen<A> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.spec.name)
    }
}
