# frozen_string_literal: true

require "memprof/cli"
require "memprof/cli/target"

RSpec.describe Memprof::CLI::ProcessFacts do
  it "leaves the environment of the process out of #inspect" do
    skip "there is no /proc" unless File.readable?("/proc/self/environ")
    result = run_ruby(<<~'RUBY', env: { "TOKEN_OF_OTHERS" => "4711-secret" })
      require "memprof/cli"
      require "memprof/cli/target"
      facts = Memprof::CLI::ProcessFacts.new(Process.pid)
      p facts.environment("TOKEN_OF_OTHERS"), facts.inspect.include?("secret")
      target = Memprof::CLI::Target.new(Process.pid)
      target.signal
      p target.inspect.include?("secret")
    RUBY
    expect([result.stderr, result.stdout]).to eq(["", "\"4711-secret\"\nfalse\nfalse\n"])
  end
end
