# Keeps what debuggers need of LIBRARY in a file below DIRECTORY, where they look for it by the library's build-id:
# .build-id/XX/YYYY.debug. A script for cmake -P.
execute_process(COMMAND ${READELF} -n ${LIBRARY} OUTPUT_VARIABLE notes COMMAND_ERROR_IS_FATAL ANY)
if(NOT notes MATCHES "Build ID: ([0-9a-f][0-9a-f])([0-9a-f]+)")
    message(FATAL_ERROR "${LIBRARY} has no build-id")
endif()
set(directory ${DIRECTORY}/.build-id/${CMAKE_MATCH_1})
set(file ${directory}/${CMAKE_MATCH_2}.debug)
if(NOT EXISTS ${file})
    file(REMOVE_RECURSE ${DIRECTORY})
    file(MAKE_DIRECTORY ${directory})
    execute_process(COMMAND ${OBJCOPY} --only-keep-debug ${LIBRARY} ${file} COMMAND_ERROR_IS_FATAL ANY)
endif()
