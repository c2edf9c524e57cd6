# frozen_string_literal: true

require "fileutils"
require "json"
require "rbconfig"
require "tempfile"

# Runs rspec, and then each failed example once more, alone: if it passes there, it depends on load or order.
# It is listed as flaky, at the end and in the file FLAKY, and does not fail the task.
class SpecRun
  FLAKY = "tmp/flaky"

  # Files that are listed by their time, if they take so many seconds.
  SLOWEST = 12
  LONG = 20

  # More failures than this are no accident.
  MOST_RETRIED = 20

  def initialize(arguments, environment)
    @arguments = arguments
    @environment = environment
  end

  def call
    failed = run(*@arguments) or return
    abort("rspec failed before, after or outside of its examples") if failed.empty?
    abort("#{failed.size} examples failed, too many to run once more") if failed.size > MOST_RETRIED

    flaky, broken = failed.partition { |id| passes_alone?(id) }
    report("flaky: failed, and passed when run alone", flaky)
    keep(flaky)
    return if broken.empty?

    report("failed twice", broken)
    abort
  end

  private

  # The ids of the examples that failed; nil if rspec succeeded, none if it failed for another reason.
  def run(*arguments)
    Tempfile.create(["rspec", ".json"]) do |result|
      formats = ["--format", "progress", "--format", "json", "--out", result.path]
      # Through `ruby -S`, so that the Ruby that runs rake runs the specs, too, wherever its rspec comes from.
      passed = system(@environment, RbConfig.ruby, "-S", "rspec", *arguments, *formats)
      text = result.read
      say_slowest(text)
      failed_in(text) unless passed
    end
  end

  # Where the time went.
  def say_slowest(json)
    files = JSON.parse(json).fetch("examples").group_by { |example| example.fetch("file_path") }
    times = files.transform_values { |examples| examples.sum { |example| example.fetch("run_time").to_f } }
    slowest = times.max_by(SLOWEST) { |_, time| time }.select { |_, time| time > LONG }
    puts("\nslowest files:", slowest.map { |file, time| format("%7.1f s  %s", time, file) }) if slowest.any?
  rescue JSON::ParserError # rspec itself was killed
    nil
  end

  def failed_in(json)
    result = JSON.parse(json)
    return [] if result.fetch("summary").fetch("errors_outside_of_examples_count").positive?

    failed = result.fetch("examples").select { |example| example.fetch("status") == "failed" }
    failed.map { |example| example.fetch("id") }
  rescue JSON::ParserError # rspec itself was killed
    []
  end

  def passes_alone?(id)
    puts("\n==> once more, alone: #{id}")
    run(id, *options).nil?
  end

  # Without the files: rspec would run them, too.
  def options
    @arguments.reject { |argument| argument.start_with?("spec/", "./spec/") }
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

def rspec(*arguments, env: {})
  SpecRun.new([*arguments, *ENV.fetch("SPEC_OPTS", "").split], { **FOR_THIS_TASK, **env }).call
end

desc "Run the specs (SPEC=path/to_spec.rb:12 for one, SPEC_OPTS for more)"
task(:spec) { rspec(*ENV.fetch("SPEC", "").split) }

desc "Run the specs tagged gc_stress with a garbage collection at every allocation"
task("spec:gc_stress") do
  rspec("--tag", "gc_stress", *ENV.fetch("SPEC", "").split, env: { "GC_STRESS" => "1" })
end

desc "Run the specs and accept what the commands print now as the new snapshots"
task("spec:snapshots") { rspec(*ENV.fetch("SPEC", "").split, env: { "UPDATE_SNAPSHOTS" => "1" }) }
