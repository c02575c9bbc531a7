/* The header needs no other before it. */
#include "libsplit.h"

int main(void) { return LIBSPLIT_VERSION_MAJOR; }
