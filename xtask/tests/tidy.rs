//! The shape of the repository, checked with every test run.

#[test]
fn crates_know_only_whom_they_may_know() {
    assert_eq!(
        xtask::wrong_edges(&xtask::root()).unwrap(),
        Vec::<String>::new()
    );
}

#[test]
fn files_are_small_and_say_what_they_are_for() {
    assert_eq!(
        xtask::untidy_files(&xtask::root()).unwrap().wrong,
        Vec::<String>::new()
    );
}
