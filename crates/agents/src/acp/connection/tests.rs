//! Connections to real processes: shell scripts that know our first requests by their numbers.

use std::path::Path;

use super::*;

const LIMIT: Duration = Duration::from_secs(30);

#[derive(Default)]
struct RecordedUpdates(Mutex<Vec<String>>);

impl SessionListener for RecordedUpdates {
    fn on_update(&self, update: &acp::SessionUpdate, _: bool) {
        let update = serde_json::to_value(update).unwrap();
        self.0.lock().push(update["sessionUpdate"].as_str().unwrap().to_owned());
    }
}

fn start_in(directory: &Path, script: &str, line_bytes_max: usize) -> AcpConnection {
    let launch = Launch {
        program: "/bin/sh".into(),
        args: vec!["-c".to_owned(), script.to_owned()],
        variables: vec![("PATH".into(), "/usr/bin:/bin".into())],
        directory: directory.to_owned(),
    };
    let tail = StderrTail::new(vec!["secret-value".to_owned()]);
    AcpConnection::start(&launch, tail, line_bytes_max).unwrap()
}

fn start(script: &str) -> AcpConnection {
    start_in(Path::new("/"), script, 1 << 20)
}

async fn hello(connection: &AcpConnection) -> Result<Abilities, RequestError> {
    initialize(connection, ClientOffer { files: false }, LIMIT).await
}

const READ: &str = "read -r line; ";

fn say(line: &Value) -> String {
    format!("printf '%s\\n' '{line}'; ")
}

fn result(id: u64, result: Value) -> String {
    say(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn update(session: &str, update: Value) -> String {
    say(
        &json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": update}}),
    )
}

fn text(text: &str) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})
}

#[tokio::test]
async fn version_1_is_offered_and_no_other_is_taken() {
    let directory = tempfile::tempdir().unwrap();
    let answer = result(1, json!({"protocolVersion": 2, "info": {}}));
    let script = format!("read -r line; printf '%s' \"$line\" > hello; {answer} cat >/dev/null");
    let connection = start_in(directory.path(), &script, 1 << 20);
    let error = hello(&connection).await.unwrap_err().to_string();
    assert!(error.contains("version 2") && error.contains("version 1"), "{error}");
    let sent: Value =
        serde_json::from_slice(&std::fs::read(directory.path().join("hello")).unwrap()).unwrap();
    assert_eq!(sent["params"]["protocolVersion"], 1);
    let can = &sent["params"]["clientCapabilities"];
    assert_eq!(can["terminal"], true);
    assert_eq!(can["fs"], json!({"readTextFile": false, "writeTextFile": false}));
    assert_eq!(can["auth"]["terminal"], true);
    assert_eq!(sent["params"]["clientInfo"]["name"], "greenroom");
}

#[tokio::test]
async fn what_an_agent_can_do_is_read() {
    let can = json!({"protocolVersion": 1, "agentInfo": {"name": "n", "title": "T\u{7}", "version": "2"},
        "agentCapabilities": {"loadSession": true, "promptCapabilities": {"image": true}, "sessionCapabilities": {"close": {}, "resume": {}}},
        "authMethods": [{"id": "a", "name": "A", "_meta": {"terminal-auth": {"command": "c", "args": ["x"]}}}],
        "_meta": {"steering": {"supported": true}}});
    let connection = start(&format!("{READ}{} cat >/dev/null", result(1, can)));
    let abilities = hello(&connection).await.unwrap();
    assert_eq!(abilities.title.as_deref(), Some("T"));
    assert!(
        abilities.load
            && abilities.resume
            && abilities.close
            && abilities.steering
            && abilities.images
    );
    assert!(!abilities.fork && !abilities.audio);
    assert_eq!(abilities.sign_in[0].command.as_deref(), Some("c"));
    assert!(abilities.sign_in[0].is_terminal);
}

#[tokio::test]
async fn a_prompt_is_followed_to_its_answer_and_nothing_comes_after_it() {
    let script = [
        READ,
        &update(
            "s",
            json!({"sessionUpdate": "available_commands_update", "availableCommands": []}),
        ),
        &result(1, json!({"sessionId": "s"})),
        &update("s", text("not prompted")),
        READ,
        &update("s", text("one")),
        &say(
            &json!({"jsonrpc": "2.0", "id": 0, "method": "craft/drainMidTurnQueue", "params": {}}),
        ),
        "read -r answer; case \"$answer\" in *-32601*) ",
        &update("s", text(" refused")),
        ";; esac; ",
        &result(2, json!({"stopReason": "end_turn"})),
        &update("s", text("late")),
        "cat >/dev/null",
    ]
    .concat()
    .replace("; ;", ";");
    let connection = start(&script);
    let recorded = Arc::new(RecordedUpdates::default());
    let listener = Arc::clone(&recorded) as Arc<dyn SessionListener>;
    let opened = connection.new_session("session/new", &json!({}), listener, LIMIT).await;
    let (inbox, answer) = opened.unwrap();
    assert_eq!(answer["sessionId"], "s");
    assert_eq!(*recorded.0.lock(), ["available_commands_update"]);
    connection.prompt(&inbox, &json!([])).await.unwrap();
    let mut said = String::new();
    loop {
        match inbox.next().await {
            InboxItem::Update(update) => {
                let update = serde_json::to_value(&update).unwrap();
                said.push_str(update["content"]["text"].as_str().unwrap());
            }
            InboxItem::PromptEnded(Ok(answer)) => {
                assert!(answer.get().contains("end_turn"));
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    // What came before the prompt may have been dropped or not be sent yet; what was said in it is all there.
    assert!(said.ends_with("one refused"), "{said}");
}

fn notice(title: &str) -> Value {
    json!({"sessionUpdate": "notice", "severity": "warning", "title": title})
}

#[tokio::test]
async fn what_went_wrong_is_heard_between_turns_but_not_from_a_replay() {
    let startup = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "mcp__x__startup", "status": "failed"});
    let script = [
        READ,
        &update("s", notice("before its name is known")),
        &result(1, json!({"sessionId": "s"})),
        &update("s", startup),
        &update("s", text("not prompted")),
        &update("s", notice("between turns")),
        READ,
        &update("old", notice("said before")),
        &result(2, json!({})),
        "cat >/dev/null",
    ]
    .concat();
    let connection = start(&script);
    let recorded = Arc::new(RecordedUpdates::default());
    let listener = Arc::clone(&recorded) as Arc<dyn SessionListener>;
    let none = json!({});
    connection.new_session("session/new", &none, listener, LIMIT).await.unwrap();
    let old = Arc::new(RecordedUpdates::default());
    let inbox = connection.listen("old", Arc::clone(&old) as Arc<dyn SessionListener>);
    let loaded = connection.request::<Value>("session/load", &none, LIMIT);
    loaded.await.unwrap();
    assert_eq!(*recorded.0.lock(), ["notice", "tool_call", "notice"]);
    assert_eq!(*old.0.lock(), Vec::<String>::new());
    inbox.wait_for_quiet(Duration::ZERO, Duration::ZERO).await;
    assert!(inbox.is_settled(), "what comes from now on is new");
}

#[tokio::test]
async fn garbage_ends_the_connection_and_single_lines_of_it_do_not() {
    let fine = format!(
        "echo starting; echo '{{\"level\":1}}'; {READ}echo still; {} cat >/dev/null",
        result(1, json!({"protocolVersion": 1}))
    );
    let connection = start(&fine);
    hello(&connection).await.unwrap();
    assert!(connection.tail().text().contains("starting"));

    let connection = start("echo a; echo b; echo 'c secret-value'; cat >/dev/null");
    let error = hello(&connection).await.unwrap_err();
    let RequestError::Ended(end) = error else { panic!("{error}") };
    assert!(matches!(&end.kind, EndKind::Protocol(how) if how.contains("no JSON")));
    assert_eq!(end.last_line.as_deref(), Some("c ***"));
    assert!(connection.is_over());

    let connection = start_in(Path::new("/"), "yes | tr -d '\\n'", 100_000);
    let error = hello(&connection).await.unwrap_err();
    assert!(error.to_string().contains("more than 100000 bytes"), "{error}");
}

#[tokio::test]
async fn an_exit_is_told_to_all_who_wait() {
    let script = format!(
        "{READ}{}{READ}{}echo broken >&2; exit 3",
        result(1, json!({"sessionId": "s"})),
        update("s", text("last words"))
    );
    let connection = start(&script);
    let opened = connection
        .new_session("session/new", &json!({}), Arc::new(RecordedUpdates::default()), LIMIT)
        .await;
    let (inbox, _) = opened.unwrap();
    connection.prompt(&inbox, &json!([])).await.unwrap();
    assert!(matches!(inbox.next().await, InboxItem::Update(_)), "said before the end");
    let InboxItem::Ended(end) = inbox.next().await else { panic!("no end") };
    assert_eq!(end.to_string(), "ended: exit code 3. It last printed: broken");
    assert!(matches!(inbox.next().await, InboxItem::Ended(_)));
    let error = connection.request::<Value>("x", &json!({}), LIMIT).await.unwrap_err();
    assert!(matches!(error, RequestError::Ended(_)));
}

#[tokio::test]
async fn a_cancel_reaches_the_agent_and_its_questions_are_answered_once() {
    let directory = tempfile::tempdir().unwrap();
    let ask = say(
        &json!({"jsonrpc": "2.0", "id": "q", "method": "session/request_permission", "params": {
        "sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": []}}),
    );
    let early = ask.replace("\"q\"", "0");
    let script = format!(
        "{READ}{early}read -r answer; echo \"$answer\" > early; {}{READ}{ask}read -r a; read -r b; echo \"$a\" > a; echo \"$b\" > b; {} read -r end; cat >/dev/null",
        result(1, json!({"sessionId": "s"})),
        result(2, json!({"stopReason": "cancelled"})),
    );
    let connection = start_in(directory.path(), &script, 1 << 20);
    let opened = connection
        .new_session("session/new", &json!({}), Arc::new(RecordedUpdates::default()), LIMIT)
        .await;
    let (inbox, _) = opened.unwrap();
    connection.prompt(&inbox, &json!([])).await.unwrap();
    let InboxItem::Asked(question) = inbox.next().await else { panic!("no question") };
    connection.end_turn(&inbox);
    connection.answer(&question.id, &Ok(json!("too late")));
    inbox.wait_until_free().await;
    let read = |name: &str| -> Value {
        serde_json::from_str(&std::fs::read_to_string(directory.path().join(name)).unwrap())
            .unwrap()
    };
    assert_eq!(
        read("early"),
        json!({"jsonrpc": "2.0", "id": 0, "result": {"outcome": {"outcome": "cancelled"}}}),
        "nobody was prompting"
    );
    assert_eq!(read("a")["method"], "session/cancel");
    assert_eq!(
        read("b"),
        json!({"jsonrpc": "2.0", "id": "q", "result": {"outcome": {"outcome": "cancelled"}}})
    );
    connection.stop(EndKind::Stopped);
    assert_eq!(connection.ended().await.kind, EndKind::Stopped);
}

#[tokio::test]
async fn a_question_that_is_withdrawn_is_answered_and_said() {
    let directory = tempfile::tempdir().unwrap();
    let script = format!(
        "{READ}{}{READ}{}{}read -r answer; echo \"$answer\" > answer; {}cat >/dev/null",
        result(1, json!({"sessionId": "s"})),
        say(&json!({"jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": {
            "sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": []}})),
        say(&json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 7}})),
        result(2, json!({"stopReason": "end_turn"})),
    );
    let connection = start_in(directory.path(), &script, 1 << 20);
    let opened = connection
        .new_session("session/new", &json!({}), Arc::new(RecordedUpdates::default()), LIMIT)
        .await;
    let (inbox, _) = opened.unwrap();
    connection.prompt(&inbox, &json!([])).await.unwrap();
    let InboxItem::Asked(question) = inbox.next().await else { panic!("no question") };
    let InboxItem::Withdrawn(id) = inbox.next().await else { panic!("not withdrawn") };
    assert_eq!(id, question.id);
    connection.answer(&id, &Ok(json!("nobody hears this")));
    assert!(matches!(inbox.next().await, InboxItem::PromptEnded(_)));
    let answer = std::fs::read_to_string(directory.path().join("answer")).unwrap();
    assert!(answer.contains("-32800"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_never_answers_is_not_waited_for() {
    let connection = start("cat >/dev/null");
    let error = hello(&connection).await.unwrap_err();
    assert_eq!(error.to_string(), "no answer to `initialize` within 30 seconds");
    drop(connection);
}

/// Waits until a file has this many lines.
async fn lines_of(path: &Path, count: usize) -> Vec<String> {
    let mut looks = tokio::time::interval(Duration::from_millis(10));
    loop {
        looks.tick().await;
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if text.lines().count() >= count {
            return text.lines().map(str::to_owned).collect();
        }
    }
}

#[tokio::test]
async fn an_agent_that_asks_without_end_is_refused_and_all_that_is_open_is_answered() {
    let directory = tempfile::tempdir().unwrap();
    let ask = r#"{"jsonrpc":"2.0","id":%d,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c%d"},"options":[]}}"#;
    let asked = QUESTIONS_MAX + 44;
    let script = format!(
        "{READ}{}{READ}i=0; while [ $i -lt {asked} ]; do printf '{ask}\\n' $i $i; i=$((i+1)); done; \
         n=0; while [ $n -lt 44 ]; do read -r line; echo \"$line\" >> refused; n=$((n+1)); done; cat > rest",
        result(1, json!({"sessionId": "s"})),
    );
    let connection = start_in(directory.path(), &script, 1 << 20);
    let opened = connection
        .new_session("session/new", &json!({}), Arc::new(RecordedUpdates::default()), LIMIT)
        .await;
    let (inbox, _) = opened.unwrap();
    connection.prompt(&inbox, &json!([])).await.unwrap();
    let refused = lines_of(&directory.path().join("refused"), 44).await;
    assert!(refused.iter().all(|line| line.contains("\"cancelled\"")), "{refused:?}");
    for _ in 0..QUESTIONS_MAX {
        let item = inbox.next().await;
        assert!(matches!(item, InboxItem::Asked(_)), "it is asked");
    }
    assert!(matches!(inbox.next().await, InboxItem::QuestionsRefused));
    connection.end_turn(&inbox);
    let rest = lines_of(&directory.path().join("rest"), QUESTIONS_MAX + 1).await;
    assert!(rest[0].contains("session/cancel"), "{}", rest[0]);
    let answered = rest.iter().filter(|line| line.contains("\"cancelled\""));
    assert_eq!(answered.count(), QUESTIONS_MAX);
    connection.stop(EndKind::Stopped);
}
