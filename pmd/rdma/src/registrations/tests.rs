use super::*;

#[cfg(not(loom))]
mod properties {
    use std::collections::HashSet;

    use pollux_mempool::region::MemoryRegion;
    use proptest::prelude::*;

    use super::*;
    use crate::buffer::Buffer;
    use crate::memory::Memory;

    const SLOTS: usize = 8;
    const PAGES: usize = 4;

    #[derive(Clone, Debug)]
    enum Step {
        /// Registers a range, under a key of the program's choice or a random one.
        Register(usize, usize, u8, Option<(u64, u32)>),
        Unregister(usize),
        /// Looks up with the key of the n-th range or another; offset, length, rights.
        Look(usize, u32, i64, u64, u8),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let bytes = 0..=PAGES * 4096;
        let near = prop_oneof![Just(0_u64), any::<u64>(), Just(u64::MAX - 10)];
        // Few keys, so that they collide, also in the slot.
        let choice = proptest::option::of((near, 0..20_u32));
        let step = prop_oneof![
            3 => (bytes.clone(), bytes, 0..4_u8, choice)
                .prop_map(|(start, len, rights, choice)| Step::Register(start, len, rights, choice)),
            2 => (0..SLOTS).prop_map(Step::Unregister),
            6 => (0..SLOTS, prop_oneof![Just(0), any::<u32>()], -2..20_000_i64, 0..20_000_u64, 0..4_u8)
                .prop_map(|(n, key, at, len, rights)| Step::Look(n, key, at, len, rights)),
        ];
        proptest::collection::vec(step, 1..60)
    }

    fn access(rights: u8) -> Access {
        Access {
            remote_write: rights & 1 != 0,
            remote_read: rights & 2 != 0,
        }
    }

    proptest! {
        /// A range is found by its key alone, within its bounds and by its rights; a list says which.
        #[test]
        fn a_table_is_a_list(steps in steps()) {
            let region = MemoryRegion::builder(PAGES * 4096).build().unwrap();
            let memory = Memory::new(region);
            let table = Registrations::new(SLOTS, 1);
            let mut reader = table.reader().unwrap();
            prop_assert!(table.reader().is_none());
            let mut list: Vec<Buffer> = Vec::new();
            for step in steps {
                match step {
                    Step::Register(start, len, rights, choice) => {
                        let remote = choice.map(|(address, key)| RemoteBuffer { address, key: Key(key) });
                        let range = start..start.saturating_add(len);
                        let is_inside = range.end <= memory.len();
                        let is_used = |key| list.iter().any(|buffer| buffer.key() == key);
                        let is_used = remote.is_some_and(|remote| is_used(remote.key));
                        match table.register(&memory, range, access(rights), remote) {
                            Ok(buffer) => {
                                prop_assert!(is_inside && !is_used && list.len() < SLOTS);
                                prop_assert!(remote.is_none_or(|remote| remote == buffer.remote()));
                                list.push(buffer);
                            }
                            Err(TableError::Bounds(_)) => prop_assert!(!is_inside),
                            Err(TableError::KeyInUse(_)) => prop_assert!(is_used),
                            Err(TableError::Full) => prop_assert_eq!(list.len(), SLOTS),
                            Err(other) => prop_assert!(false, "{}", other),
                        }
                    }
                    Step::Unregister(n) if n < list.len() => drop(list.remove(n)),
                    Step::Look(n, key, at, len, rights) if n < list.len() => {
                        let of = list[n].remote();
                        let at = RemoteBuffer {
                            address: of.address.wrapping_add_signed(at),
                            key: Key(of.key.0 ^ key),
                        };
                        let found = list.iter().find(|buffer| buffer.key() == at.key);
                        let offset = found.map_or(0, |found| at.address.wrapping_sub(found.remote().address));
                        let expected = match found {
                            None => Err(AccessError::Key),
                            Some(found) if !found.access().permits(access(rights)) => Err(AccessError::Rights),
                            Some(found) if offset > found.len() as u64 || len > found.len() as u64 - offset => {
                                Err(AccessError::Bounds)
                            }
                            Some(_) => Ok(len as usize),
                        };
                        let session = reader.enter();
                        let range = session.remote(at, len, access(rights));
                        prop_assert_eq!(range.map(|range| range.len()), expected);
                    }
                    Step::Unregister(_) | Step::Look(..) => {}
                }
            }
            let keys: HashSet<_> = list.iter().map(Buffer::key).collect();
            prop_assert_eq!(keys.len(), list.len());
        }
    }

    #[test]
    fn a_reader_can_be_had_again() {
        let table = Registrations::new(1, 2);
        let first = table.reader().unwrap();
        let second = table.reader().unwrap();
        assert!(table.reader().is_none());
        drop(first);
        assert!(table.reader().is_some());
        drop(second);
    }
}

/// A range is taken away while a loop looks it up and accesses it. The memory is a cell that loom watches:
/// the owner writes it when the range is away.
#[cfg(loom)]
#[test]
fn model_of_a_range_that_is_taken_away() {
    use crate::sync::UnsafeCell;

    const KEY: Key = Key(7 << 8);

    struct Cell(UnsafeCell<u8>);
    // SAFETY: loom checks the accesses.
    unsafe impl Sync for Cell {}
    // SAFETY: as above.
    unsafe impl Send for Cell {}

    let sites = ["enter", "find", "begin", "end", "see-end", "fence"];
    crate::sync::holds_but_for(&sites, || {
        let table = Registrations::new(1, 1);
        let cell = Arc::new(Cell(UnsafeCell::new(0)));
        let mut reader = table.reader().unwrap();
        let seen = Arc::clone(&cell);
        let access = loom::thread::spawn(move || {
            for _ in 0..2 {
                let session = reader.enter();
                let remote = RemoteBuffer {
                    address: 0,
                    key: KEY,
                };
                if session.remote(remote, 8, Access::READ).is_ok() {
                    // SAFETY: loom checks that no write is at the same time.
                    assert_eq!(seen.0.with(|of| unsafe { *of }), 1);
                }
            }
        });
        // What is registered is there before its key.
        // SAFETY: loom checks that no other access is at the same time.
        cell.0.with_mut(|of| unsafe { *of = 1 });
        let remote = RemoteBuffer {
            address: 0,
            key: KEY,
        };
        let keep = Arc::new(());
        // SAFETY: the model accesses no byte of it.
        let entered =
            unsafe { table.insert(NonNull::dangling(), 8, Access::READ, Some(remote), keep) };
        let (slot, _) = entered.unwrap();
        table.unregister(slot);
        // SAFETY: as above.
        cell.0.with_mut(|of| unsafe { *of = 2 });
        access.join().unwrap();
    });
}
