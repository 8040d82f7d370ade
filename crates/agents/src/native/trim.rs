//! Which turns of a long chat are sent to a model where they are not summarised.
//!
//! Promises: what is told fits, but for the newest turn, which is told whatever its size; the oldest turns are left out several at a
//! time, so that each request begins with the bytes of the one before it until the next time: only then do servers find it in their
//! caches.
//! Must not know: what a turn is made of.

use std::collections::VecDeque;

/// The first turn that is sent, of turns with these sizes, the oldest first.
///
/// It is found by going through the chat from its beginning: whenever a turn does not fit any more, the oldest are left out until
/// the rest takes at most half of the space. What was decided then is decided again in the same way in every later turn.
pub(super) fn first_kept(sizes: impl Iterator<Item = usize>, space: usize) -> usize {
    let mut kept: VecDeque<usize> = VecDeque::new();
    let (mut first, mut used) = (0, 0_usize);
    for size in sizes {
        kept.push_back(size);
        used = used.saturating_add(size);
        if used <= space {
            continue;
        }
        while used > space / 2
            && kept.len() > 1
            && let Some(oldest) = kept.pop_front()
        {
            used = used.saturating_sub(oldest);
            first += 1;
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kept(sizes: &[usize], space: usize) -> usize {
        first_kept(sizes.iter().copied(), space)
    }

    #[test]
    fn turns_are_left_out_several_at_a_time() {
        let sizes = [10; 40];
        let firsts: Vec<usize> = (1..=40).map(|turns| kept(&sizes[..turns], 100)).collect();
        let mut steps = firsts.clone();
        steps.dedup();
        assert_eq!(steps, [0, 6, 12, 18, 24, 30]);
        assert_eq!(firsts[9], 0, "all ten fit");
        assert_eq!(firsts[10], 6, "of eleven, the last five are told");
        assert_eq!(firsts[15], 6, "and so they are with five more");
    }

    #[test]
    fn the_newest_turn_is_told_whatever_its_size() {
        assert_eq!(kept(&[], 100), 0);
        assert_eq!(kept(&[1_000], 100), 0);
        assert_eq!(kept(&[1, 1, 1_000], 100), 2);
        assert_eq!(kept(&[1, 1], 0), 1);
        assert_eq!(kept(&[usize::MAX, usize::MAX], 100), 1);
    }

    proptest! {
        #[test]
        fn what_is_told_fits_and_begins_where_it_did_or_later(
            sizes in prop::collection::vec(0_usize..60, 1..60),
            space in 1_usize..200,
        ) {
            let mut before = 0;
            for turns in 1..=sizes.len() {
                let told = &sizes[..turns];
                let first = kept(told, space);
                prop_assert!(first >= before && first < turns);
                let used: usize = told[first..].iter().sum();
                prop_assert!(used <= space || first + 1 == turns);
                // It moves only when there is need, and then far enough to stay for a while.
                if first != before {
                    prop_assert!(told[before..].iter().sum::<usize>() > space);
                    prop_assert!(used <= space / 2 || first + 1 == turns);
                }
                before = first;
            }
        }
    }
}
