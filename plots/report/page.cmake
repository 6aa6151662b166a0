# page.cmake - the report's page with its style and script, in which the title and the data are left to the program (page.c). A content
# security policy names both by their digests.

# report_digest(TEXT OUT): as the policy writes a digest, SHA-256 in base64
function(report_digest text out)
  string(SHA256 hex "${text}")
  string(REGEX REPLACE "(..)" "\\\\x\\1" bytes ${hex})
  execute_process(COMMAND printf ${bytes} COMMAND base64 OUTPUT_VARIABLE digest OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  set(${out} sha256-${digest} PARENT_SCOPE)
endfunction()

set(report_dir ${CMAKE_SOURCE_DIR}/plots/report)
set(report_parts page.css draw.js charts.js timeline.js page.js) # the scripts in the order in which they run
set(SCRIPT "")
foreach(part ${report_parts})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${report_dir}/${part})
  file(READ ${report_dir}/${part} text)
  if(part MATCHES "css$")
    set(STYLE "${text}")
  else()
    string(APPEND SCRIPT "${text}")
  endif()
endforeach()
report_digest("${STYLE}" STYLE_DIGEST)
report_digest("${SCRIPT}" SCRIPT_DIGEST)
set(report_template ${CMAKE_BINARY_DIR}/generated/report.html)
configure_file(${report_dir}/page.html ${report_template} @ONLY)
target_compile_definitions(hp_plots_report PRIVATE HPLAN_REPORT_TEMPLATE="${report_template}")
set_source_files_properties(plots/report/page.c PROPERTIES OBJECT_DEPENDS ${report_template}) # embedded
