//! What is done without next, by what a server said.

use std::sync::LazyLock;

use super::*;

fn chosen(blame: &RefusalCause, sent: &SentRequest<'_>) -> Option<Reduction> {
    let known = Refusals::default();
    choose(&known, blame, Reduction::AsMeant, sent).map(|less| less.reduction)
}

static NOTHING: LazyLock<Refusals> = LazyLock::new(Refusals::default);

fn sent<'a>(natives: Vec<NativeBody<'a>>) -> SentRequest<'a> {
    SentRequest {
        natives,
        without: &NOTHING,
        has_lists: false,
        has_signatures: false,
        lacks_signatures: false,
        shows_thoughts: false,
        answered: 0,
        is_refused: true,
    }
}

#[test]
fn a_server_that_merely_fails_teaches_nothing_about_texts() {
    let mut sent = SentRequest {
        has_lists: true,
        has_signatures: true,
        is_refused: false,
        ..sent(Vec::new())
    };
    assert_eq!(chosen(&RefusalCause::Unknown, &sent), None);
    assert_eq!(chosen(&RefusalCause::Lists, &sent), Some(Reduction::PlainText), "it says so");
    assert_eq!(chosen(&RefusalCause::Signatures, &sent), Some(Reduction::WithoutRefused));
    sent.has_signatures = false;
    sent.is_refused = true;
    assert_eq!(chosen(&RefusalCause::Unknown, &sent), Some(Reduction::PlainText));
    assert_eq!(chosen(&RefusalCause::Body(BTreeSet::new()), &sent), None);
    sent.has_lists = false;
    assert_eq!(chosen(&RefusalCause::Unknown, &sent), None, "it would be the same");
    assert_eq!(chosen(&RefusalCause::Lists, &sent), None, "it would be the same");
}

#[test]
fn what_is_unexplained_is_tried_without_signatures_once() {
    let known = Refusals::default();
    let mut sent = SentRequest { has_signatures: true, ..sent(Vec::new()) };
    let less = choose(&known, &RefusalCause::Unknown, Reduction::AsMeant, &sent).unwrap();
    assert!(less.without.signatures && less.learned.signatures && !less.without.strings_only);
    sent.has_signatures = false;
    sent.lacks_signatures = true;
    let more = choose(&known, &RefusalCause::Unknown, less.reduction, &sent);
    assert!(more.is_none(), "{more:?}");
}

#[test]
fn thoughts_that_are_missing_are_sent_empty_once_beside_what_was_left_out() {
    let known = Refusals::default();
    let missing = RefusalCause::ReasoningMissing;
    let less = choose(&known, &missing, Reduction::AsMeant, &sent(Vec::new())).unwrap();
    assert!(less.without.blank_reasoning && less.learned.blank_reasoning);
    assert_eq!(less.reduction, Reduction::WithoutRefused);
    let mut without = Refusals::default();
    without.kinds.insert(MediaKind::Image);
    let without_images = SentRequest { without: &without, ..sent(Vec::new()) };
    let less = choose(&known, &missing, Reduction::WithoutRefused, &without_images).unwrap();
    assert!(less.without.blank_reasoning && less.learned.kinds.contains(&MediaKind::Image));
    let same = SentRequest { without: &less.without, ..sent(Vec::new()) };
    assert!(choose(&known, &missing, Reduction::AsMeant, &same).is_none());
    assert!(choose(&known, &missing, less.reduction, &same).is_none());
}

#[test]
fn thoughts_that_are_not_shown_are_not_asked_for_once() {
    let known = Refusals::default();
    let shown = RefusalCause::ShownThoughts;
    let asked = SentRequest { shows_thoughts: true, ..sent(Vec::new()) };
    let less = choose(&known, &shown, Reduction::AsMeant, &asked).unwrap();
    assert!(less.learned.hides_thoughts && less.reduction == Reduction::AsMeant);
    let message = agent_api::UserMessage::text("x");
    let image = NativeBody { kind: MediaKind::Image, message: &message, position: 0, part: 0 };
    let silent = SentRequest { without: &less.without, has_lists: true, ..sent(vec![image]) };
    assert!(choose(&known, &shown, less.reduction, &silent).is_none());
    let images = RefusalCause::Kinds(BTreeSet::from([MediaKind::Image]));
    let more = choose(&known, &images, less.reduction, &silent).unwrap();
    assert!(more.learned.hides_thoughts && more.learned.kinds.contains(&MediaKind::Image));
    assert!(!more.learned.strings_only, "that is not tried yet");
    let more = choose(&known, &RefusalCause::Lists, less.reduction, &silent).unwrap();
    assert!(more.without.hides_thoughts && more.without.strings_only);
}

#[test]
fn empty_thoughts_stay_when_something_else_is_refused_next() {
    let known = Refusals::default();
    let message = agent_api::UserMessage::text("x");
    let image = || NativeBody { kind: MediaKind::Image, message: &message, position: 0, part: 0 };
    let missing = RefusalCause::ReasoningMissing;
    let first = choose(&known, &missing, Reduction::AsMeant, &sent(vec![image()])).unwrap();
    let with_blanks = SentRequest { without: &first.without, ..sent(vec![image()]) };
    let images = RefusalCause::Kinds(BTreeSet::from([MediaKind::Image]));
    let less = choose(&known, &images, first.reduction, &with_blanks).unwrap();
    assert_eq!(less.reduction, Reduction::PlainText);
    assert!(less.without.strings_only && less.without.blank_reasoning);
    assert!(less.learned.strings_only && less.learned.blank_reasoning);
}

#[test]
fn empty_thoughts_that_are_not_taken_any_more_are_forgotten() {
    let mut known = Refusals::default();
    known.blank_reasoning = true;
    let mut with_blanks = SentRequest { without: &known, ..sent(Vec::new()) };
    let as_meant = Reduction::AsMeant;
    let less = choose(&known, &RefusalCause::Signatures, as_meant, &with_blanks).unwrap();
    assert!(less.without.is_empty() && less.learned.is_empty());
    let again = SentRequest { without: &less.without, ..sent(Vec::new()) };
    let more = choose(&known, &RefusalCause::Signatures, less.reduction, &again);
    assert!(more.is_none(), "it would be the same: {more:?}");
    let without_refused = Reduction::WithoutRefused;
    let less = choose(&known, &RefusalCause::Signatures, without_refused, &with_blanks).unwrap();
    assert!(!less.without.blank_reasoning && less.learned.is_empty());
    with_blanks.has_signatures = true;
    let less = choose(&known, &RefusalCause::Signatures, as_meant, &with_blanks).unwrap();
    assert!(less.learned.signatures && !less.learned.blank_reasoning);
}

#[test]
fn bodies_that_were_gone_before_are_not_blamed_for_signatures() {
    let known = Refusals::default();
    let without_bodies = SentRequest { has_signatures: true, ..sent(Vec::new()) };
    let less =
        choose(&known, &RefusalCause::Unknown, Reduction::WithoutRefused, &without_bodies).unwrap();
    assert!(less.without.strings_only && less.without.signatures);
    assert!(less.learned.signatures && !less.learned.strings_only);
    assert!(less.learned.kinds.is_empty());
}

#[test]
fn bodies_that_were_taken_before_are_blamed_last() {
    let message = agent_api::UserMessage::text("x");
    let native = |kind, position| NativeBody { kind, message: &message, position, part: 0 };
    let sent = SentRequest {
        has_lists: true,
        answered: 2,
        ..sent(vec![
            native(MediaKind::Image, 0),
            native(MediaKind::Document, 2),
            native(MediaKind::Image, 4),
        ])
    };
    let blame = RefusalCause::Body(BTreeSet::from([MediaKind::Image]));
    let known = Refusals::default();
    let less = choose(&known, &blame, Reduction::AsMeant, &sent).unwrap();
    assert_eq!(less.names.len(), 1);
    let blame = RefusalCause::Kinds(BTreeSet::from([MediaKind::Audio]));
    let less = choose(&known, &blame, Reduction::AsMeant, &sent).unwrap();
    assert_eq!(
        less.learned.kinds,
        BTreeSet::from([MediaKind::Image, MediaKind::Document]),
        "what is named is not there: all that is"
    );
}
