/* Receives bursts of 32 and frees them, as often as is said: its instructions are counted. */
#include <stdio.h>
#include <stdlib.h>

#include "pollux.h"

int main(int argc, char **argv)
{
    char text[1024];
    pollux_frame frames[32];
    unsigned long count = 0, bytes = 0;
    pollux_options options = {.size = sizeof options, .data_room = 2048};

    if (argc != 3)
        return 2;
    pollux_port *port = pollux_open(argv[1], &options, text, sizeof text);
    if (!port) {
        fprintf(stderr, "%s\n", text);
        return 1;
    }
    for (long round = atol(argv[2]); round > 0; round--) {
        size_t n = pollux_rx(port, frames, 32);
        for (size_t i = 0; i < n; i++)
            bytes += frames[i].payload_len;
        count += n;
        pollux_free(port, frames, n);
    }
    pollux_close(port);
    printf("%lu %lu\n", count, bytes);
    return 0;
}
