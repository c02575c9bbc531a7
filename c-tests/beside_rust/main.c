/* Two libraries in Rust in one program: an error of libsplit's, and a sum of the other's. */
#include <libsplit.h>
#include <stdio.h>

int64_t other_sum(int64_t count);

int main(void) {
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    size_t count;
    libsplit_status status = libsplit_count(NULL, NULL, &count, &error);
    printf("%s, %d\n", libsplit_status_name(status), (int)other_sum(10));
    return 0;
}
