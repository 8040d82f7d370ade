//! One story: what happens to some people and their host, step by step, until everything is quiet.

use crate::actions::CHATS;
use crate::dice::Dice;
use crate::host::Host;
use crate::person::Person;

/// One thing happens to one of the people.
fn step(host: &mut Host, people: &mut [Person], d: &mut Dice) {
    let number = d.below(people.len());
    let person = &mut people[number];
    match d.below(24) {
        0..=7 => person.acts(d),
        8..=12 => {
            if let Some(message) = person.to_host.pop_front() {
                host.take(number, message, d);
            }
        }
        13..=16 => person.listen(host, 1 + d.below(3)),
        17..=19 => host.act(d),
        20 => person.loses_connection(host, d),
        21 => person.comes_back(host, d),
        22 => person.looks_elsewhere(d),
        _ => {
            if d.one_in(6) {
                host.dispose(CHATS[1]);
            }
        }
    }
    if d.one_in(2) {
        people[number].check_ahead();
    }
}

/// Everybody comes back, and everything that is on its way arrives.
fn settle(host: &mut Host, people: &mut [Person]) {
    let d = &mut Dice::new(&[]);
    loop {
        let mut is_quiet = true;
        for (number, person) in people.iter_mut().enumerate() {
            person.comes_back(host, d);
            is_quiet &= person.to_host.is_empty() && host.peers[number].outbox.is_empty();
            person.listen(host, usize::MAX);
            while let Some(message) = person.to_host.pop_front() {
                host.take(number, message, d);
            }
        }
        if is_quiet {
            return;
        }
    }
}

/// Everything that happens to some people and their host, and what must be true at the end. Gives the people back.
pub fn tell(first: &[u8], steps: &[Vec<u8>]) -> Vec<Person> {
    let d = &mut Dice::new(first);
    let clients = 1 + d.below(3);
    let mut host = Host::new(clients);
    let mut people: Vec<Person> =
        (0..clients).map(|number| Person::new(number, &mut host, d)).collect();
    for bytes in steps {
        step(&mut host, &mut people, &mut Dice::new(bytes));
    }
    settle(&mut host, &mut people);
    for person in &people {
        person.check_ahead();
        person.check_quiet(&host);
    }
    people
}
