/* What is wrong is refused and counted, and does no harm. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pollux.h"

static char text[2048];

#define CHECK(condition)                                                        \
    do {                                                                        \
        if (!(condition)) {                                                     \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, text); \
            exit(1);                                                            \
        }                                                                       \
    } while (0)

static int has(pollux_port *port, const char *part)
{
    pollux_ledger(port, text, sizeof text);
    return strstr(text, part) != NULL;
}

static void wrong_requests(void)
{
    pollux_options options = {.size = sizeof options};
    uint16_t twice[] = {7, 7};

    CHECK(!pollux_open(NULL, NULL, text, sizeof text) && strstr(text, "spec is NULL"));
    CHECK(!pollux_open("nul", NULL, text, sizeof text) && strstr(text, "no driver `nul`"));
    CHECK(!pollux_open("pcap:rx=/nowhere", NULL, text, sizeof text) && strstr(text, "/nowhere"));
    CHECK(!pollux_open("nul", NULL, text, 4) && strlen(text) == 3);
    CHECK(!pollux_open("nul", NULL, NULL, 0));
    options.size = 3;
    CHECK(!pollux_open("null", &options, text, sizeof text) && strstr(text, "sizeof(pollux_options)"));
    options.size = sizeof options;
    options.streams = twice;
    options.stream_count = 2;
    CHECK(!pollux_open("null", &options, text, sizeof text) && strstr(text, "UDP port 7 leads to"));
}

static void no_port(void)
{
    pollux_frame frame = {0};

    CHECK(pollux_rx(NULL, &frame, 1) == 0);
    CHECK(pollux_tx(NULL, &frame, 1) == 0);
    CHECK(!pollux_alloc(NULL, &frame, 60) && pollux_ended(NULL));
    pollux_free(NULL, &frame, 1);
    pollux_close(NULL);
    CHECK(has(NULL, "{\"refused\":{\"null\":6}}"));
}

static void frames(pollux_port *port, pollux_port *other)
{
    pollux_frame frame, copy, none = {0};

    CHECK(pollux_rx(port, NULL, 3) == 0 && !pollux_alloc(port, NULL, 60));
    CHECK(pollux_rx(port, NULL, 0) == 0);
    pollux_free(port, &none, 1);
    CHECK(has(port, "\"null\":3"));

    CHECK(pollux_alloc(port, &frame, 60) && frame.len == 60 && !frame.payload);
    memset(frame.data, 0, 60);
    copy = frame;
    pollux_free(other, &copy, 1);
    CHECK(pollux_tx(other, &copy, 1) == 0);
    CHECK(has(other, "\"other-port\":2"));
    pollux_free(port, &frame, 1);
    CHECK(!frame.data);
    pollux_free(port, &frame, 1);
    pollux_free(port, &copy, 1);
    CHECK(pollux_tx(port, &copy, 1) == 0);
    CHECK(has(port, "\"freed-twice\":3"));

    /* The same buffer again: the old frame does not free it. */
    CHECK(pollux_alloc(port, &frame, 60) && frame.slot == copy.slot);
    pollux_free(port, &copy, 1);
    copy.slot = UINT32_MAX;
    pollux_free(port, &copy, 1);
    CHECK(has(port, "\"freed-twice\":5") && has(port, "\"held\":1"));

    frame.len = 61;
    CHECK(pollux_tx(port, &frame, 1) == 0);
    frame.len = 13;
    CHECK(pollux_tx(port, &frame, 1) == 0);
    CHECK(has(port, "\"length\":2"));
    frame.len = 20;
    CHECK(pollux_tx(port, &frame, 1) == 1);
    CHECK(has(port, "\"sent\":{\"packets\":1,\"bytes\":20,\"errors\":0}") && has(port, "\"held\":0"));
    CHECK(!pollux_alloc(port, &frame, 100000));

    /* A wrong frame among others ends what is sent; the rest stays. */
    pollux_frame four[4];
    for (int i = 0; i < 4; i++) {
        CHECK(pollux_alloc(port, &four[i], 60));
        memset(four[i].data, i, 60);
    }
    copy = four[2];
    pollux_free(port, &four[2], 1);
    CHECK(pollux_tx(port, four, 4) == 2 && four[3].data[59] == 3);
    pollux_free(port, &four[3], 1);
    CHECK(has(port, "\"held\":0") && has(port, "\"freed-twice\":6"));
}

static void *use(void *port)
{
    pollux_frame frame;

    CHECK(pollux_rx(port, &frame, 1) == 0 && !pollux_alloc(port, &frame, 60));
    CHECK(has(port, "\"other-thread\":2"));
    return NULL;
}

static void after_close(pollux_port *port)
{
    pollux_frame frame, copy;

    CHECK(pollux_alloc(port, &frame, 60));
    pollux_close(port);
    pollux_close(port);
    CHECK(pollux_ended(port) && pollux_rx(port, &copy, 1) == 0 && !pollux_alloc(port, &copy, 60));
    CHECK(pollux_tx(port, &frame, 1) == 0);
    CHECK(has(port, "\"closed\":4") && has(port, "\"held\":1") && has(port, "\"balanced\":true"));
    memset(frame.data, 1, 60);
    copy = frame;
    pollux_free(port, &frame, 1);
    pollux_free(port, &copy, 1);
    CHECK(has(port, "\"freed-twice\":7") && has(port, "\"held\":0"));
}

/* Two threads that give back frames of a closed port, one at a time each. */
enum { FRAMES = 2000 };
static pollux_frame shared[FRAMES];
static pollux_port *closed;
static pthread_barrier_t start;

static void *give_back(void *first)
{
    pthread_barrier_wait(&start);
    for (size_t i = *(size_t *)first; i < FRAMES; i += 2)
        pollux_free(closed, &shared[i], 1);
    return NULL;
}

static void two_threads_after_close(void)
{
    pollux_options options = {.size = sizeof options, .buffers = 4096, .data_room = 256};
    size_t first[] = {0, 1};
    pthread_t thread[2];

    closed = pollux_open("loopback", &options, text, sizeof text);
    CHECK(closed);
    for (size_t i = 0; i < FRAMES; i++)
        CHECK(pollux_alloc(closed, &shared[i], 60));
    pollux_close(closed);
    CHECK(pthread_barrier_init(&start, NULL, 2) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&thread[i], NULL, give_back, &first[i]) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
    CHECK(has(closed, "\"held\":0,\"refused\":{}"));
}

int main(void)
{
    pollux_port *port = pollux_open("loopback", NULL, text, sizeof text);
    pollux_port *other = pollux_open("loopback", NULL, text, sizeof text);
    pthread_t thread;
    int status;

    CHECK(port && other);
    wrong_requests();
    no_port();
    frames(port, other);

    CHECK(pthread_create(&thread, NULL, use, port) == 0 && pthread_join(thread, NULL) == 0);

    pid_t child = fork();
    if (child == 0) {
        pollux_frame frame;
        int refused = pollux_rx(port, &frame, 1) == 0 && !pollux_alloc(port, &frame, 60);
        pollux_close(port);
        _exit(refused && has(port, "\"forked\":3") ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(!has(port, "forked"));

    after_close(port);
    two_threads_after_close();
    pollux_close(other);
    return 0;
}
