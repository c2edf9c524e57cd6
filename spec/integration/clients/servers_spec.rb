# frozen_string_literal: true

# The servers of the other specs of this directory.
RSpec.describe Servers do
  before(:all) { need(server: :redis) }

  # Starts a server in a process of its own, and gives its process id when that has ended.
  def started(code)
    stdout, stderr, = run_ruby(<<~RUBY)
      require #{File.join(ChildRuby::ROOT, "spec/support/servers").inspect}
      $stdout.sync = true
      server = Servers[:redis]
      raise "one is enough" unless Servers[:redis].equal?(server)

      puts server.pid, server.directory
      #{code}
    RUBY
    expect(stderr).to eq("")
    stdout.lines(chomp: true)
  end

  def running?(pid)
    # One that has ended and was not waited for is a zombie.
    File.read("/proc/#{pid}/stat")[/\) (\w)/, 1] != "Z"
  rescue Errno::ENOENT, Errno::ESRCH # between the opening of the file and its reading
    false
  end

  it "end with the suite, and leave nothing" do
    pid, directory, left = started("Process.wait(fork { exit }); puts Process.kill(0, server.pid)")
    expect(left).to eq("1"), "a forked process ended it"
    expect(running?(pid)).to be(false)
    expect(File.exist?(directory)).to be(false)
  end

  it "end when the suite is killed" do
    skip "setpriv is not installed" unless Servers::Server.path("setpriv")
    pid, directory = started("Process.kill(:KILL, Process.pid)")
    eventually("the end of the server") { !running?(pid) }
  ensure
    FileUtils.rm_rf(directory) if directory
  end

  it "run as an unprivileged user" do
    pid = Servers[:redis].pid
    expect(File.stat("/proc/#{pid}").uid).not_to eq(0)
  end

  describe "#need" do
    before { allow(described_class).to receive(:obstacle).and_return("redis-server is not installed") }

    # What an example is, as far as it matters.
    let(:example) do
      Class.new do
        include Servers

        def skip(reason)
          throw(:skipped, reason)
        end
      end.new
    end

    it "skips what can't be run" do
      stub_const("ENV", ENV.to_h.merge("CI" => nil))
      expect(catch(:skipped) { example.need(server: :redis) }).to eq("redis-server is not installed")
    end

    it "fails where CI must have it" do
      stub_const("ENV", ENV.to_h.merge("CI" => "true"))
      stub_const("RUBY_VERSION", "3.1.9")
      expect {
        example.need(server: :redis)
      }.to raise_error(RuntimeError, /CI must have this: redis-server is/)
    end
  end
end
