# frozen_string_literal: true

require "fileutils"
require "json"
require "rbconfig"
require "tempfile"

# Runs rspec, and then each failed example once more, alone: if it passes there, it depends on load or order.
# It is listed as flaky, at the end and in the file FLAKY, and does not fail the task.
#
# A process of rspec runs some of the files only: an example that collects garbage, counts or dumps takes
# longer where more is loaded.
class SpecRun
  FLAKY = "tmp/flaky"
  FILES_IN_A_PROCESS = 30

  # Files that are listed by their time, if they take so many seconds.
  SLOWEST = 12
  LONG = 20

  # More failures than this are no accident.
  MOST_RETRIED = 20

  def initialize(paths, options, environment)
    @paths = paths
    @options = options
    @environment = environment
    @examples = []
    @crashed = false
  end

  def call
    failed = slices.filter_map { |files| run(*files, *@options) }.flatten
    say_sum
    abort("rspec failed before, after or outside of its examples, see above") if @crashed
    abort("no example ran") if @examples.empty?
    abort("#{failed.size} examples failed, too many to run once more") if failed.size > MOST_RETRIED

    flaky, broken = failed.partition { |id| passes_alone?(id) }
    report("flaky: failed, and passed when run alone", flaky)
    keep(flaky)
    return if broken.empty?

    report("failed twice", broken)
    abort
  end

  private

  def slices
    files = @paths.flat_map { |path| File.directory?(path) ? Dir["#{path}/**/*_spec.rb"] : [path] }
    files.uniq.sort.each_slice(FILES_IN_A_PROCESS)
  end

  # The ids of the examples that failed; nil if rspec succeeded, none if it failed for another reason.
  def run(*arguments)
    Tempfile.create(["rspec", ".json"]) do |file|
      formats = ["--format", "progress", "--format", "json", "--out", file.path]
      # Through `ruby -S`, so that the Ruby that runs rake runs the specs, too, wherever its rspec comes from.
      passed = system(@environment, RbConfig.ruby, "-S", "rspec", *arguments, *formats)
      failed = failed_in(file.read)
      @crashed = true if !passed && failed.empty?
      failed unless passed
    end
  end

  def failed_in(json)
    result = JSON.parse(json)
    @examples.concat(result.fetch("examples"))
    return [] if result.fetch("summary").fetch("errors_outside_of_examples_count").positive?

    failed = result.fetch("examples").select { |example| example.fetch("status") == "failed" }
    failed.map { |example| example.fetch("id") }
  rescue JSON::ParserError # rspec itself was killed
    []
  end

  def say_sum
    count = @examples.map { |example| example.fetch("status") }.tally
    puts("\nall files: #{@examples.size} examples, #{count.fetch("failed", 0)} failures, " \
         "#{count.fetch("pending", 0)} pending")
    files = @examples.group_by { |example| example.fetch("file_path") }
    times = files.transform_values { |examples| examples.sum { |example| example.fetch("run_time").to_f } }
    slowest = times.max_by(SLOWEST) { |_, time| time }.select { |_, time| time > LONG }
    puts("slowest files:", slowest.map { |file, time| format("%7.1f s  %s", time, file) }) if slowest.any?
  end

  def passes_alone?(id)
    puts("\n==> once more, alone: #{id}")
    run(id, *@options).nil?
  end

  def report(title, ids)
    return if ids.empty?

    puts("\n#{title}:", ids.map { |id| "  rspec '#{id}'" })
  end

  def keep(flaky)
    return if flaky.empty?

    FileUtils.mkdir_p(File.dirname(FLAKY))
    File.write(FLAKY, flaky.map { |id| "Ruby #{RUBY_VERSION}: #{id}\n" }.join, mode: "a")
  end
end

# RSpec's own rake task, which examples run in directories of their own, obeys the same variables.
FOR_THIS_TASK = { "SPEC" => nil, "SPEC_OPTS" => nil }.freeze

def rspec(*options, paths: ENV.fetch("SPEC", "spec").split, env: {})
  SpecRun.new(paths, [*options, *ENV.fetch("SPEC_OPTS", "").split], { **FOR_THIS_TASK, **env }).call
end

desc "Run the specs (SPEC=path/to_spec.rb:12 for one, SPEC_OPTS for more)"
task(:spec) { rspec }

desc "Run the specs tagged gc_stress with a garbage collection at every allocation"
task("spec:gc_stress") { rspec("--tag", "gc_stress", env: { "GC_STRESS" => "1" }) }

desc "Run the specs and accept what the commands print now as the new snapshots"
task("spec:snapshots") { rspec(env: { "UPDATE_SNAPSHOTS" => "1" }) }
