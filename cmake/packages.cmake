# Builds the other packages of this repository, which have their own requirements: only on request, and they are
# installed only if their component is requested.
set(package_profile $<IF:$<CONFIG:Debug>,dev,release>)
set(package_out ${rust_target}/$<IF:$<CONFIG:Debug>,debug,release>)

# The adapter for ONNX Runtime.
set(adapter_lib
    ${CMAKE_SHARED_LIBRARY_PREFIX}split_onnxruntime${CMAKE_SHARED_LIBRARY_SUFFIX})
set(adapter_dir ${PROJECT_BINARY_DIR}/cargo-onnxruntime)
add_custom_target(libsplit-onnxruntime
    COMMAND ${cargo} build --locked ${cargo_flags} --profile ${package_profile} --target-dir ${adapter_dir}
    COMMAND ${stage} ${adapter_dir}/${package_out}/${adapter_lib} ${stage_dir}
    BYPRODUCTS ${stage_dir}/${adapter_lib}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}/adapters/onnxruntime
    COMMENT "Building the adapter for ONNX Runtime with cargo"
    COMMAND_EXPAND_LISTS USES_TERMINAL VERBATIM)

# The command-line tool, and the files that it generates.
set(tool libsplit${CMAKE_EXECUTABLE_SUFFIX})
set(tool_stage ${PROJECT_BINARY_DIR}/cli)
set(tool_dir ${PROJECT_BINARY_DIR}/cargo-cli)
set(tool_run ${tool_stage}/bin/${tool})
set(completions ${tool_stage}/share)
add_custom_target(libsplit-cli
    COMMAND ${cargo} build --locked ${cargo_flags} --profile ${package_profile} --target-dir ${tool_dir}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${tool_stage}/bin
            ${completions}/bash-completion/completions ${completions}/zsh/site-functions
            ${completions}/fish/vendor_completions.d
    COMMAND ${stage} ${tool_dir}/${package_out}/${tool} ${tool_stage}/bin
    COMMAND ${tool_run} man ${tool_stage}/man1
    COMMAND ${tool_run} completion bash > ${completions}/bash-completion/completions/libsplit
    COMMAND ${tool_run} completion zsh > ${completions}/zsh/site-functions/_libsplit
    COMMAND ${tool_run} completion fish > ${completions}/fish/vendor_completions.d/libsplit.fish
    BYPRODUCTS ${tool_run}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}/cli
    COMMENT "Building the command-line tool with cargo"
    COMMAND_EXPAND_LISTS USES_TERMINAL VERBATIM)

if(LIBSPLIT_INSTALL)
    install(PROGRAMS ${stage_dir}/${adapter_lib} DESTINATION ${shared_dir}
            COMPONENT onnxruntime EXCLUDE_FROM_ALL)
    set(of_tool COMPONENT tool EXCLUDE_FROM_ALL)
    install(DIRECTORY ${tool_stage}/bin/ DESTINATION ${CMAKE_INSTALL_BINDIR} USE_SOURCE_PERMISSIONS
            ${of_tool})
    install(DIRECTORY ${tool_stage}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} ${of_tool})
    install(DIRECTORY ${completions}/ DESTINATION ${CMAKE_INSTALL_DATADIR} ${of_tool})
endif()
