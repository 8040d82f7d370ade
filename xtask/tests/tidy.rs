//! The shape of the repository, checked with every test run.

#[test]
fn the_repository_is_tidy() {
    let findings = xtask::run_checks(&xtask::root()).unwrap();
    assert_eq!(findings.wrong, Vec::<String>::new());
}
