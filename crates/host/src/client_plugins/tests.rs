//! What is read when, what is used, and what goes.

use super::*;

fn offer(client_id: &str, uri: &str, nonce: Option<&str>) -> PluginOffer {
    PluginOffer {
        client_id: client_id.to_owned(),
        uri: uri.to_owned(),
        name: "P".to_owned(),
        nonce: nonce.map(str::to_owned),
    }
}

fn session() -> ChannelUri {
    ChannelUri::parse("ahp-session:/s").unwrap()
}

fn copied(directory: &str, bytes: u64) -> Result<PluginCopy, UnreadPlugin> {
    Ok(PluginCopy { directory: PathBuf::from(directory), digest: "d".to_owned(), bytes })
}

#[test]
fn cu_007_a_plugin_is_read_once_until_its_client_says_that_it_is_another() {
    let plugins = ClientPlugins::default();
    let session = session();
    let one = || offer("ann", "x:/p", Some("1"));
    let change = plugins.offer(&session, vec![one()], Some("ann"));
    let [(number, _)] = change.unread.as_slice() else {
        panic!("it is read");
    };
    assert_eq!(plugins.unread_entries(&session)[0]["load"]["kind"], "loading");
    assert_eq!(plugins.of(&session), []);
    assert_eq!(plugins.finish(&session, *number, copied("/c/1", 1)), None);
    assert_eq!(plugins.of(&session)[0].directory, Path::new("/c/1"));
    assert_eq!(plugins.unread_entries(&session), [] as [Value; 0]);
    for said_by in [None, Some("ann"), Some("bob")] {
        let change = plugins.offer(&session, vec![one()], said_by);
        assert!(change.unread.is_empty() && change.unused.is_empty());
    }
    let change = plugins.offer(&session, vec![offer("ann", "x:/p", Some("2"))], None);
    assert_eq!(change.unread.len(), 1);
    assert_eq!(change.unused, [PathBuf::from("/c/1")]);
    // What was asked for before its client left is not used.
    assert!(plugins.forget(&session).is_empty());
    let late = plugins.finish(&session, change.unread[0].0, copied("/c/2", 1));
    assert_eq!(late, Some(PathBuf::from("/c/2")));
    assert_eq!(plugins.of(&session), []);
}

#[test]
fn cu_007_one_without_a_nonce_is_read_whenever_its_client_says_so() {
    let plugins = ClientPlugins::default();
    let session = session();
    let bare = || vec![offer("ann", "x:/p", None)];
    let first = plugins.offer(&session, bare(), Some("ann")).unread;
    plugins.finish(&session, first[0].0, copied("/c/1", 1));
    assert!(plugins.offer(&session, bare(), None).unread.is_empty());
    let again = plugins.offer(&session, bare(), Some("ann"));
    assert_eq!(again.unread.len(), 1);
    assert_eq!(again.unused, [PathBuf::from("/c/1")]);
}

#[test]
fn cu_007_a_client_that_is_away_is_asked_again_and_a_failure_says_why() {
    let plugins = ClientPlugins::default();
    let session = session();
    let one = || vec![offer("ann", "x:/p", Some("1"))];
    let first = plugins.offer(&session, one(), Some("ann")).unread;
    assert!(!plugins.note_away(&session, first[0].0));
    let second = plugins.offer(&session, one(), None).unread;
    assert_eq!(second.len(), 1, "the client may be there again");
    // It was back before the one who read it found that it had gone.
    assert!(plugins.offer(&session, one(), None).unread.is_empty());
    assert!(plugins.note_away(&session, second[0].0));
    let failed = UnreadPlugin::Failed("`a` could not be read".to_owned());
    plugins.finish(&session, second[0].0, Err(failed));
    let entry = &plugins.unread_entries(&session)[0];
    assert_eq!(entry["load"]["message"], "`a` could not be read");
    assert_eq!(entry["clientId"], "ann");
    assert!(plugins.offer(&session, one(), None).unread.is_empty());
    let said_again = plugins.offer(&session, one(), Some("ann")).unread;
    assert_eq!(said_again.len(), 1);
}

#[test]
fn cu_007_the_same_plugin_of_two_clients_is_there_once_and_stays_with_the_second() {
    let plugins = ClientPlugins::default();
    let session = session();
    let (ann, bob) = (offer("ann", "x:/p", None), offer("bob", "x:/p", None));
    let both = plugins.offer(&session, vec![ann, bob.clone()], None);
    assert_eq!(both.unread.len(), 1);
    assert_eq!(plugins.unread_entries(&session).len(), 1);
    let left = plugins.offer(&session, vec![bob], None);
    assert_eq!(left.unread[0].1.client_id, "bob");
}

#[test]
fn cu_007_the_copy_of_one_that_became_a_double_is_removed() {
    let plugins = ClientPlugins::default();
    let session = session();
    let (ann, bob) = (offer("ann", "x:/p", Some("1")), offer("bob", "x:/p", Some("1")));
    let read = plugins.offer(&session, vec![bob.clone()], None).unread;
    plugins.finish(&session, read[0].0, copied("/c/1", 1));
    let both = plugins.offer(&session, vec![ann, bob], None);
    assert_eq!(both.unread[0].1.client_id, "ann");
    assert_eq!(both.unused, [PathBuf::from("/c/1")]);
    assert_eq!(plugins.of(&session), []);
}

#[tokio::test]
async fn a_plugin_that_nobody_wants_any_more_is_not_read() {
    let plugins = ClientPlugins::default();
    let session = session();
    let one = vec![offer("ann", "x:/p", Some("1"))];
    let number = plugins.offer(&session, one, None).unread[0].0;
    assert!(plugins.begin_read(&session, number).await.is_some());
    plugins.forget(&session);
    assert!(plugins.begin_read(&session, number).await.is_none());
}

#[test]
fn cu_007_plugins_are_bounded_in_number_and_size() {
    let plugins = ClientPlugins::default();
    let session = session();
    let many = (0..PLUGINS_MAX + 1).map(|n| offer("ann", &format!("x:/{n}"), None));
    let change = plugins.offer(&session, many.collect(), None);
    assert_eq!(change.unread.len(), PLUGINS_MAX);
    let entries = plugins.unread_entries(&session);
    assert_eq!(entries[PLUGINS_MAX]["load"]["kind"], "error");
    let refused = plugins.finish(&session, change.unread[0].0, copied("/c/1", BYTES_MAX + 1));
    assert_eq!(refused, Some(PathBuf::from("/c/1")));
    assert_eq!(plugins.of(&session), []);
}

#[test]
fn what_an_earlier_look_saw_is_not_told_after_a_later_one() {
    let plugins = ClientPlugins::default();
    let session = session();
    let first = plugins.begin_look(&session);
    let second = plugins.begin_look(&session);
    assert!(!plugins.end_look(&session, first));
    assert!(plugins.end_look(&session, second));
}

#[test]
fn a_copy_is_read_only_and_stays_inside() {
    let root = tempfile::tempdir().unwrap();
    let file = |path: &str| PluginFile { path: PathBuf::from(path), body: b"x".to_vec() };
    let copy = copy_files(root.path().join("1"), vec![file("a/b"), file("c")]).unwrap();
    let facts = std::fs::metadata(copy.directory.join("a/b")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&facts.permissions());
    assert_eq!((mode & 0o777, copy.bytes), (0o500, 2));
    let other = copy_files(root.path().join("2"), vec![file("c"), file("a/b")]).unwrap();
    assert_eq!(copy.digest, other.digest, "the order does not count");
    assert!(copy_files(root.path().join("3"), vec![file("../x")]).is_err());
    assert!(!root.path().join("x").exists());
    remove_copies(std::slice::from_ref(&copy.directory));
    assert!(!copy.directory.exists());
}
