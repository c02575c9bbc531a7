# The Debian packages that 'make deb' builds with CPack, one for each component: libsplit0, which
# programs need at run time; libsplit-dev, which is needed to build them; and libsplit0-dbgsym, for debuggers.
set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL runtime development debug)
set(CPACK_STRIP_FILES OFF) # they are stripped already

set(CPACK_PACKAGE_NAME libsplit)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "tensor Split of ONNX and OpenVINO")
set(CPACK_PACKAGE_CONTACT "The libsplit developers <libsplit@example.org>" CACHE STRING
    "The maintainer of the Debian packages")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SOURCE libsplit)

set(runtime_package libsplit${soversion})
set(same_runtime "${runtime_package} (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME ${runtime_package})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON) # libc6
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION
"libsplit splits tensors along an axis by the rules of ONNX Split and
SplitToSequence, OpenVINO VariadicSplit and Split: every version, every type
of elements, as views or as copies.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libsplit-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${same_runtime}")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION
"This package has the header of libsplit0, the static library, and files for
pkg-config and CMake.")
set(CPACK_DEBIAN_DEBUG_PACKAGE_NAME ${runtime_package}-dbgsym)
set(CPACK_DEBIAN_DEBUG_PACKAGE_SECTION debug)
set(CPACK_DEBIAN_DEBUG_PACKAGE_DEPENDS "${same_runtime}")
set(CPACK_DEBIAN_DEBUG_DESCRIPTION "debug symbols for ${runtime_package}")

# Files that only these packages contain.
set(debian_dir ${PROJECT_BINARY_DIR}/debian)
string(TIMESTAMP debian_date "%a, %d %b %Y %H:%M:%S +0000" UTC) # of SOURCE_DATE_EPOCH
configure_file(cmake/debian/changelog.in ${debian_dir}/changelog @ONLY)
execute_process(COMMAND gzip --best --no-name --stdout ${debian_dir}/changelog
                OUTPUT_FILE ${debian_dir}/changelog.Debian.gz)
foreach(component runtime development debug)
    string(TOUPPER ${component} upper)
    set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
    set(for_debian COMPONENT ${component} EXCLUDE_FROM_ALL)
    install(FILES cmake/debian/copyright ${debian_dir}/changelog.Debian.gz
            DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} ${for_debian})
    # This is no upload to Debian.
    file(WRITE ${debian_dir}/${component}.lintian-overrides "${package}: initial-upload-closes-no-bugs\n")
    install(FILES ${debian_dir}/${component}.lintian-overrides RENAME ${package}
            DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides ${for_debian})
endforeach()
file(WRITE ${debian_dir}/shlibs
     "libsplit ${soversion} ${runtime_package} (>= ${PROJECT_VERSION})\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA
    ${debian_dir}/shlibs ${PROJECT_SOURCE_DIR}/cmake/debian/triggers)
include(CPack)
