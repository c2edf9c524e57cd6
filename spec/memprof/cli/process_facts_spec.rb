# frozen_string_literal: true

require "memprof/cli"
require "tmpdir"

RSpec.describe Memprof::CLI::ProcessFacts do
  it "leaves the environment of the process out of #inspect" do
    skip "there is no /proc" unless File.readable?("/proc/self/environ")
    result = run_ruby(<<~'RUBY', env: { "TOKEN_OF_OTHERS" => "4711-secret" })
      require "memprof/cli"
      facts = Memprof::CLI::ProcessFacts.new(Process.pid)
      p facts.environment("TOKEN_OF_OTHERS"), facts.inspect.include?("secret")
      target = Memprof::CLI::Target.new(Process.pid)
      target.signal
      p target.inspect.include?("secret")
    RUBY
    expect([result.stderr, result.stdout]).to eq(["", "\"4711-secret\"\nfalse\nfalse\n"])
  end

  it "finds the files of a process in another mount namespace, also when that has ended" do
    skip "needs unshare" unless system("unshare", "-m", "true", err: File::NULL)
    Dir.mktmpdir do |directory|
      code = "mount -t tmpfs none #{directory} && echo theirs > #{directory}/file && echo ready && " \
             "exec sleep 1000"
      IO.popen(["unshare", "-m", "sh", "-c", code]) do |output|
        expect(output.gets).to eq("ready\n")
        facts = described_class.new(output.pid)
        file = "#{facts.root}#{directory}/file"
        expect(File.read(file)).to eq("theirs\n")
        Process.kill(:KILL, output.pid)
        output.read
        expect(File.read("#{facts.root}#{directory}/file")).to eq("theirs\n")
        File.unlink(file)
      end
    end
  end
end
