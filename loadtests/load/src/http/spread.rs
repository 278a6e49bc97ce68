//! Users who do not all do the same: each belongs to a group for as long as the load lasts.

use super::mix::{Mix, MixUser};
use crate::error::LoadError;
use crate::target::{Failure, Iteration, Target};

/// Groups of users, each with requests of its own.
///
/// The user `index` sits on seat `index` modulo the number of seats, and a seat belongs to a group. The requests of all
/// groups are alike but for what makes the group, so they are counted together.
#[derive(Debug)]
pub struct Spread {
    groups: Vec<Mix>,
    seats: Vec<usize>,
}

impl Spread {
    /// Checks that every seat has its group, and every group requests of as many kinds as the others.
    pub fn new(groups: Vec<Mix>, seats: Vec<usize>) -> Result<Self, LoadError> {
        if seats.is_empty() {
            return Err(LoadError::Request("nobody is there to send: there are no seats".into()));
        }
        if let Some(seat) = seats.iter().find(|group| **group >= groups.len()) {
            return Err(LoadError::Request(format!(
                "a seat belongs to the group {seat}, and there are {} from 0",
                groups.len()
            )));
        }
        let kinds = |group: &Mix| group.parts().len();
        if groups.iter().any(|group| kinds(group) != kinds(&groups[0])) {
            return Err(LoadError::Request(
                "groups that are counted together need requests of as many kinds".into(),
            ));
        }
        Ok(Self { groups, seats })
    }

    /// How many requests were repeated.
    pub fn repeated(&self) -> u64 {
        self.groups.iter().map(Mix::repeated).sum()
    }

    fn group_of(&self, index: usize) -> usize {
        self.seats[index % self.seats.len()]
    }
}

/// What a virtual user of a [`Spread`] keeps.
#[derive(Debug)]
pub struct SpreadUser {
    group: usize,
    user: MixUser,
}

impl Target for Spread {
    type User = SpreadUser;

    async fn user(&self, index: usize) -> Result<SpreadUser, Failure> {
        let group = self.group_of(index);
        let user = self.groups[group].user(index).await?;
        Ok(SpreadUser { group, user })
    }

    async fn iterate(&self, user: &mut SpreadUser) -> Iteration {
        self.groups[user.group].iterate(&mut user.user).await
    }

    fn parts(&self) -> Vec<String> {
        self.groups.first().map(Mix::parts).unwrap_or_default()
    }

    fn part(&self, user: &SpreadUser) -> usize {
        self.groups[user.group].part(&user.user)
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::http::HttpTarget;

    fn group(requests: usize) -> Mix {
        let get = || {
            HttpTarget::builder(Method::GET, "http://127.0.0.1:9/".parse().unwrap())
                .build()
                .unwrap()
        };
        Mix::new((0..requests).map(|_| (1, get())).collect(), 1).unwrap()
    }

    #[test]
    fn every_user_has_the_group_of_its_seat_and_seats_are_taken_in_turn() {
        let spread = Spread::new(vec![group(2), group(2), group(2)], vec![0, 0, 2, 1]).unwrap();
        let groups: Vec<usize> = (0..6).map(|index| spread.group_of(index)).collect();
        assert_eq!(groups, [0, 0, 2, 1, 0, 0]);
        assert_eq!(spread.parts().len(), 2);
    }

    #[test]
    fn seats_without_a_group_and_groups_that_cannot_be_counted_together_are_refused() {
        for (groups, seats, told) in [
            (vec![group(1)], vec![], "no seats"),
            (vec![group(1)], vec![0, 1], "group 1"),
            (vec![], vec![0], "group 0"),
            (vec![group(1), group(2)], vec![0], "as many kinds"),
        ] {
            let error = Spread::new(groups, seats).unwrap_err();
            assert!(error.to_string().contains(told), "{error}");
        }
    }
}
