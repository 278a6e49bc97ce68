//! Where in a request body a value stands, without allocating while everything is well.

use std::fmt;

/// A JSON pointer (RFC 6901) that grows from the root while the body is walked.
#[derive(Clone, Copy)]
pub(super) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    segment: Segment,
}

#[derive(Clone, Copy)]
enum Segment {
    Root,
    Member(&'static str),
    Index(usize),
}

impl<'a> Path<'a> {
    pub(super) const ROOT: Self = Self {
        parent: None,
        segment: Segment::Root,
    };

    pub(super) fn member(&'a self, name: &'static str) -> Self {
        Self {
            parent: Some(self),
            segment: Segment::Member(name),
        }
    }

    pub(super) fn index(&'a self, index: usize) -> Self {
        Self {
            parent: Some(self),
            segment: Segment::Index(index),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            write!(f, "{parent}")?;
        }
        match self.segment {
            Segment::Root => Ok(()),
            Segment::Member(name) => write!(f, "/{name}"),
            Segment::Index(index) => write!(f, "/{index}"),
        }
    }
}
