# page.cmake - puts the style, the scripts and their digests into the report's template. The content security policy of the page admits
# what has these digests. page.c adds the title and the data.

# report_digest(TEXT OUT): SHA-256 in base64, as the policy writes it
function(report_digest text out)
  string(SHA256 hex "${text}")
  string(REGEX REPLACE "(..)" "\\\\x\\1" bytes ${hex})
  execute_process(COMMAND printf ${bytes} COMMAND base64 OUTPUT_VARIABLE digest OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  set(${out} sha256-${digest} PARENT_SCOPE)
endfunction()

set(report_dir ${CMAKE_SOURCE_DIR}/plots/report)
set(report_template ${CMAKE_BINARY_DIR}/generated/report.html)
file(READ ${report_dir}/page.css STYLE)
set(SCRIPT "")
foreach(part draw charts timeline page) # in the order in which they run
  file(READ ${report_dir}/${part}.js text)
  string(APPEND SCRIPT "${text}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${report_dir}/${part}.js)
endforeach()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${report_dir}/page.css)
report_digest("${STYLE}" STYLE_DIGEST)
report_digest("${SCRIPT}" SCRIPT_DIGEST)
configure_file(${report_dir}/page.html ${report_template} @ONLY)
target_compile_definitions(hp_plots_report PRIVATE HPLAN_REPORT_TEMPLATE="${report_template}")
set_source_files_properties(plots/report/page.c PROPERTIES OBJECT_DEPENDS ${report_template}) # embedded
