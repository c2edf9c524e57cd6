# frozen_string_literal: true

# A program: runs the examples of the API documentation, which come as JSON on stdin, each in a fork and a
# directory of its own, and prints those that fail. They share the loaded libraries and nothing else. Where a
# line of an example ends with `# => value`, its value must be that.
require "heap_dump"
require "json"
require "memprof"
require "memprof/cli"
require "memprof/middleware"
require "memprof/testing"
require "stringio"
require "tmpdir"
require_relative "promised"

# The examples start the agent.
ENV["MEMPROF_AGENT"] = "off"
require "memprof/agent"
ENV.delete("MEMPROF_AGENT")

# One piece of code, in a process of its own.
Snippet = Struct.new(:place, :kind, :code) do
  def failure
    out, out_writer = IO.pipe
    pid = fork do
      out.close
      $stdout.reopen(out_writer)
      $stderr.reopen(out_writer)
      Dir.mktmpdir { |directory| Dir.chdir(directory) { run } }
    end
    out_writer.close
    output = out.read
    Process.wait(pid)
    "#{place}\n#{output}" unless $?.success?
  end

  private

  def run
    case kind
    when "rspec" then run_rspec
    when "minitest" then run_minitest
    else eval(Promised.checked(code), TOPLEVEL_BINDING, "example.rb") # rubocop:disable Security/Eval
    end
  rescue StandardError, ScriptError => error
    abort("#{error.class}: #{error.message}\n#{error.backtrace.first}")
  end

  def run_rspec
    require "rspec/core"
    require "memprof/rspec"
    eval(code, TOPLEVEL_BINDING, "spec.rb") # rubocop:disable Security/Eval
    runner = RSpec::Core::Runner.new(RSpec::Core::ConfigurationOptions.new([]))
    status = runner.run_specs(RSpec.world.ordered_example_groups)
    abort("no example ran, or one failed") if status != 0 || RSpec.world.example_count.zero?
  end

  def run_minitest
    require "minitest"
    require "minitest/spec"
    require "memprof/minitest"
    eval(code, TOPLEVEL_BINDING, "test.rb") # rubocop:disable Security/Eval
    abort("a test failed") unless Minitest.run([])
  end
end

snippets = JSON.parse($stdin.read).map { |fields| Snippet.new(*fields) }
failures = snippets.filter_map(&:failure)
puts failures
exit failures.empty?
