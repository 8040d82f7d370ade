//! Questions an agent waits for: answered one by one, sent together.
//!
//! Promises: a required question is not skipped by accident; what was answered can be gone back to.
//! Must not know: connections, how questions are shown.

use serde_json::{Map, Value, json};

use super::answer::{AnswerError, Question, QuestionAnswer};

/// A request and what was answered so far.
#[derive(Debug, Clone, PartialEq)]
pub struct QuestionForm {
    request: Value,
    /// Answers by question, and which question comes next.
    answers: Map<String, Value>,
    next: usize,
}

/// What an answer led to.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// There is another question.
    Next,
    /// It was the last.
    Complete(InputResponse),
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub struct InputResponse {
    request_id: Value,
    response: &'static str,
    answers: Map<String, Value>,
}

impl QuestionForm {
    pub fn new(request: &Value) -> Self {
        Self { request: request.clone(), answers: Map::new(), next: 0 }
    }

    /// The same request, whatever was answered meanwhile?
    pub fn is_same(&self, other: &Self) -> bool {
        // All that is shown of it.
        let asked = ["id", "message", "url", "questions"];
        asked.iter().all(|field| self.request[field] == other.request[field])
    }

    pub(super) fn id(&self) -> &Value {
        &self.request["id"]
    }

    fn questions(&self) -> &[Value] {
        self.request["questions"].as_array().map_or(&[], Vec::as_slice)
    }

    /// How many questions there are; none if nothing is asked but whether to go on.
    pub fn count(&self) -> usize {
        self.questions().len()
    }

    /// Which question is to be answered now, from 0.
    pub fn position(&self) -> usize {
        self.next
    }

    /// The question that is to be answered now; none if nothing is asked but whether to go on.
    pub fn question(&self) -> Option<Question<'_>> {
        self.questions().get(self.next).map(Question)
    }

    /// A page to be opened, if the request is about one.
    pub fn url(&self) -> Option<&str> {
        self.request["url"].as_str()
    }

    /// Answers the question by what was typed. Where there are options these are words of one's own, also if an option is called
    /// like that: [`Self::answer_selected`] chooses one.
    pub fn answer_text(&mut self, text: &str) -> Result<Progress, AnswerError> {
        self.answer_with(|question| question.read_text(text))
    }

    /// Answers the question by options, by their index, and by words of one's own.
    pub fn answer_selected(
        &mut self,
        indexes: &[usize],
        words: Option<&str>,
    ) -> Result<Progress, AnswerError> {
        self.answer_with(|question| question.select(indexes, words))
    }

    pub fn answer_yes_no(&mut self, is_yes: bool) -> Result<Progress, AnswerError> {
        self.answer_with(|question| question.read_yes_no(is_yes))
    }

    fn answer_with(
        &mut self,
        read: impl FnOnce(Question<'_>) -> Result<QuestionAnswer, AnswerError>,
    ) -> Result<Progress, AnswerError> {
        match self.question() {
            Some(question) => {
                let answer = read(question)?;
                Ok(self.advance(answer))
            }
            None => Ok(Progress::Complete(self.accept())),
        }
    }

    /// Takes the default answer; skips the question if it has none.
    pub fn answer_by_default(&mut self) -> Result<Progress, AnswerError> {
        match self.default_answer() {
            Some(answer) => Ok(self.advance(answer)),
            None => self.skip(),
        }
    }

    pub fn skip(&mut self) -> Result<Progress, AnswerError> {
        match self.question() {
            Some(question) if question.is_required() => Err(AnswerError::Required),
            Some(_) => Ok(self.advance(QuestionAnswer::skipped())),
            None => Ok(Progress::Complete(self.accept())),
        }
    }

    /// Goes back to the question before.
    pub fn go_back(&mut self) {
        self.next = self.next.saturating_sub(1);
    }

    fn advance(&mut self, answer: QuestionAnswer) -> Progress {
        debug_assert!(self.next < self.count(), "there is a question to answer");
        if let Some(id) = self.question().map(|question| question.id().to_owned()) {
            self.answers.insert(id, answer.0);
        }
        self.next += 1;
        if self.next < self.count() { Progress::Next } else { Progress::Complete(self.accept()) }
    }

    /// What the question is answered with by default: what was answered before, here or elsewhere, or the agent's own.
    pub fn default_answer(&self) -> Option<QuestionAnswer> {
        let question = self.question()?;
        if let Some(answer) = self.answers.get(question.id()) {
            return Some(QuestionAnswer(answer.clone()));
        }
        let drafted = &self.request["answers"][question.id()];
        if drafted["value"].is_object() {
            return Some(QuestionAnswer::submitted(drafted["value"].clone()));
        }
        question.default_answer()
    }

    /// The options of the default answer, by their index.
    pub fn default_options(&self) -> impl Iterator<Item = usize> {
        let default = self.default_answer().map(|answer| answer.0);
        let ids = default.map(|mut answer| answer["value"]["value"].take());
        let options = self.question().map_or(&[][..], Question::raw_options);
        let is_default = move |option: &Value| match &ids {
            Some(Value::Array(ids)) => ids.contains(&option["id"]),
            Some(id) => option["id"] == *id,
            None => false,
        };
        let options = options.iter().enumerate();
        options.filter_map(move |(index, option)| is_default(option).then_some(index))
    }

    /// Sends what was answered.
    pub fn accept(&self) -> InputResponse {
        self.respond("accept", self.answers.clone())
    }

    /// Refuses to answer.
    pub fn decline(&self) -> InputResponse {
        self.respond("decline", Map::new())
    }

    /// Dismisses the request.
    pub fn cancel(&self) -> InputResponse {
        self.respond("cancel", Map::new())
    }

    fn respond(&self, response: &'static str, answers: Map<String, Value>) -> InputResponse {
        InputResponse { request_id: self.request["id"].clone(), response, answers }
    }
}

impl InputResponse {
    /// The action to dispatch.
    pub(super) fn action(&self) -> Value {
        let mut action = json!({
            "type": "chat/inputCompleted",
            "requestId": self.request_id,
            "response": self.response,
        });
        if !self.answers.is_empty() {
            action["answers"] = Value::Object(self.answers.clone());
        }
        action
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an answer to a single question is sent as.
    fn sent(
        mut question: Value,
        answer: impl FnOnce(&mut QuestionForm) -> Result<Progress, AnswerError>,
    ) -> Result<Value, String> {
        question["id"] = json!("q");
        let mut form = QuestionForm::new(&json!({"id": "r", "questions": [question]}));
        match answer(&mut form) {
            Ok(Progress::Complete(response)) => Ok(response.action()["answers"]["q"].clone()),
            Ok(Progress::Next) => panic!("there is one question"),
            Err(error) => Err(error.to_string()),
        }
    }

    fn typed(question: &Value, text: &str) -> Result<Value, String> {
        sent(question.clone(), |form| form.answer_text(text))
    }

    fn selected(question: &Value, indexes: &[usize], words: Option<&str>) -> Result<Value, String> {
        sent(question.clone(), |form| form.answer_selected(indexes, words))
    }

    fn default(question: &Value) -> Result<Value, String> {
        sent(question.clone(), QuestionForm::answer_by_default)
    }

    fn value(kind: &str, value: Value) -> Result<Value, String> {
        Ok(QuestionAnswer::submitted(json!({"kind": kind, "value": value})).0)
    }

    fn wrong(why: &str) -> Result<Value, String> {
        Err(why.to_owned())
    }

    #[test]
    fn every_kind_of_question_takes_its_answers() {
        let text = json!({"kind": "text", "min": 2, "required": true});
        assert_eq!(typed(&text, "Ann"), value("text", json!("Ann")));
        assert_eq!(typed(&text, "A"), wrong("at least 2 characters"));
        assert_eq!(default(&text), wrong("an answer is required"));

        let number = json!({"kind": "number", "max": 2.5});
        assert_eq!(typed(&number, "1.5"), value("number", json!(1.5)));
        assert_eq!(typed(&number, "3"), wrong("at most 2.5"));
        assert_eq!(typed(&number, "inf"), wrong("`inf` is not a number"));
        let integer = json!({"kind": "integer"});
        assert_eq!(typed(&integer, "7"), value("number", json!(7)));
        assert_eq!(typed(&integer, "7.5"), wrong("`7.5` is not a whole number"));

        let boolean = json!({"kind": "boolean", "defaultValue": false});
        let yes = sent(boolean.clone(), |form| form.answer_yes_no(true));
        assert_eq!(yes, value("boolean", json!(true)));
        assert_eq!(default(&boolean), value("boolean", json!(false)));
        assert_eq!(typed(&boolean, "yes"), wrong("this question is answered by yes or no"));

        let optional = json!({"kind": "something-new"});
        assert_eq!(default(&optional), Ok(json!({"state": "skipped"})));
        assert_eq!(typed(&optional, "x"), value("text", json!("x")));
        assert_eq!(selected(&optional, &[0], None), wrong("there is no choice 1"));
    }

    #[test]
    fn options_are_chosen_by_index_and_words_stay_words() {
        let options =
            json!([{"id": "r", "label": "Red"}, {"id": "b", "label": "Blue", "recommended": true}]);
        let single = json!({"kind": "single-select", "options": options});
        assert_eq!(selected(&single, &[0], None), value("selected", json!("r")));
        assert_eq!(default(&single), value("selected", json!("b")));
        assert_eq!(selected(&single, &[8], None), wrong("there is no choice 9"));
        assert_eq!(selected(&single, &[0, 1], None), wrong("only one of them can be chosen"));
        assert_eq!(typed(&single, "Red"), wrong("only the choices answer this question"));

        let multi = json!({"kind": "multi-select", "options": options, "min": 1, "allowFreeformInput": true});
        assert_eq!(selected(&multi, &[0, 1, 0], None), value("selected-many", json!(["r", "b"])));
        let mixed =
            json!({"kind": "selected-many", "value": ["b"], "freeformValues": ["1, Green"]});
        assert_eq!(
            selected(&multi, &[1], Some("1, Green")),
            Ok(QuestionAnswer::submitted(mixed).0)
        );
        assert_eq!(selected(&multi, &[], None), wrong("at least 1 of them"));

        // What an option is called, its id and its number are words like any other where words are typed.
        let open = json!({"kind": "single-select", "options": options, "allowFreeformInput": true});
        for words in ["2", "b", "Blue", "blue", "Green"] {
            let expected = json!({"kind": "selected", "value": "", "freeformValues": [words]});
            assert_eq!(typed(&open, words), Ok(QuestionAnswer::submitted(expected).0));
        }
    }

    #[test]
    fn several_questions_are_answered_together_and_can_be_gone_back_to() {
        let mut form = QuestionForm::new(&json!({"id": "r", "questions": [
            {"id": "a", "kind": "text", "message": "Name?"},
            {"id": "b", "kind": "boolean", "message": "Sure?"},
        ]}));
        assert_eq!(form.answer_text("Ann"), Ok(Progress::Next));
        form.go_back();
        assert_eq!(form.answer_by_default(), Ok(Progress::Next), "what was answered stays");
        let Ok(Progress::Complete(response)) = form.answer_yes_no(false) else {
            panic!("it was the last")
        };
        let expected = json!({"type": "chat/inputCompleted", "requestId": "r", "response": "accept", "answers": {
            "a": {"state": "submitted", "value": {"kind": "text", "value": "Ann"}},
            "b": {"state": "submitted", "value": {"kind": "boolean", "value": false}},
        }});
        assert_eq!(response.action(), expected);
        let declined =
            json!({"type": "chat/inputCompleted", "requestId": "r", "response": "decline"});
        assert_eq!(form.decline().action(), declined);
    }

    #[test]
    fn a_request_without_questions_is_accepted_or_not() {
        let form = QuestionForm::new(&json!({"id": "r", "message": "Sign in"}));
        assert_eq!(form.question(), None);
        let accepted =
            json!({"type": "chat/inputCompleted", "requestId": "r", "response": "accept"});
        assert_eq!(form.accept().action(), accepted);
    }
}
