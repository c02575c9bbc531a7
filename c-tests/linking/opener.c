/* Opens a library and calls a function in it, of which it returns the result: opener open|lmopen
 * LIBRARY FUNCTION Of libsplit itself the function is libsplit_version, which returns no 0. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    void *library = NULL;
    void *found;
    int (*function)(void);
    int result;

    if (argc != 4)
        return 64;
    if (strcmp(argv[1], "open") == 0)
        library = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
#ifdef LM_ID_NEWLM
    else
        library = dlmopen(LM_ID_NEWLM, argv[2], RTLD_NOW | RTLD_LOCAL);
#endif
    found = library == NULL ? NULL : dlsym(library, argv[3]);
    if (found == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 65;
    }
    memcpy(&function, &found, sizeof function);
    result = function();
    if (strcmp(argv[3], "libsplit_version") == 0)
        result = result == 0;
    dlclose(library);
    return result;
}
