// planes - splits a picture whose rows have a pitch, as they have in cameras, GPUs and cv::Mat
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//
// usage: planes INPUT.ppm
//
// The picture is read into rows of 'pitch' bytes, the last of which are padding, and a window of it
// is split into planes of red, green and blue that have a pitch as well.
#include <libsplit.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

struct picture {
    std::size_t height = 0, width = 0, pitch = 0; // in pixels, and in bytes from row to row
    std::vector<std::uint8_t> bytes;
};

static std::size_t pitch_of(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

// A binary PPM picture without comments.
static bool read_ppm(const char *path, picture &picture) {
    std::ifstream file(path, std::ios::binary);
    std::string magic;
    int most = 0;
    if (!(file >> magic >> picture.width >> picture.height >> most) || magic != "P6" || most != 255)
        return false;
    file.get();
    const std::size_t row = 3 * picture.width;
    picture.pitch = pitch_of(row);
    picture.bytes.assign(picture.height * picture.pitch, 0xEE);
    for (std::size_t y = 0; y < picture.height; y++)
        file.read(reinterpret_cast<char *>(&picture.bytes[y * picture.pitch]),
                  static_cast<std::streamsize>(row));
    return bool(file);
}

int main(int argc, char **argv) {
    picture whole;
    if (argc != 2 || !read_ppm(argv[1], whole) || whole.height < 8 || whole.width < 8) {
        std::fputs("usage: planes INPUT.ppm, of at least 8 x 8 pixels\n", stderr);
        return 1;
    }
    try {
        // The window without a border of 2 pixels: the same memory, seen from another address.
        const std::size_t height = whole.height - 4, width = whole.width - 4;
        const std::uint8_t *first = &whole.bytes[2 * whole.pitch + 2 * 3];
        const libsplit::input window =
            libsplit::input(first, {height, width, 3}).pitch(whole.pitch);

        // Without keepdims the colour axis is dropped: each plane is height x width.
        const auto colours = libsplit::split::to_sequence().axis(2).keepdims(false);

        // Three planes in one block, each row with a pitch of its own.
        const std::size_t pitch = pitch_of(width);
        std::vector<std::uint8_t> planes(3 * height * pitch, 0xEE);
        std::vector<libsplit::output> outputs;
        for (std::size_t i = 0; i < 3; i++)
            outputs.push_back(
                libsplit::output(&planes[i * height * pitch], {height, width}).pitch(pitch));
        colours.copy(window, outputs);

        std::printf("%zu x %zu pixels of a picture with %zu bytes a row\n", width, height,
                    whole.pitch);
        const char *const names[] = {"red", "green", "blue"};
        for (std::size_t i = 0; i < 3; i++) {
            std::size_t sum = 0, padding = 0;
            for (std::size_t y = 0; y < height; y++) {
                const std::uint8_t *row = &planes[(i * height + y) * pitch];
                for (std::size_t x = 0; x < width; x++)
                    sum += row[x];
                for (std::size_t x = width; x < pitch; x++)
                    padding += row[x] == 0xEE;
            }
            std::printf("%-5s  first %3d, mean %.3f, padding %s\n", names[i],
                        planes[i * height * pitch],
                        static_cast<double>(sum) / static_cast<double>(height * width),
                        padding == height * (pitch - width) ? "untouched" : "overwritten");
        }
    } catch (const std::exception &error) {
        std::fprintf(stderr, "planes: %s\n", error.what());
        return 1;
    }
}
