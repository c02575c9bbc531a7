// opencv - splits a cv::Mat, or a part of a larger one, into its channels and merges them again
//
// SPDX-License-Identifier: MIT OR Apache-2.0
#include <libsplit.hpp>

#include <opencv2/core.hpp>

#include <cstdio>
#include <exception>
#include <vector>

// The element type of a cv::Mat.
static libsplit::dtype type_of(const cv::Mat &mat) {
    switch (mat.depth()) {
    case CV_8U:
        return libsplit::dtype::uint8;
    case CV_8S:
        return libsplit::dtype::int8;
    case CV_16U:
        return libsplit::dtype::uint16;
    case CV_16S:
        return libsplit::dtype::int16;
    case CV_32S:
        return libsplit::dtype::int32;
    case CV_32F:
        return libsplit::dtype::float32;
    case CV_64F:
        return libsplit::dtype::float64;
    default:
        return libsplit::dtype::float16;
    }
}

// Rows x columns x channels; OpenCV's step is the pitch of a row in bytes.
static libsplit::input input_of(const cv::Mat &mat) {
    return libsplit::input(type_of(mat), mat.data, {mat.rows, mat.cols, mat.channels()})
        .pitch(mat.step[0]);
}

// Without keepdims the channel axis is dropped.
static const auto channels = libsplit::split::to_sequence().axis(2).keepdims(false);

static std::vector<cv::Mat> split_channels(const cv::Mat &mat) {
    std::vector<cv::Mat> planes;
    channels.copy(input_of(mat), [&](std::size_t, const libsplit::piece &) {
        return planes.emplace_back(mat.rows, mat.cols, mat.depth()).data;
    });
    return planes;
}

// The reverse: each plane is copied to the place of its channel in the result.
static void merge_channels(const std::vector<cv::Mat> &planes, cv::Mat &mat) {
    const auto places = channels.view(input_of(mat));
    for (std::size_t i = 0; i < planes.size(); i++)
        libsplit::split::openvino().parts(1).copy(
            libsplit::input(type_of(mat), planes[i].data, {mat.rows, mat.cols})
                .pitch(planes[i].step[0]),
            {places[i]});
}

int main() {
    try {
        int wrong = 0;
        for (const int type : {CV_8UC3, CV_16SC2, CV_32FC4, CV_64FC1}) {
            cv::Mat whole(48, 64, type);
            cv::randu(whole, 0, 100);
            for (const cv::Mat &mat : {whole, whole(cv::Rect(5, 7, 30, 20))}) {
                const std::vector<cv::Mat> planes = split_channels(mat);
                std::vector<cv::Mat> expected;
                cv::split(mat, expected);
                cv::Mat merged(mat.rows, mat.cols, type);
                merge_channels(planes, merged);
                bool same = planes.size() == expected.size();
                for (std::size_t i = 0; same && i < planes.size(); i++)
                    same = cv::norm(planes[i], expected[i], cv::NORM_INF) == 0;
                same = same && cv::norm(merged, mat, cv::NORM_INF) == 0;
                std::printf("%d x %d, %d channels of %zu bytes: %s\n", mat.cols, mat.rows,
                            mat.channels(), mat.elemSize1(),
                            same ? "as cv::split, and merged again" : "WRONG");
                wrong += same ? 0 : 1;
            }
        }
        return wrong;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "opencv: %s\n", error.what());
        return 1;
    }
}
