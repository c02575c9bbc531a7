/* Fails if its asserts were compiled away. */
#include <assert.h>

int main(void) {
    int calls = 0;

    assert(calls++ == 0);
    return calls == 1 ? 0 : 1;
}
