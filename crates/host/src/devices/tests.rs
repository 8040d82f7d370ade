//! Pairing, signing out, and what is on the disk after each.

use std::net::Ipv4Addr;

use super::*;

fn grant(name: Option<&str>) -> CodeGrant {
    CodeGrant { name: name.map(str::to_owned), scopes: vec![DeviceScope::Use] }
}

fn pair(devices: &Devices, name: &str) -> (DeviceToken, Device) {
    let code = devices.issue_code(CodePurpose::Pair, grant(Some(name)));
    devices.pair(&code.unwrap(), None, PairingCaller::default()).unwrap()
}

fn names(devices: &Devices) -> Vec<String> {
    devices.list().into_iter().map(|it| it.name).collect()
}

#[tokio::test(start_paused = true)]
async fn a_code_works_once_and_not_after_its_time() {
    let devices = Devices::in_memory();
    let code = devices.issue_code(CodePurpose::Pair, grant(None)).unwrap();
    assert_eq!(code.len(), 22, "128 bits in base64");
    let (token, device) =
        devices.pair(&code, Some(" my phone "), PairingCaller::default()).unwrap();
    assert_eq!(token.reveal().len(), 43, "256 bits in base64");
    assert_eq!(device.name, "my phone");
    let again = devices.pair(&code, None, PairingCaller::default());
    assert!(matches!(again, Err(PairError::WrongCode)));

    for (purpose, seconds) in [(CodePurpose::Open, 60), (CodePurpose::Pair, 300)] {
        let late = devices.issue_code(purpose, grant(None)).unwrap();
        tokio::time::advance(Duration::from_secs(seconds)).await;
        let paired = devices.pair(&late, None, PairingCaller::default());
        assert!(matches!(paired, Err(PairError::WrongCode)), "{purpose:?}");
        let in_time = devices.issue_code(purpose, grant(None)).unwrap();
        tokio::time::advance(Duration::from_secs(seconds - 1)).await;
        devices.pair(&in_time, None, PairingCaller::default()).unwrap();
    }
}

#[test]
fn a_code_of_open_is_for_the_user_who_asked_for_it() {
    let devices = Devices::in_memory();
    let stranger = PairingCaller { is_other_user: true, ..PairingCaller::default() };
    let code = devices.issue_code(CodePurpose::Open, grant(None)).unwrap();
    let stolen = devices.pair(&code, None, stranger);
    assert!(matches!(stolen, Err(PairError::OtherUser)));
    devices.pair(&code, None, PairingCaller::default()).unwrap();
    // A phone is nobody's user here, and neither is whoever was shown a code of `pair`.
    let code = devices.issue_code(CodePurpose::Pair, grant(None)).unwrap();
    devices.pair(&code, None, stranger).unwrap();
}

#[tokio::test(start_paused = true)]
async fn ten_tries_a_minute_and_the_right_code_is_not_used_up_by_the_eleventh() {
    let devices = Devices::in_memory();
    let code = devices.issue_code(CodePurpose::Pair, grant(None)).unwrap();
    for _ in 0..10 {
        let tried = devices.pair("wrong", None, PairingCaller::default());
        assert!(matches!(tried, Err(PairError::WrongCode)));
    }
    let Err(PairError::TooManyTries(wait)) = devices.pair(&code, None, PairingCaller::default())
    else {
        panic!("the eleventh try counts");
    };
    assert_eq!(wait, Duration::from_secs(60));
    tokio::time::advance(wait).await;
    devices.pair(&code, None, PairingCaller::default()).unwrap();
}

#[test]
fn a_bad_name_or_a_full_list_leaves_the_code_usable() {
    let devices = Devices::in_memory();
    let code = devices.issue_code(CodePurpose::Pair, grant(None)).unwrap();
    for bad in ["", "  ", "a\u{1b}[31m", "a\u{202e}b", "a\nb", &"x".repeat(65)] {
        let paired = devices.pair(&code, Some(bad), PairingCaller::default());
        assert!(matches!(paired, Err(PairError::BadName(_))), "{bad:?}");
    }
    assert!(devices.issue_code(CodePurpose::Pair, grant(Some("a\0"))).is_err());
    let longest = "ä".repeat(64);
    let (_, device) = devices.pair(&code, Some(&longest), PairingCaller::default()).unwrap();
    assert_eq!(device.name, longest);
    let (_, second) = pair(&devices, &longest);
    assert_eq!(second.name, format!("{} 2", "ä".repeat(62)));
}

#[tokio::test(start_paused = true)]
async fn there_is_a_most_of_devices_and_of_codes() {
    let devices = Devices::in_memory();
    let first = devices.issue_code(CodePurpose::Pair, grant(None)).unwrap();
    for _ in 0..16 {
        devices.issue_code(CodePurpose::Pair, grant(None)).unwrap();
    }
    let paired = devices.pair(&first, None, PairingCaller::default());
    assert!(matches!(paired, Err(PairError::WrongCode)), "the oldest code went");
    while devices.list().len() < DEVICES_MAX {
        tokio::time::advance(Duration::from_secs(6)).await;
        pair(&devices, "phone");
    }
    let all = names(&devices);
    assert_eq!((all[0].as_str(), all[1].as_str()), ("phone", "phone 2"));
    let unique: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(unique.len(), DEVICES_MAX);
    let more = devices.issue_code(CodePurpose::Pair, grant(None));
    assert!(matches!(more, Err(PairError::TooManyDevices)));
    tokio::time::advance(Duration::from_secs(6)).await;
    let other = devices.pair("of another space", None, PairingCaller::default());
    assert!(
        matches!(other, Err(PairError::WrongCode)),
        "a full list says nothing of codes that are not its own"
    );
}

#[test]
fn what_was_paired_and_revoked_is_on_the_disk_at_once() {
    let data = tempfile::tempdir().unwrap();
    let devices = Devices::open(data.path()).unwrap();
    let (token, phone) = pair(&devices, "phone");
    let (_, tablet) = pair(&devices, "tablet");
    let address = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7));

    // Opened beside the first, as after a kill: nothing of the first was closed or flushed.
    let after = Devices::open(data.path()).unwrap();
    let mut all = names(&after);
    all.sort(); // paired in the same moment, they have no order
    assert_eq!(all, ["phone", "tablet"]);
    let access = after.access(token.reveal().as_bytes(), Some(address)).unwrap();
    assert_eq!((&access.id, access.may(DeviceScope::Inspect)), (&phone.id, false));
    after.save_uses().unwrap();
    let used = Devices::open(data.path()).unwrap().find(&phone.id).unwrap();
    assert_eq!(used.address.as_deref(), Some("10.0.0.7"));

    let text = std::fs::read_to_string(data.path().join("devices.json")).unwrap();
    assert!(!text.contains(token.reveal()), "only its digest");
    assert!(matches!(after.revoke(&phone.id), Revocation::Done));
    assert!(access.revoked.is_cancelled());
    assert!(after.access(token.reveal().as_bytes(), None).is_none());
    assert!(matches!(after.revoke(&phone.id), Revocation::Unknown));
    let after = Devices::open(data.path()).unwrap();
    assert_eq!(after.list().len(), 1);
    assert_eq!(after.list()[0].id, tablet.id);
}

#[test]
fn a_sign_out_that_the_disk_refused_is_written_later() {
    let data = tempfile::tempdir().unwrap();
    let devices = Devices::open(data.path()).unwrap();
    let (_, phone) = pair(&devices, "phone");
    // A directory in the place of the file cannot be replaced by one.
    let file = data.path().join("devices.json");
    let before = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    std::fs::write(file.join("x"), "x").unwrap();
    assert!(matches!(devices.revoke(&phone.id), Revocation::Unsaved(_)));
    devices.save_uses().unwrap_err();
    std::fs::remove_dir_all(&file).unwrap();
    std::fs::write(&file, before).unwrap();
    devices.save_uses().unwrap();
    assert!(Devices::open(data.path()).unwrap().list().is_empty());
}

#[test]
fn a_file_that_is_no_list_of_devices_is_an_error_and_stays() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("devices.json");
    for (text, why) in [("{", "line 1"), (r#"{"version": 2, "devices": []}"#, "newer")] {
        std::fs::write(&file, text).unwrap();
        let error = Devices::open(data.path()).err().unwrap().to_string();
        assert!(error.contains(why) && error.contains("devices.json"), "{error}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }
}

#[test]
fn a_device_that_cannot_be_stored_is_not_paired_and_one_that_is_revoked_is_out_anyway() {
    let data = tempfile::tempdir().unwrap();
    let directory = data.path().join("data");
    std::fs::create_dir(&directory).unwrap();
    let devices = Devices::open(&directory).unwrap();
    let (token, phone) = pair(&devices, "phone");
    std::fs::remove_dir_all(&directory).unwrap();
    let code = devices.issue_code(CodePurpose::Pair, grant(None)).unwrap();
    let paired = devices.pair(&code, None, PairingCaller::default());
    assert!(matches!(paired, Err(PairError::Unstored(_))));
    assert_eq!(devices.list().len(), 1);
    assert!(matches!(devices.revoke(&phone.id), Revocation::Unsaved(_)));
    assert!(devices.access(token.reveal().as_bytes(), None).is_none());
}

#[test]
fn connections_are_counted_while_they_live() {
    let devices = Arc::new(Devices::in_memory());
    let (_, phone) = pair(&devices, "phone");
    let count = || devices.find(&phone.id).unwrap().connections;
    let (first, second) = (devices.connect(&phone.id), devices.connect(&phone.id));
    assert_eq!(count(), 2);
    drop(first);
    assert_eq!(count(), 1);
    devices.revoke(&phone.id);
    drop(second);
    assert!(devices.find(&phone.id).is_none());
}

#[test]
fn secrets_are_not_shown() {
    let (token, _) = pair(&Devices::in_memory(), "phone");
    assert!(!format!("{token:?}").contains(token.reveal()));
}
