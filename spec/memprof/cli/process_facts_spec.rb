# frozen_string_literal: true

require "memprof/cli"
require "tmpdir"

RSpec.describe Memprof::CLI::ProcessFacts do
  it "leaves the environment of the process out of #inspect" do
    skip "/proc is missing" unless File.readable?("/proc/self/environ")
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

  it "knows nothing about a process that has ended, and raises nothing" do
    skip "/proc is missing" unless File.readable?("/proc/self/environ")
    pid = spawn("sleep", "600")
    facts = described_class.new(pid)
    Process.kill(:KILL, pid)
    Process.wait(pid)
    expect(facts).not_to be_thread("sleep")
    expect([facts.name, facts.uid, facts.threads, facts.descendants]).to eq([nil, nil, [pid], []])
    expect(facts).not_to be_zombie
  end

  it "names a server as its title does, whatever it is at" do
    skip "/proc is missing" unless File.readable?("/proc/self/environ")
    result = run_ruby(<<~'RUBY')
      require "memprof/cli"
      ["sidekiq 6.4.1 shop [1 of 5 busy]", "puma: cluster worker 0: 4711 [shop]"].each do |title|
        Process.setproctitle(title)
        puts Memprof::CLI::ProcessFacts.new(Process.pid).name
      end
    RUBY
    expect([result.stderr, result.stdout]).to eq(["", "shop\nshop\n"])
  end

  it "reads no more than 4 MiB of an environment" do
    skip "/proc is missing" unless File.readable?("/proc/self/environ")
    env = (1..45).to_h { |number| ["PART_#{number}", "x" * 120_000] }
    pid = Process.spawn(env, "sleep", "1000", rlimit_stack: 64 << 20, unsetenv_others: true)
    sleep(0.001) until File.read("/proc/#{pid}/comm") == "sleep\n"
    expect(File.binread("/proc/#{pid}/environ").bytesize).to be > 5_000_000
    expect(described_class.new(pid).send(:read, "environ").bytesize).to eq(4 << 20)
  ensure
    if pid
      Process.kill(:KILL, pid)
      Process.wait(pid)
    end
  end

  it "finds the files of a process in another mount namespace, also when that has ended" do
    skip "needs unshare" unless system("unshare", "-m", "true", err: File::NULL)
    Dir.mktmpdir do |directory|
      code = "mount -t tmpfs none #{directory} && echo theirs > #{directory}/file && echo ready && " \
             "exec sleep 1000"
      IO.popen(["unshare", "-m", "sh", "-c", code]) do |output|
        expect(output.gets).to eq("ready\n")
        file = described_class.new(output.pid).files.entry(directory, "file")
        expect(file.open(&:read)).to eq("theirs\n")
        Process.kill(:KILL, output.pid)
        output.read
        file.open do |opened|
          expect(opened.read).to eq("theirs\n")
          file.remove(opened)
        end
        expect(file.stat).to be_nil
      ensure
        Process.kill(:KILL, output.pid) if output
      end
    end
  end
end
