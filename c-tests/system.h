/*
 * system.h - what differs between Windows and other systems: pages of memory, libraries loaded at
 * run time, and how much of a process is in memory
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef SYSTEM_H
#define SYSTEM_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN 1
#define NOGDI 1
#define NOMINMAX 1
#include <windows.h>

#include <psapi.h>
#else
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef __APPLE__
#include <mach/mach.h>
#endif
#endif

static inline size_t page_bytes(void) {
#ifdef _WIN32
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return info.dwPageSize;
#else
    return (size_t)sysconf(_SC_PAGESIZE);
#endif
}

/* Returns addresses that must not be touched. A test machine without them is no finding. */
static inline void *reserve_addresses(size_t bytes) {
#ifdef _WIN32
    void *begin = VirtualAlloc(NULL, bytes, MEM_RESERVE, PAGE_NOACCESS);
    if (begin == NULL)
        abort();
#else
    void *begin = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (begin == MAP_FAILED)
        abort();
#endif
    return begin;
}

static inline void release_addresses(void *begin, size_t bytes) {
#ifdef _WIN32
    (void)bytes;
    if (!VirtualFree(begin, 0, MEM_RELEASE))
        abort();
#else
    if (munmap(begin, bytes) != 0)
        abort();
#endif
}

/* Lets reserved pages be read and written. At first, they are zero. */
static inline void allow_access(void *begin, size_t bytes) {
#ifdef _WIN32
    if (VirtualAlloc(begin, bytes, MEM_COMMIT, PAGE_READWRITE) == NULL)
        abort();
#else
    if (mprotect(begin, bytes, PROT_READ | PROT_WRITE) != 0)
        abort();
#endif
}

/* Loads a library and returns its handle, or NULL, after saying why. */
static inline void *open_library(const char *path) {
#ifdef _WIN32
    void *library = (void *)LoadLibraryA(path);
    if (library == NULL)
        fprintf(stderr, "%s: error %lu\n", path, GetLastError());
#else
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        fprintf(stderr, "%s\n", dlerror());
#endif
    return library;
}

/* Writes the address of a function to 'function', which points to a pointer to one: ISO C cannot
 * cast a pointer to an object to it. */
static inline void find_function(void *library, const char *name, void *function) {
#ifdef _WIN32
    FARPROC symbol = GetProcAddress((HMODULE)library, name);
#else
    void *symbol = dlsym(library, name);
#endif
    if (symbol == NULL) {
        fprintf(stderr, "the library has no %s\n", name);
        exit(EXIT_FAILURE);
    }
    memcpy(function, &symbol, sizeof symbol);
}

/* Returns whether it succeeded. */
static inline int close_library(void *library) {
#ifdef _WIN32
    return FreeLibrary((HMODULE)library) != 0;
#else
    return dlclose(library) == 0;
#endif
}

/* Returns the path of a file without symbolic links, for free(), or NULL. */
static inline char *full_path(const char *path) {
#ifdef _WIN32
    return _fullpath(NULL, path, 0);
#else
    return realpath(path, NULL);
#endif
}

/* Returns whether any part of a library is mapped into this process. 'path' is a full one. */
static inline int is_mapped(const char *path) {
#if defined(_WIN32)
    return GetModuleHandleA(path) != NULL;
#elif defined(__linux__)
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096 + 256];
    int found = 0;
    if (maps == NULL)
        abort();
    while (fgets(line, sizeof line, maps) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        const char *file = strchr(line, '/');
        found |= file != NULL && strcmp(file, path) == 0;
    }
    fclose(maps);
    return found;
#else
    void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (library != NULL)
        dlclose(library);
    return library != NULL;
#endif
}

/* Returns the bytes of this process that are in memory, or the most that ever were. */
static inline int64_t resident_bytes(void) {
#if defined(_WIN32)
    PROCESS_MEMORY_COUNTERS counters;
    if (!GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters))
        abort();
    return (int64_t)counters.WorkingSetSize;
#elif defined(__linux__)
    long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (statm == NULL || fscanf(statm, "%*d %ld", &pages) != 1)
        abort();
    fclose(statm);
    return (int64_t)pages * (int64_t)page_bytes();
#elif defined(__APPLE__)
    mach_task_basic_info_data_t info;
    mach_msg_type_number_t count = MACH_TASK_BASIC_INFO_COUNT;
    if (task_info(mach_task_self(), MACH_TASK_BASIC_INFO, (task_info_t)&info, &count) !=
        KERN_SUCCESS)
        abort();
    return (int64_t)info.resident_size;
#else
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0)
        abort();
    return (int64_t)usage.ru_maxrss * 1024;
#endif
}

#endif
