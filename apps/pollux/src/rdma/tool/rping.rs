//! The program `rping` of librdmacm: the client tells where a text is, which the server gets, and where
//! it wants it, which the server puts there.

use anyhow::{Result, bail};
use pollux_rdma::{Key, Operation, RemoteBuffer};

use super::requests::Work;

/// Bytes of what the client tells: address, key and length, in network order.
const ADVERTISEMENT: usize = 16;

/// The server's part.
pub(super) fn serve(work: &mut Work<'_>) -> Result<()> {
    for number in 0..work.count {
        work.remote = read(&work.await_message()?);
        work.request(Operation::Get)?;
        expect_text(work, work.area.own(), number)?;
        work.tell(&[0; ADVERTISEMENT])?;
        work.remote = read(&work.await_message()?);
        work.request(Operation::Put)?;
        work.tell(&[0; ADVERTISEMENT])?;
    }
    Ok(())
}

/// The client's part: the text returns as it was.
pub(super) fn ping(work: &mut Work<'_>) -> Result<()> {
    for number in 0..work.count {
        let (from, to) = (work.area.own(), 0);
        let text = text(number, work.area.bytes() as usize);
        work.area.buffer.write(from as usize, &text)?;
        for offset in [from, to] {
            let place = work.area.buffer.remote().at(offset);
            work.tell(&write(place, text.len() as u32))?;
            work.await_message()?;
        }
        expect_text(work, to, number)?;
    }
    Ok(())
}

/// Checks the text at an offset.
fn expect_text(work: &mut Work<'_>, at: u64, number: u64) -> Result<()> {
    let wanted = text(number, work.area.bytes() as usize);
    let mut found = vec![0; wanted.len()];
    work.area.buffer.read(at as usize, &mut found)?;
    let differs = found
        .iter()
        .zip(&wanted)
        .position(|(found, wanted)| found != wanted);
    if let Some(n) = differs {
        bail!(
            "text {number}: byte {n} is {:#04x} instead of {:#04x}: the data were damaged on the way, or the \
             peer has others",
            found[n],
            wanted[n]
        );
    }
    work.count_check();
    Ok(())
}

/// The text of a ping, as the program's own, with a zero byte behind it.
fn text(number: u64, bytes: usize) -> Vec<u8> {
    let mut text = format!("rdma-ping-{number}: ").into_bytes();
    let letters = (b'A'..=b'z').cycle().skip(number as usize % 58);
    text.extend(letters.take(bytes.saturating_sub(text.len())));
    text.truncate(bytes.saturating_sub(1));
    text.push(0);
    text
}

fn write(buffer: RemoteBuffer, bytes: u32) -> [u8; ADVERTISEMENT] {
    let number = u128::from(buffer.address) << 64 | u128::from(buffer.key.0) << 32;
    (number | u128::from(bytes)).to_be_bytes()
}

fn read(message: &[u8; ADVERTISEMENT]) -> RemoteBuffer {
    let number = u128::from_be_bytes(*message);
    RemoteBuffer {
        address: (number >> 64) as u64,
        key: Key((number >> 32) as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_advertisement_is_in_network_order() {
        let buffer = RemoteBuffer {
            address: 0x0102_0304_0506_0708,
            key: Key(0x090a_0b0c),
        };
        let message = write(buffer, 0x0d0e_0f10);
        assert_eq!(message, std::array::from_fn(|n| n as u8 + 1));
        assert_eq!(read(&message), buffer);
        assert_eq!(text(3, 20), b"rdma-ping-3: DEFGHI\0");
    }
}
