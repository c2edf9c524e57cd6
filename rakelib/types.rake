# frozen_string_literal: true

require "json"
require "rbconfig"
require "tempfile"

# RBS comes with Ruby as a bundled gem, on Debian without a command on PATH.
RBS = [RbConfig.ruby, "-e", 'load Gem.bin_path("rbs", "rbs")', "--"].freeze

# Specs that call most of the public API. Examples tagged `untyped` repeat a block until its growth is clear.
# That takes a minute each, as rbs's own objects grow as well, and other examples call the same methods.
TYPED = %w[
  compat/filter compat/heap_dump compat/memdump compat/sheap growth heap/diff heap/object heap/objects
  iseqs middleware minitest report report/site rspec/allocate_at_most rspec/leak_objects
  rspec/limit_allocations rspec/perform_allocation trace tracer tracers
].map { |name| "spec/memprof/#{name}_spec.rb" }.push("spec/memprof_spec.rb").freeze

# The failures that are about types, as lines. Others are not counted: rbs itself allocates objects, and it
# renames methods.
def type_errors(specs)
  environment = { "RBS_TEST_TARGET" => "Memprof,Memprof::*,HeapDump", "RBS_TEST_OPT" => "-I sig",
                  "RBS_TEST_LOGLEVEL" => "error", "RBS_TEST_DOUBLE_SUITE" => "rspec" }
  Tempfile.create(["types", ".json"]) do |result|
    system(environment, RbConfig.ruby, "-rrbs/test/setup", "-S", "rspec", *specs, "--tag", "~untyped",
      "--format", "json", "--out", result.path)
    examples = JSON.parse(result.read).fetch("examples")
    abort("no spec ran") if examples.empty?

    examples.filter_map do |example|
      next unless example.dig("exception", "class") == "RBS::Test::Tester::TypeError"

      "#{example["file_path"]}:#{example["line_number"]}: #{example.dig("exception", "message")}"
    end
  end
end

desc "Validate the signatures in sig/, and check them against the values that specs pass and get"
task(:types) do
  sh(*RBS, "-I", "sig", "validate", "--silent")
  errors = type_errors(TYPED)
  abort("signatures do not fit the code:\n#{errors.join("\n")}") if errors.any?
end
