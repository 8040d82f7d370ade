//! The few words that agents put into shared state, in the language of the host's process (G-14): all clients see the
//! same ones.

/// A language of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Locale {
    #[default]
    English,
    German,
}

/// The words of one language; `{}` stands for a tool's name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LocaleTexts {
    pub(crate) approve: &'static str,
    allow_in_session: &'static str,
    allow_in_project: &'static str,
    pub(crate) carry_out_plan: &'static str,
    pub(crate) plan_then_ask: &'static str,
    pub(crate) plan_then_accept_edits: &'static str,
    pub(crate) keep_planning: &'static str,
    pub(crate) deny: &'static str,
    run: &'static str,
    ran: &'static str,
    failed: &'static str,
    done: &'static str,
}

const ENGLISH: LocaleTexts = LocaleTexts {
    approve: "Approve",
    allow_in_session: "Approve, and allow {} in this session",
    allow_in_project: "Approve, and always allow {} in this project",
    carry_out_plan: "Carry out this plan?",
    plan_then_ask: "Approve, and ask before each edit and command",
    plan_then_accept_edits: "Approve, and accept edits",
    keep_planning: "Keep planning",
    deny: "Deny",
    run: "Run {}",
    ran: "Ran {}",
    failed: "{} failed",
    done: "{}: done",
};

const GERMAN: LocaleTexts = LocaleTexts {
    approve: "Erlauben",
    allow_in_session: "Erlauben, und {} in dieser Sitzung zulassen",
    allow_in_project: "Erlauben, und {} in diesem Projekt immer zulassen",
    carry_out_plan: "Diesen Plan ausführen?",
    plan_then_ask: "Zustimmen, und vor jeder Änderung und jedem Befehl fragen",
    plan_then_accept_edits: "Zustimmen, und Änderungen zulassen",
    keep_planning: "Weiter planen",
    deny: "Ablehnen",
    run: "{} ausführen",
    ran: "{} ausgeführt",
    failed: "{} ist fehlgeschlagen",
    done: "{}: erledigt",
};

impl Locale {
    /// The locale of the process, by the variables that POSIX names for messages, the strongest first.
    pub fn of_environment() -> Self {
        Self::chosen(|variable| std::env::var(variable).ok())
    }

    fn chosen(variable: impl Fn(&str) -> Option<String>) -> Self {
        let names = ["LC_ALL", "LC_MESSAGES", "LANG"].into_iter();
        let set = names.filter_map(variable).find(|name| !name.is_empty());
        Self::named(set.as_deref().unwrap_or(""))
    }

    /// By a name such as `de_AT.UTF-8`; English where the language is not spoken here.
    fn named(name: &str) -> Self {
        let language = name.split(['_', '-', '.', '@']).next().unwrap_or("");
        if language.eq_ignore_ascii_case("de") { Self::German } else { Self::English }
    }

    pub(crate) fn words(self) -> &'static LocaleTexts {
        match self {
            Self::English => &ENGLISH,
            Self::German => &GERMAN,
        }
    }
}

impl LocaleTexts {
    pub(crate) fn run(&self, name: &str) -> String {
        self.run.replace("{}", name)
    }

    pub(crate) fn allow_in_session(&self, rule: &str) -> String {
        self.allow_in_session.replace("{}", rule)
    }

    pub(crate) fn allow_in_project(&self, rule: &str) -> String {
        self.allow_in_project.replace("{}", rule)
    }

    pub(crate) fn ran(&self, name: &str) -> String {
        self.ran.replace("{}", name)
    }

    /// What was done, of something that says itself what it does.
    pub(crate) fn done(&self, title: &str) -> String {
        self.done.replace("{}", title)
    }

    pub(crate) fn failed(&self, name: &str) -> String {
        self.failed.replace("{}", name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_variable_that_is_set_decides() {
        let chosen = |variables: &[(&str, &str)]| {
            Locale::chosen(|name| {
                let variable_value = variables.iter().find(|(variable, _)| *variable == name);
                variable_value.map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(chosen(&[]), Locale::English);
        assert_eq!(chosen(&[("LANG", "de_DE.UTF-8")]), Locale::German);
        assert_eq!(
            chosen(&[("LC_ALL", ""), ("LC_MESSAGES", "de"), ("LANG", "en_GB")]),
            Locale::German
        );
        assert_eq!(chosen(&[("LC_ALL", "C.UTF-8"), ("LANG", "de_DE")]), Locale::English);
    }

    #[test]
    fn the_language_is_the_first_part_of_a_locale_name() {
        for name in ["de", "de_AT.UTF-8", "DE-ch", "de@euro"] {
            assert_eq!(Locale::named(name), Locale::German, "{name}");
        }
        for name in ["", "C", "POSIX", "en_US", "den_XX", "fr_FR"] {
            assert_eq!(Locale::named(name), Locale::English, "{name}");
        }
    }
}
