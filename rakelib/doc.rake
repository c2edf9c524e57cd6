# frozen_string_literal: true

require "open3"
require "rbconfig"

desc "Write the API documentation to doc/; fails on a warning, and on a public name without a word"
task :doc do
  next unless checker?("yard")

  yard = [RbConfig.ruby, "-S", "yard"]
  sh(*yard, "doc", "--fail-on-warning", "--no-progress", "--no-stats")
  # spec/docs_spec.rb runs the examples.
  statistics, = Open3.capture2(*yard, "stats", "--list-undoc", "--compact", "--no-progress")
  puts(statistics)
  abort("undocumented public names, see above") unless statistics.include?("100.00% documented")
end
