/* Counts the datagrams of a port by UDP port: one line "PORT COUNT" each, then the ledger. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pollux.h"

int main(int argc, char **argv)
{
    static unsigned counts[65536];
    char text[1024];
    pollux_options options = {.size = sizeof options};
    pollux_frame frames[32], last = {0};
    uint64_t bytes = 0;

    if (argc < 2)
        return 2;
    options.drop_fragments = argc > 2;
    pollux_port *port = pollux_open(argv[1], &options, text, sizeof text);
    if (!port) {
        fprintf(stderr, "%s\n", text);
        return 1;
    }
    while (!pollux_ended(port)) {
        size_t n = pollux_rx(port, frames, 32);
        for (size_t i = 0; i < n; i++) {
            pollux_frame *f = &frames[i];
            counts[f->dst_port]++;
            for (unsigned at = 0; at < f->payload_len; at++)
                bytes += f->payload[at];
            if (f->payload < f->data || f->payload + f->payload_len > f->data + f->len)
                return 3;
        }
        if (n && !last.ticket) {
            last = frames[n - 1];
            n--;
        }
        pollux_free(port, frames, n);
    }
    for (unsigned i = 0; i < 65536; i++)
        if (counts[i])
            printf("%u %u\n", i, counts[i]);
    pollux_close(port);
    /* A frame outlives its port. */
    if (last.ticket) {
        bytes += last.data[0];
        pollux_free(port, &last, 1);
    }
    if (pollux_ledger(port, text, sizeof text) >= sizeof text)
        return 4;
    puts(text);
    return bytes == 0 && last.ticket;
}
