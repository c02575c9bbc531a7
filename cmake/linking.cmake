# How the libraries are linked from what cargo builds.
#
#   functions   the header's functions, and those of a test build
#   c_flags     what tells the C compiler the system
#   linker      the C compiler as CMake would start it to link; its flags for shared libraries are in linker_flags
#   link_dir    where the files between cargo's and the libraries are
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS include/libsplit.h)
file(STRINGS include/libsplit.h functions REGEX "^(LIBSPLIT_API )?[a-z].*libsplit_[a-z_]+\\(")
list(FILTER functions EXCLUDE REGEX "^static inline ")
list(TRANSFORM functions REPLACE ".*(libsplit_[a-z_]+)\\(.*" "\\1")
list(FILTER functions INCLUDE REGEX "^libsplit_") # each semicolon has begun another item
if(LIBSPLIT_TEST_SWITCH)
    file(STRINGS src/copy/tests/switch.rs switches REGEX "fn libsplit_test_")
    list(TRANSFORM switches REPLACE ".*(libsplit_test_[a-z_]+).*" "\\1")
    list(APPEND functions ${switches})
endif()

separate_arguments(c_flags NATIVE_COMMAND "${CMAKE_C_COMPILER_ARG1} ${CMAKE_C_FLAGS}")
separate_arguments(linker_flags NATIVE_COMMAND "${CMAKE_SHARED_LINKER_FLAGS}")
if(CMAKE_C_COMPILER_TARGET)
    list(APPEND c_flags ${CMAKE_C_COMPILE_OPTIONS_TARGET}${CMAKE_C_COMPILER_TARGET})
elseif(CMAKE_OSX_ARCHITECTURES)
    list(APPEND c_flags -arch ${CMAKE_OSX_ARCHITECTURES})
endif()
if(CMAKE_SYSROOT)
    list(APPEND c_flags ${CMAKE_C_COMPILE_OPTIONS_SYSROOT}${CMAKE_SYSROOT})
endif()
if(CMAKE_OSX_SYSROOT)
    list(APPEND c_flags -isysroot ${CMAKE_OSX_SYSROOT})
endif()
if(CMAKE_OSX_DEPLOYMENT_TARGET)
    list(APPEND c_flags -mmacosx-version-min=${CMAKE_OSX_DEPLOYMENT_TARGET})
endif()
set(linker ${CMAKE_C_COMPILER} ${c_flags})

set(link_dir ${PROJECT_BINARY_DIR}/link)
file(MAKE_DIRECTORY ${link_dir}/static)
