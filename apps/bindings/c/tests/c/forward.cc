// C++17: frames are made, sent, received, changed, sent on and freed.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "pollux.h"

// A UDP datagram without checksums of its own: RFC 768 allows 0, and IPv4 has its sum.
static std::vector<uint8_t> datagram(uint16_t port, uint8_t fill)
{
    std::vector<uint8_t> f(14 + 20 + 8 + 16, fill);
    const uint8_t head[] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 44, 0, 1, 0, 0, 64, 17, 0, 0,
                            10, 0, 0, 1, 10, 0, 0, 2, 0x0f, 0xa0, uint8_t(port >> 8), uint8_t(port), 0, 24, 0, 0};
    std::memcpy(f.data(), head, sizeof head);
    uint32_t sum = 0;
    for (int i = 14; i < 34; i += 2)
        sum += uint32_t(f[i]) << 8 | f[i + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    f[24] = uint8_t(~sum >> 8);
    f[25] = uint8_t(~sum);
    return f;
}

// What a full queue does not take stays as it was.
static bool stays_when_full()
{
    pollux_options options{};
    options.size = sizeof options;
    options.data_room = 2048;
    pollux_port *port = pollux_open("loopback", &options, nullptr, 0);
    pollux_frame kept, more;
    const auto bytes = datagram(7, 1);
    auto send = [&] {
        if (!pollux_alloc(port, &more, bytes.size()))
            return false;
        std::memcpy(more.data, bytes.data(), bytes.size());
        return pollux_tx(port, &more, 1) == 1;
    };
    if (!send() || pollux_rx(port, &kept, 1) != 1)
        return false;
    while (send()) {
    }
    bool stays = pollux_tx(port, &kept, 1) == 0 && kept.payload == kept.data + 42 && kept.payload[15] == 1;
    pollux_free(port, &kept, 1);
    pollux_free(port, &more, 1);
    pollux_close(port);
    return stays;
}

// A program sends from its queue by way of a smaller array: what does not leave is what its queue has.
static bool copies_stay()
{
    pollux_options options{};
    options.size = sizeof options;
    options.data_room = 256;
    options.buffers = 4096;
    pollux_port *port = pollux_open("loopback", &options, nullptr, 0);
    std::vector<pollux_frame> queue(2000);
    for (auto &frame : queue) {
        if (!pollux_alloc(port, &frame, 60))
            return false;
        std::memset(frame.data, 0, 60);
    }
    auto send = [&](size_t from) {
        std::array<pollux_frame, 50> burst;
        std::copy_n(queue.begin() + long(from), burst.size(), burst.begin());
        return pollux_tx(port, burst.data(), burst.size());
    };
    size_t sent = 0;
    for (size_t left = 50; left == 50; sent += left)
        left = send(sent);
    // They are no datagrams: a poll drops them, and makes room for as many.
    std::array<pollux_frame, 2000> none;
    if (sent != 1024 || pollux_rx(port, none.data(), none.size()) != 0)
        return false;
    if (pollux_tx(port, &queue[sent], 900) != 900)
        return false;
    pollux_free(port, &queue[sent + 900], queue.size() - sent - 900);
    std::array<char, 1024> text{};
    pollux_ledger(port, text.data(), text.size());
    pollux_close(port);
    return std::string(text.data()).find("\"held\":0,\"refused\":{}") != std::string::npos;
}

int main()
{
    std::array<char, 1024> text{};
    const uint16_t streams[] = {7502, 7503};
    pollux_options options{};
    options.size = sizeof options;
    options.streams = streams;
    options.stream_count = 2;
    pollux_port *port = pollux_open("loopback", &options, text.data(), text.size());
    if (!port)
        return std::fprintf(stderr, "%s\n", text.data()), 1;

    std::array<pollux_frame, 100> frames;
    for (size_t i = 0; i < frames.size(); i++) {
        auto bytes = datagram(uint16_t(7502 + i % 3), uint8_t(i));
        if (!pollux_alloc(port, &frames[i], bytes.size()))
            return 2;
        std::memcpy(frames[i].data, bytes.data(), bytes.size());
    }
    if (pollux_tx(port, frames.data(), frames.size()) != frames.size())
        return 3;
    // Every third is to a port of no stream: 34 + 33 are delivered.
    size_t n = pollux_rx(port, frames.data(), frames.size());
    if (n != 67 || pollux_rx(port, frames.data(), 1) != 0)
        return 4;
    for (size_t i = 0; i < n; i++) {
        const pollux_frame &f = frames[i];
        uint8_t number = uint8_t(i / 2 * 3 + i % 2);
        if (f.dst_port != 7502 + i % 2 || f.src_port != 4000 || f.payload_len != 16 || f.payload[15] != number)
            return 5;
        if (f.arrival_ns > pollux_now(port) || f.wire_ns != 0)
            return 6;
        f.payload[0] = 0xaa;
    }
    if (pollux_tx(port, frames.data(), n) != n || pollux_rx(port, frames.data(), 64) != 64)
        return 7;
    bool changed = frames[63].payload[0] == 0xaa && frames[63].payload[1] != 0xaa;
    pollux_free(port, frames.data(), 64);
    if (!changed || pollux_rx(port, frames.data(), 64) != 3)
        return 8;
    pollux_close(port);
    pollux_free(port, frames.data(), 3);
    pollux_ledger(port, text.data(), text.size());
    const char *expected = "{\"from_wire\":167,\"delivered\":134,\"dropped\":{\"demux-miss\":33},\"balanced\":true,"
                           "\"sent\":{\"packets\":167,\"bytes\":9686,\"errors\":0},\"held\":0,\"refused\":{}}";
    if (std::string(text.data()) != expected)
        return std::fprintf(stderr, "%s\n", text.data()), 9;
    if (!stays_when_full())
        return 10;
    return copies_stay() ? 0 : 11;
}
