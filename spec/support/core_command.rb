# frozen_string_literal: true

require "json"
require "tmpdir"

# `memprof core` on a process with planted Strings, in a directory of the example's own.
RSpec.shared_context "with memprof core" do
  before do
    skip "processes are copied on Linux" unless RUBY_PLATFORM.include?("linux")
    skip "needs root, or the permission to trace any process" unless Process.euid.zero?
  end

  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  let(:planted) do
    <<~RUBY
      KEPT = Array.new(100) { |index| "k" * (20_000 + index) }
      Array.new(3) { Thread.new { sleep } }
      GC.start
      GC.disable
      puts "ready"
      $stdin.read
    RUBY
  end

  def core(*words, input: "")
    stdout, stderr, status = run_memprof("core", *words.map(&:to_s), input: input)
    expect(status.exitstatus).to eq(0), stderr
    expect(stderr).to eq("").or match(/\A\nNext:\n  (?:.*:\n    )?memprof core /)
    stdout
  end

  def json(*words) = JSON.parse(core("--json", *words))

  def expect_refusal(words, message)
    File.write("FILE", "text")
    stdout, stderr, status = run_memprof("core", *words)
    expect([stdout, stderr, status.exitstatus]).to eq(["", "memprof: #{message}\n", 2])
  end
end
