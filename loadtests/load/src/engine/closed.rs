//! The closed loop: users who each start their next iteration when the last one has ended.

/// The users of a closed loop, by their number from 0: at any moment the first so many of them are to be at work.
pub(super) struct Closed {
    at_work: usize,
    /// Whether each has a task. One that is to leave has it until its iteration has ended.
    tasks: Vec<bool>,
    most: usize,
}

impl Closed {
    pub(super) fn new() -> Self {
        Self {
            at_work: 0,
            tasks: Vec::new(),
            most: 0,
        }
    }

    /// Has so many users be at work; gives those that need a task for it.
    pub(super) fn set(&mut self, users: usize) -> Vec<usize> {
        self.at_work = users;
        self.most = self.most.max(users);
        if self.tasks.len() < users {
            self.tasks.resize(users, false);
        }
        let missing: Vec<usize> = (0..users).filter(|user| !self.tasks[*user]).collect();
        self.tasks[..users].fill(true);
        missing
    }

    /// Whether this user is to go on; if not, its task ends.
    pub(super) fn goes_on(&mut self, user: usize) -> bool {
        let goes_on = user < self.at_work;
        self.tasks[user] = goes_on;
        goes_on
    }

    /// The most users there were to be at any time.
    pub(super) fn most(&self) -> usize {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_come_and_go_with_the_level_and_nobody_is_there_twice() {
        let mut users = Closed::new();
        assert_eq!(users.set(3), [0, 1, 2]);
        assert!(users.set(3).is_empty() && users.set(1).is_empty());
        assert!(users.goes_on(0) && !users.goes_on(2));
        // User 1 has not ended its iteration yet: it stays, and only 2 has to be made anew.
        assert_eq!(users.set(4), [2, 3]);
        assert!(users.goes_on(1));
        assert_eq!(users.most(), 4);
    }
}
