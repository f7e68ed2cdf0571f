"""Cases in which the endpoint requests, and the peer answers."""

from lib.rdma.cases import case, family
from lib.rdma.packets import (ACCESS, ACK, CNP, INVALID, NAK, OPERATION, PSNS, RESPONSE_LAST, RESPONSE_ONLY, RNR,
                              SEQUENCE, aeth)
from lib.rdma.rocepeer import pattern

MTUS = (256, 512, 1024, 2048, 4096)


def endpoint(play, **options):
    return play.region(contents=pattern(32768)), play.qp(**options)


def done(play, qp, op, length, status="ok"):
    play.complete(qp, "posted", op, status, **({"bytes": length} if status == "ok" else {}))


@family("requests with MTU", MTUS)
def requests_with_mtu(play, mtu):
    """All kinds, of one packet and of several, at the end of the sequence numbers."""
    region, qp = endpoint(play, mtu=mtu, send_psn=PSNS - 3)
    last = 0
    posts = [("put", 0, 1, None), ("put", 7, 2 * mtu + 3, None), ("put", 0, mtu, 0), ("send", 0, 0, None),
             ("send", 5, 3 * mtu, 0xffffffff), ("put", 0, mtu + 1, 7), ("send", 9, 2 * mtu, None)]
    for op, at, length, immediate in posts:
        last = qp.post(op, region, at, length, immediate=immediate)[-1]
        done(play, qp, op, length)
    play.tick()
    qp.acknowledge(last, len(posts))


@family("get with MTU", MTUS)
def get_with_mtu(play, mtu):
    region, qp = endpoint(play, mtu=mtu, send_psn=PSNS - 2)
    for msn, (at, length) in enumerate(((0, 1), (100, 3 * mtu), (20000, 2 * mtu + 5), (0, 0)), 1):
        first = qp.post("get", region, at, length)[0]
        play.tick()
        qp.respond(first, msn, pattern(length, msn))
        region.expected[at:at + length] = pattern(length, msn)
        done(play, qp, "get", length)


@case
def an_ACK_is_for_all_before_it(play):
    """And one that comes again, or late, is for none."""
    region, qp = endpoint(play)
    numbers = [qp.post("put", region, 0, 100)[0] for _ in range(4)]
    for _ in numbers:
        done(play, qp, "put", 100)
    play.tick()
    for place in (2, 2, 0, 3, 3, 1):
        qp.acknowledge(numbers[place], place + 1)


@case
def a_ghost_ACK_is_for_none(play):
    """Numbers that have not been sent, in front and behind."""
    region, qp = endpoint(play)
    numbers = qp.post("put", region, 0, 600)
    play.tick()
    for psn in (numbers[-1] + 1, numbers[-1] + 1000, numbers[0] - 1, numbers[0] - 1000, numbers[0] + PSNS // 2 - 1):
        qp.acknowledge(psn, 1)
        qp.acknowledge(psn, 1, NAK | ACCESS)
    qp.packet(RESPONSE_ONLY, numbers[0] + 5, pattern(8), extended=aeth(0x1f, 1))
    qp.acknowledge(numbers[-1], 1)
    done(play, qp, "put", 600)


@case
def a_NAK_goes_back(play):
    """From the number that it names, which acknowledges those before."""
    region, qp = endpoint(play)
    numbers = qp.post("put", region, 0, 1000)
    more = qp.post("send", region, 0, 300)
    play.tick()
    qp.acknowledge(numbers[2], 0, NAK | SEQUENCE)
    qp.order += numbers[2:] + more
    play.tick()
    qp.acknowledge(more[-1], 2)
    done(play, qp, "put", 1000)
    done(play, qp, "send", 300)


@family("refused with", ("remote-access", "remote-invalid-request", "remote-operation"))
def refused(play, status):
    """The request fails, and the queue pair with it: what follows is flushed."""
    code = {"remote-access": ACCESS, "remote-invalid-request": INVALID, "remote-operation": OPERATION}[status]
    region, qp = endpoint(play)
    first = qp.post("put", region, 0, 10)[0]
    second = qp.post("put", region, 0, 600)[1]
    qp.post("send", region, 0, 10)
    play.tick()
    qp.acknowledge(first, 1)
    qp.acknowledge(second, 1, NAK | code)
    done(play, qp, "put", 10)
    done(play, qp, "put", 600, status)
    done(play, qp, "send", 10, "flushed")
    other = play.qp()
    other.write(region, 4000, pattern(10, 3))


@case
def the_peer_is_not_ready(play):
    """Code 12 means 0.64 ms (9.7.5.2.8, table 45): the request waits so long, and is sent again."""
    region, qp = endpoint(play)
    first = qp.post("send", region, 0, 10)
    second = qp.post("send", region, 0, 20)
    play.tick()
    qp.acknowledge(first[0], 0, RNR | 12)
    play.tick(300)
    play.tick(300)
    qp.order += first + second
    play.tick(300)
    play.tick()
    qp.acknowledge(second[0], 2)
    done(play, qp, "send", 10)
    done(play, qp, "send", 20)


@case
def the_peer_is_never_ready(play):
    """Given up after as many repetitions as are allowed."""
    region, qp = endpoint(play, rnr_retry=2)
    number = qp.post("send", region, 0, 10)
    for _ in range(2):
        play.tick()
        qp.acknowledge(number[0], 0, RNR | 1)
        qp.order += number
        play.tick(100)
    play.tick()
    qp.acknowledge(number[0], 0, RNR | 1)
    done(play, qp, "send", 10, "rnr-retry-exceeded")


@case
def no_answer_at_all(play):
    """Time-out 8 is 1.05 ms: sent again so often, and given up."""
    region, qp = endpoint(play, timeout=8, retry=2)
    numbers = qp.post("put", region, 0, 600)
    qp.post("put", region, 0, 10)
    more = qp.order[-1:]
    play.tick()
    for _ in range(2):
        qp.order += numbers + more
        play.tick(1200)
    play.tick(1200)
    play.tick()
    done(play, qp, "put", 600, "retry-exceeded")
    done(play, qp, "put", 10, "flushed")


@case
def an_answer_in_time(play):
    """The second time-out begins with the acknowledgement of the first part."""
    region, qp = endpoint(play, timeout=8, retry=2)
    numbers = qp.post("put", region, 0, 1000)
    play.tick()
    play.wait(900)
    qp.acknowledge(numbers[1], 0)
    play.tick(600)
    qp.order += numbers[2:]
    play.tick(600)
    qp.acknowledge(numbers[3], 1)
    done(play, qp, "put", 1000)


@case
def time_out_0_is_none(play):
    """No answer for ten seconds, and nothing is sent again."""
    region, qp = endpoint(play, timeout=0, retry=1)
    numbers = qp.post("put", region, 0, 600)
    play.tick(10_000_000)
    qp.acknowledge(numbers[-1], 1)
    done(play, qp, "put", 600)


@case
def retry_0_is_none(play):
    """The first time-out is the last."""
    region, qp = endpoint(play, timeout=8, retry=0)
    qp.post("put", region, 0, 600)
    play.tick()
    play.tick(1200)
    play.tick(1200)
    done(play, qp, "put", 600, "retry-exceeded")


@case
def rnr_retry_0_is_none(play):
    region, qp = endpoint(play, rnr_retry=0)
    number = qp.post("send", region, 0, 10)
    play.tick()
    qp.acknowledge(number[0], 0, RNR | 1)
    play.tick(1000)
    done(play, qp, "send", 10, "rnr-retry-exceeded")


@case
def rnr_retry_7_is_for_ever(play):
    region, qp = endpoint(play, rnr_retry=7)
    number = qp.post("send", region, 0, 10)
    for _ in range(40):
        play.tick()
        qp.acknowledge(number[0], 0, RNR | 1)
        qp.order += number
        play.tick(100)
    qp.acknowledge(number[0], 1)
    done(play, qp, "send", 10)


# Milliseconds by code (table 45).
WAITS = {0: 655.36, 1: 0.01, 2: 0.02, 13: 0.96, 24: 40.96, 31: 491.52}


@family("not ready for code", WAITS)
def not_ready_for(play, code):
    """One queue pair sends again when that time is over. The other one has an ACK just before, and has
    nothing to send then."""
    us = round(WAITS[code] * 1000)
    region, late = endpoint(play)
    early = play.qp() if us > 100 else None
    numbers = {qp: qp.post("send", region, 0, 600) for qp in (late, early) if qp}
    play.tick()
    for qp, of in numbers.items():
        qp.acknowledge(of[0], 0, RNR | code)
        done(play, qp, "send", 600)
    if early:
        play.wait(us - 80)
        early.acknowledge(numbers[early][-1], 1)
    play.tick(200)
    late.order += numbers[late]
    late.acknowledge(numbers[late][-1], 1)


@case
def responses_that_come_twice(play):
    """Those that have come are for nothing any more, within the READ and behind it."""
    region, qp = endpoint(play)
    first = qp.post("get", region, 0, 1000)[0]
    second = qp.post("put", region, 9000, 10)
    play.tick()
    data = pattern(1000, 3)
    qp.respond(first, 1, data, only=[0, 1])
    qp.respond(first, 1, bytes(1000), only=[0, 1])
    qp.respond(first, 1, data, only=[2, 3])
    qp.respond(first, 1, bytes(1000))
    qp.acknowledge(second[0], 2)
    region.expected[:1000] = data
    done(play, qp, "get", 1000)
    done(play, qp, "put", 10)


@case
def a_response_acknowledges_what_is_before_its_READ(play):
    """Requests before it need no ACK of their own (9.7.5.1.4)."""
    region, qp = endpoint(play)
    qp.post("put", region, 9000, 600)
    qp.post("send", region, 9000, 10)
    first = qp.post("get", region, 0, 300)[0]
    play.tick()
    qp.respond(first, 3, pattern(300, 3))
    region.expected[:300] = pattern(300, 3)
    done(play, qp, "put", 600)
    done(play, qp, "send", 10)
    done(play, qp, "get", 300)


@case
def notifications_slow_down_and_lose_nothing(play):
    """Each halves the rate at first (DCQCN, equation 1): a million times less is a packet in 250 us at the
    least rate of 10 Mb/s. All packets leave, in order, one behind the other."""
    region, qp = endpoint(play)
    numbers = qp.post("put", region, 0, 2000)
    play.tick()
    for _ in range(24):
        qp.packet(CNP, 0, bytes(16), service=0)
    play.notified = 24
    qp.acknowledge(numbers[0], 0, NAK | SEQUENCE)
    qp.order += numbers
    play.tick(20_000)
    qp.acknowledge(numbers[-1], 1)
    done(play, qp, "put", 2000)


@family("READ lost its", ("first response", "middle response", "last response"))
def response_lost(play, which):
    """Asked again from the first missing byte: by the gap, or by time."""
    region, qp = endpoint(play, timeout=8)
    first = qp.post("get", region, 1000, 1000, remote=0x9000, key=0x88)[0]
    play.tick()
    lost = {"first response": 0, "middle response": 1, "last response": 3}[which]
    qp.respond(first, 1, pattern(1000, 5), only=[place for place in range(4) if place != lost])
    at = lost * 256
    qp.requests[(first + lost) % PSNS] = (12, 0x9000 + at, 0x88, 1000 - at, None, b"")
    qp.order.append((first + lost) % PSNS)
    play.tick(1200 if lost == 3 else 0)
    qp.respond(first + lost, 1, pattern(1000, 5)[at:])
    region.expected[1000:2000] = pattern(1000, 5)
    done(play, qp, "get", 1000)


@case
def an_ACK_behind_a_READ_is_a_NAK_of_it(play):
    """Its responses are lost, so it is asked again, and so is what follows."""
    region, qp = endpoint(play)
    first = qp.post("get", region, 0, 500)[0]
    second = qp.post("get", region, 8000, 10)[0]
    play.tick()
    qp.acknowledge(second, 2)
    qp.order += [first, second]
    play.tick()
    qp.respond(first, 1, pattern(500, 2))
    qp.respond(second, 2, pattern(10, 3))
    region.expected[:500], region.expected[8000:8010] = pattern(500, 2), pattern(10, 3)
    done(play, qp, "get", 500)
    done(play, qp, "get", 10)


@case
def a_PUT_behind_a_READ_sends_what_has_been_read(play):
    """The requests of the endpoint have a fence (10.8.3.3): what follows a READ waits for its responses,
    also for one that is lost."""
    region, qp = endpoint(play, timeout=8)
    data = pattern(500, 2)
    first = qp.post("get", region, 0, 500)[0]
    numbers = qp.post("put", region, 0, 500)
    for place, number in enumerate(numbers):
        qp.expect_request("put", number, data, place, 0x5000, 0x77, None)
    play.tick()
    qp.respond(first, 1, data, only=[0])
    again = (first + 1) % PSNS
    qp.requests[again] = (12, 0x5000 + 256, 0x77, 500 - 256, None, b"")
    qp.order.insert(1, again)
    play.tick(1200)
    qp.respond(again, 1, data[256:])
    qp.acknowledge(numbers[-1], 2)
    region.expected[:500] = data
    done(play, qp, "get", 500)
    done(play, qp, "put", 500)


@family("response with a wrong", ("length", "operation"))
def wrong_response(play, what):
    """Whether the request fails or is asked again is the endpoint's choice; what was asked for has its
    bytes already, and no other may be written."""
    region, qp = endpoint(play)
    first = qp.post("get", region, 0, 100)[0]
    play.tick()
    data = bytes(region.contents[:100])
    if what == "length":
        qp.packet(RESPONSE_ONLY, first, data + b"more", extended=aeth(0x1f, 1))
    else:
        qp.packet(RESPONSE_LAST, first, data, extended=aeth(0x1f, 1))
    qp.is_free = True


@case
def both_ways_at_once(play):
    """Requests and answers of one queue pair have sequence numbers of their own."""
    region, qp = endpoint(play, receives=2)
    put = qp.post("put", region, 0, 300)
    get = qp.post("get", region, 1000, 300)
    play.tick()
    qp.write(region, 20000, pattern(300, 4))
    qp.acknowledge(put[-1], 1)
    qp.read(region, 20000, 300)
    qp.respond(get[0], 2, pattern(300, 6))
    region.expected[1000:1300] = pattern(300, 6)
    qp.packet(ACK, put[-1], extended=aeth(0x1f, 1))
    done(play, qp, "put", 300)
    done(play, qp, "get", 300)
