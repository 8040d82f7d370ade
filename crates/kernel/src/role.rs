//! What somebody is in a space: who may only read, who takes part, who also changes what all of it shares.

/// A later one may do all that an earlier one may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Subscribes and reads.
    Viewer,
    /// Takes part in every session.
    Member,
    /// Changes the settings of the space too, and says who else has a role.
    Owner,
}

impl Role {
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Member, Self::Owner];

    pub fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Member => "member",
            Self::Owner => "owner",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

/// Who is behind a connection that does not use the host's own token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HolderName {
    /// A device of the people whose host it is.
    Device(String),
    /// The principal of an account.
    Principal(String),
}

/// Who is behind a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientHolder {
    /// None for the holder of the host's own token.
    pub(crate) name: Option<HolderName>,
    pub(crate) role: Role,
}

impl ClientHolder {
    /// Whether this one may come under a client id of the other: it is the same one, or has the host's own token, and may do no
    /// less (H-035).
    pub(crate) fn may_take_over(&self, other: &Self) -> bool {
        let is_same = self.name.is_none() || self.name == other.name;
        is_same && self.role >= other.role
    }

    /// Whose tokens it brings and uses (H-318): none of an account, since the host's own token and its devices are of the same
    /// people.
    pub(crate) fn principal(&self) -> Option<&str> {
        match &self.name {
            Some(HolderName::Principal(name)) => Some(name),
            Some(HolderName::Device(_)) | None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_id_goes_to_the_same_one_with_no_lesser_role() {
        let holder = |name: Option<&str>, role| ClientHolder {
            name: name.map(|name| HolderName::Principal(name.to_owned())),
            role,
        };
        let ann = Some("ann");
        for (newer, older, expected) in [
            (holder(ann, Role::Member), holder(ann, Role::Member), true),
            (holder(ann, Role::Owner), holder(ann, Role::Member), true),
            (holder(ann, Role::Viewer), holder(ann, Role::Member), false),
            (holder(Some("bob"), Role::Owner), holder(ann, Role::Viewer), false),
            (holder(ann, Role::Owner), holder(None, Role::Owner), false),
            (holder(None, Role::Owner), holder(ann, Role::Owner), true),
        ] {
            assert_eq!(newer.may_take_over(&older), expected, "{newer:?} {older:?}");
        }
    }

    #[test]
    fn h_318_the_devices_of_a_host_are_of_the_same_people() {
        let of = |name| ClientHolder { name, role: Role::Owner };
        let device = of(Some(HolderName::Device("phone".to_owned())));
        assert_eq!((device.principal(), of(None).principal()), (None, None));
        let ann = of(Some(HolderName::Principal("ann".to_owned())));
        assert_eq!(ann.principal(), Some("ann"));
        let phone_of_that_name = of(Some(HolderName::Device("ann".to_owned())));
        assert!(!phone_of_that_name.may_take_over(&ann));
    }
}
