//! The events of stacks.

use pollux_pipelines::Moment;

use super::super::*;
use super::support::*;
use crate::stages::{Capacity, Desk, Stack, StackFacts};

#[test]
fn images_are_gathered_to_stacks_with_a_loss_map() {
    let geometry = geometries()[3];
    let (mut placer, mut reader) = images::<u16>(&geometry.config(DiscardPolicy::Nothing)).unwrap();
    let desk = Desk::new(8, &Capacity::default());
    let mut works = Vec::new();
    for number in (0..8).filter(|&number| number != 4) {
        for key in geometry.keys(number) {
            // Rows 20 to 27 of the second module.
            let is_lost = number == 1 && key.module == 1 && (5..7).contains(&key.packet);
            if !is_lost {
                let payload = geometry.payload(key);
                placer
                    .place(geometry.stream(key), &payload, Moment(0))
                    .unwrap();
            }
        }
        for image in poll(&mut reader, TIMEOUT) {
            works.push(desk.begin(image).unwrap());
        }
    }
    // Each image is an event of its own at first.
    let events = works
        .iter()
        .map(|work| (work.stack.number, work.stack.images));
    assert!(events.eq((0..8).map(|number| (number, 1))));
    let mut works = works.into_iter().peekable();
    let mut stacks = Vec::new();
    while works.peek().is_some() {
        let mut stack = Stack::with_capacity(3);
        // The list of an earlier stack is filled again.
        stack.fill(99, works.by_ref().take(0));
        stack.fill(stacks.len() as u64, works.by_ref().take(3));
        stacks.push(stack);
    }
    let numbers = |stack: &Stack<u16>| -> Vec<_> {
        let images = stack.images.iter();
        images.map(|work| work.image.number()).collect()
    };
    let numbers: Vec<_> = stacks.iter().map(numbers).collect();
    assert_eq!(numbers, [vec![0, 1, 2], vec![3, 4, 5], vec![6, 7]]);
    let losses: Vec<Vec<_>> = stacks
        .iter()
        .map(|stack| stack.losses().collect())
        .collect();
    let whole = |module| Loss {
        module,
        rows: 0..256,
    };
    let rows = Loss {
        module: 1,
        rows: 20..28,
    };
    assert_eq!(
        losses,
        [vec![(1, rows)], vec![(1, whole(0)), (1, whole(1))], vec![]]
    );
    let facts = |number, images, incomplete, missing| StackFacts {
        number,
        images,
        incomplete,
        missing,
    };
    let expected = [facts(0, 3, 1, 2), facts(1, 3, 1, 128), facts(2, 2, 0, 0)];
    for (stack, expected) in stacks.iter().zip(&expected) {
        assert_eq!(stack.facts(), expected);
        assert!(stack.images.iter().all(|work| work.stack == *expected));
    }
}
