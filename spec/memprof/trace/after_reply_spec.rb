# frozen_string_literal: true

require "memprof/tracer"

RSpec.describe Memprof::Trace::AfterReply do
  let(:reply) { [200, { "content-type" => "text/plain" }, ["hello"]] }
  let(:done) { [] }
  let(:line) do
    Struct.new(:done, :name) do
      def write = done << name
    end
  end

  def defer(env, reply = self.reply, name = :ours)
    described_class.defer(env, reply, line.new(done, name))
  end

  it "is called behind the reply, before what the app has left there" do
    puma = { "rack.after_reply" => [-> { done << :app }] }
    expect(defer(puma)).to be(true)
    expect(done).to eq([])
    puma["rack.after_reply"].each(&:call)
    expect(done).to eq(%i[ours app])
  end

  it "is called as Rack 3.1 has it: from the end, with four arguments, whatever became of the reply" do
    rack = { "rack.response_finished" => [->(*) { done << :app }], "rack.after_reply" => [] }
    expect(defer(rack)).to be(true)
    expect(rack["rack.after_reply"]).to eq([])
    rack["rack.response_finished"].reverse_each { |work| work.call(rack, 200, {}, IOError.new("gone")) }
    expect(done).to eq(%i[ours app])
  end

  {
    "a server that offers nothing" => {},
    "a frozen list" => { "rack.after_reply" => [].freeze },
    "something else under that name" => { "rack.response_finished" => -> {} },
    "a connection that the app took over" => { "rack.after_reply" => [], "rack.hijack_io" => $stdin }
  }.each do |name, env|
    it "leaves it to the caller with #{name}" do
      before = env.transform_values(&:dup)
      expect(defer(env)).to be(false)
      described_class.finish
      expect(done).to eq([])
      expect(env["rack.after_reply"]).to eq(before["rack.after_reply"])
    end
  end

  {
    "a body that may go on" => [200, {}, [1].each],
    "a body that writes to the client itself" => [200, {}, ->(_stream) {}],
    "headers that ask for the connection" => [200, { "rack.hijack" => ->(_io) {} }, []],
    "headers in another form" => [200, [], []],
    "what is no reply" => :async
  }.each do |name, reply|
    it "leaves it to the caller with #{name}" do
      env = { "rack.after_reply" => [] }
      expect(defer(env, reply)).to be(false)
      expect(env["rack.after_reply"]).to eq([])
    end
  end

  it "is done once, by the first caller" do
    env = { "rack.after_reply" => [] }
    defer(env)
    env["rack.after_reply"].first.call
    env["rack.after_reply"].first.call
    described_class.catch_up
    described_class.finish
    expect(done).to eq([:ours])
  end

  it "says what goes wrong, and continues" do
    broken = Object.new
    def broken.write = raise(KeyError, "no name")
    described_class.defer({ "rack.after_reply" => [] }, reply, broken)
    defer({ "rack.after_reply" => [] })
    expect {
      described_class.catch_up
    }.to output("memprof: the trace is lost: no name (KeyError)\n").to_stderr
    expect(done).to eq([:ours])
  end

  it "is done before the thread's next request if the server forgot it, and not by another thread" do
    defer({ "rack.after_reply" => [] })
    Thread.new { described_class.catch_up }.join
    expect(done).to eq([])
    described_class.catch_up
    expect(done).to eq([:ours])
  end

  it "is done by any thread if its own is gone" do
    Thread.new { defer({ "rack.after_reply" => [] }) }.join
    described_class.catch_up
    expect(done).to eq([:ours])
  end

  it "is done at the end of the process, and not by a child that it has" do
    result = run_ruby(<<~RUBY)
      require "memprof/tracer"
      $stdout.sync = true
      line = Object.new
      def line.write = print("done")
      Memprof::Trace::AfterReply.defer({ "rack.after_reply" => [] }, [200, {}, []], line)
      Process.wait(fork { Memprof::Trace::AfterReply.catch_up })
    RUBY
    expect([result.stdout, result.stderr]).to eq(["done", ""])
  end
end
