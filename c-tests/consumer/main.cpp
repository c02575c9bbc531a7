/* A user's program in C++: prints the lengths 2 and 4 of 1 to 6, split by way of DLPack. */
#include <libsplit.hpp>
#include <libsplit_dlpack.h>

#include <cstdio>

int main() {
    float data[] = {1, 2, 3, 4, 5, 6};
    std::int64_t shape[] = {6};
    DLTensor source{};
    source.data = data;
    source.device.device_type = kDLCPU;
    source.ndim = 1;
    source.dtype.code = 2;
    source.dtype.bits = 32;
    source.dtype.lanes = 1;
    source.shape = shape;
    libsplit_tensor tensor;
    if (libsplit_tensor_from_dlpack(&source, &tensor, nullptr) != LIBSPLIT_STATUS_OK)
        return 1;
    const char *before = "";
    for (const libsplit::piece &piece : libsplit::split::onnx(18).lengths({2, 4}).view(tensor)) {
        std::printf("%s", before);
        const char *space = "";
        for (const float value : piece.values<const float>()) {
            std::printf("%s%g", space, double(value));
            space = " ";
        }
        before = " | ";
    }
    std::puts("");
}
