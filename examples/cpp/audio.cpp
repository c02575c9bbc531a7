// audio - splits interleaved sound into one buffer for each channel, and back, without allocating
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Six channels of tones come in blocks, as from a sound card: one sample of every channel, then the
// next sample of every channel. Each channel is halved separately, and they are interleaved again.
#include <libsplit.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

namespace {

constexpr std::size_t channels = 6, frames = 480, rate = 48000, blocks = 100;

double frequency(std::size_t channel) { return 220.0 * static_cast<double>(channel + 1); }

float sample(std::size_t channel, std::size_t frame) {
    const double time = static_cast<double>(frame) / static_cast<double>(rate);
    return static_cast<float>(0.9 * std::sin(2 * 3.14159265358979 * (frequency(channel) * time)));
}

// Made once, before the first block: the buffers, and the places of the channels in them.
struct converter {
    std::vector<float> interleaved = std::vector<float>(frames * channels);
    std::vector<float> planar = std::vector<float>(frames * channels);
    libsplit::input in{interleaved, {frames, channels}}, out{planar, {channels, frames}};
    // One piece for each channel, of 'frames' samples.
    libsplit::split by_channel = libsplit::split::to_sequence().keepdims(false);
    libsplit::split to_planar = by_channel.axis(1), to_interleaved = by_channel.axis(0);
    // One after the other in the planar buffer, with strides of 6 in the interleaved one.
    libsplit::pieces planes = to_interleaved.view(out), places = to_planar.view(in);

    // These two are for the audio thread: they do not throw, allocate or lock.
    bool split() noexcept { return bool(to_planar.try_copy(in, planes)); }
    bool join() noexcept { return bool(to_interleaved.try_copy(out, places)); }
};

} // namespace

int main() {
    converter sound;
    std::vector<std::size_t> crossings(channels);
    std::vector<float> peaks(channels), last(channels, 1.0F);
    std::size_t different = 0;
    for (std::size_t block = 0; block < blocks; block++) {
        for (std::size_t i = 0; i < frames; i++)
            for (std::size_t channel = 0; channel < channels; channel++)
                sound.interleaved[i * channels + channel] = sample(channel, block * frames + i);

        if (!sound.split())
            return 1;
        for (std::size_t channel = 0; channel < channels; channel++)
            for (float &value : sound.planes[channel].values<float>()) {
                crossings[channel] += last[channel] <= 0.0F && value > 0.0F;
                last[channel] = value;
                value *= 0.5F;
                peaks[channel] = std::fmax(peaks[channel], value);
            }
        if (!sound.join())
            return 1;

        for (std::size_t i = 0; i < frames; i++)
            for (std::size_t channel = 0; channel < channels; channel++)
                different += sound.interleaved[i * channels + channel] !=
                             0.5F * sample(channel, block * frames + i);
    }
    const double seconds = static_cast<double>(blocks * frames) / static_cast<double>(rate);
    for (std::size_t channel = 0; channel < channels; channel++)
        std::printf("channel %zu: %4.0f Hz, peak %.2f\n", channel + 1,
                    static_cast<double>(crossings[channel]) / seconds,
                    static_cast<double>(peaks[channel]));
    std::printf("interleaved again: %zu of %zu samples differ\n", different,
                blocks * frames * channels);
    return different == 0 ? 0 : 1;
}
