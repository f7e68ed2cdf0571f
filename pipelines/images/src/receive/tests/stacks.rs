//! Stacks of images.

use pollux_pipelines::Moment;

use super::super::*;
use super::support::*;

#[test]
fn images_are_gathered_to_stacks_with_a_loss_map() {
    let geometry = geometries()[3];
    let (mut placer, mut reader) = images::<u16>(&geometry.config(DiscardPolicy::Nothing)).unwrap();
    let mut stacker = reader.stacker(3).unwrap();
    let mut stacks = Vec::new();
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
            stacks.extend(stacker.push(image).unwrap());
        }
    }
    stacks.extend(stacker.flush());
    assert!(stacker.flush().is_none());
    let numbers = stacks
        .iter()
        .map(|stack| stack.images().iter().map(Image::number).collect());
    assert_eq!(
        numbers.collect::<Vec<Vec<_>>>(),
        [vec![0, 1, 2], vec![3, 4, 5], vec![6, 7]]
    );
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
    assert_eq!(
        [0, 1, 2].map(|n| stacks[n].is_complete()),
        [false, false, true]
    );
}

/// Stacks that are not given back end the supply: the images are the caller's to count, and their
/// memory is free.
#[test]
fn stacks_that_are_kept_are_an_overrun() {
    let geometry = geometries()[3];
    let (mut placer, mut reader) = images::<u16>(&geometry.config(DiscardPolicy::Nothing)).unwrap();
    let mut stacker = reader.stacker(8).unwrap();
    let mut send = |number| {
        let key = geometry.keys(number)[0];
        let at = Moment(number * TIMEOUT);
        let placed = placer.place(geometry.stream(key), &geometry.payload(key), at);
        assert_eq!(placed, Ok(()));
        poll(&mut reader, (number + 1) * TIMEOUT)
    };
    let (mut kept, mut overrun, mut number) = (Vec::new(), 0, 0);
    // Empty images take no buffer, so stacks run out before buffers do.
    while overrun < 10 {
        number += 20;
        for image in send(number) {
            match stacker.push(image) {
                Ok(stack) => kept.extend(stack),
                Err(_) => overrun += 1,
            }
        }
    }
    assert_eq!(kept.len(), 3);
    drop(kept);
    for image in send(number + 1) {
        assert!(stacker.push(image).unwrap().is_none());
    }
    assert_eq!(stacker.flush().unwrap().images().len(), 1);
}
