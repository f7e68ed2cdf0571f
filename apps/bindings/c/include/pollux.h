/* Packet I/O past the kernel: UDP datagrams of a port, without a copy. docs/c.md is the manual.
 *
 * Frames are received into an array and freed, or sent, by handing the same array back. Calls never wait
 * and need no lock: a port belongs to the thread that first receives, sends, allocates, frees or asks for its
 * end; pollux_ledger, pollux_now and pollux_close are for any thread, and after pollux_close pollux_free is
 * too. A call that is wrong (a frame freed twice or of another port, another thread, NULL) does nothing, and
 * is counted under `refused` in the ledger. */

#ifndef POLLUX_H
#define POLLUX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 A port. It is opened by pollux_open, and its memory (some hundred bytes after pollux_close, and after
 the last of its frames is back) stays to the end of the process, so that later misuse is counted.
 */
typedef struct pollux_port pollux_port;

/*
 Options of a port. `size` is sizeof(pollux_options); a field that is 0 has its default.
 */
typedef struct pollux_options {
    /*
     sizeof(pollux_options), by which a later library knows a program that was built before.
     */
    size_t size;
    /*
     UDP destination ports that are delivered; NULL: all. Datagrams to others are dropped as
     demux-miss.
     */
    const uint16_t *streams;
    /*
     Number of those ports.
     */
    size_t stream_count;
    /*
     Bytes of a buffer; a longer frame or datagram is dropped as oversize. Default: the longest frame
     of the link, and any datagram of a recording.
     */
    size_t data_room;
    /*
     Buffers of the pool. Default: 64 MiB of them, 1024 to 8192.
     */
    size_t buffers;
    /*
     Not 0: IPv4 fragments are dropped as ip-fragment instead of joined to datagrams.
     */
    uint32_t drop_fragments;
} pollux_options;

/*
 A frame in a packet buffer. The program may write the bytes of the frame and, before it sends it,
 shorten `len`; the other fields are read only.
 */
typedef struct pollux_frame {
    /*
     The frame, from its Ethernet header on.
     */
    uint8_t *data;
    /*
     The UDP payload, in the frame. NULL in a frame of pollux_alloc.
     */
    uint8_t *payload;
    /*
     Bytes of the frame.
     */
    uint32_t len;
    /*
     Bytes of the payload.
     */
    uint16_t payload_len;
    /*
     UDP destination port.
     */
    uint16_t dst_port;
    /*
     UDP source port.
     */
    uint16_t src_port;
    /*
     Of the library.
     */
    uint16_t reserved;
    /*
     Of the library.
     */
    uint32_t slot;
    /*
     Of the library.
     */
    uint64_t ticket;
    /*
     Time stamp of the capture, the kernel or the NIC in ns since 1970; 0 without one.
     */
    uint64_t wire_ns;
    /*
     Time of arrival in the process, in ns since the port was opened.
     */
    uint64_t arrival_ns;
} pollux_frame;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Opens a port by its spec ("af_packet:eth1"). `or_null`: options, or NULL for the defaults. On failure
 returns NULL, and writes a message that says what to do into `error`, which has room for `room` bytes.
 */
struct pollux_port *pollux_open(const char *spec,
                                const struct pollux_options *or_null,
                                char *error,
                                size_t room);

/*
 Receives at most `n` datagrams into `frames`; returns how many. Never waits.
 */
size_t pollux_rx(struct pollux_port *port, struct pollux_frame *frames, size_t n);

/*
 Sends frames, received or of pollux_alloc, in order; returns how many: the first so many are gone,
 the rest stay the program's, for want of room in the queue or because the next is refused. Never waits.
 */
size_t pollux_tx(struct pollux_port *port,
                 struct pollux_frame *frames,
                 size_t n);

/*
 Gives frames back. A frame that is refused is left out. After pollux_close for any thread, and for
 several at once.
 */
void pollux_free(struct pollux_port *port, struct pollux_frame *frames, size_t n);

/*
 Takes a buffer for a frame of `len` bytes, whose content is undefined. False if there is none, or no
 frame can be so long.
 */
bool pollux_alloc(struct pollux_port *port,
                  struct pollux_frame *frame,
                  size_t len);

/*
 Whether no datagram can arrive any more: the recording has ended, the device is gone, the port is
 closed or NULL.
 */
bool pollux_ended(struct pollux_port *port);

/*
 Nanoseconds since the port was opened, on the clock of `arrival_ns`. For any thread.
 */
uint64_t pollux_now(struct pollux_port *port);

/*
 Writes the ledger as JSON with a NUL: {"from_wire", "delivered", "dropped": {CAUSE: n}, "balanced",
 "sent": {"packets", "bytes", "errors"}, "held", "refused": {REASON: n}}; returns the bytes that it has
 without the NUL, of which as many are written as fit into `room`. For any thread, and after pollux_close;
 NULL: {"refused"} of the calls without a port.
 */
size_t pollux_ledger(struct pollux_port *port,
                     char *json,
                     size_t room);

/*
 Stops and releases the port. Frames that the program has stay valid, and are still to be freed.
 */
void pollux_close(struct pollux_port *port);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* POLLUX_H */
