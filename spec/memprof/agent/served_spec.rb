# frozen_string_literal: true

require "memprof/agent"
require "tmpdir"

RSpec.describe "Memprof::Agent::Served" do
  include AgentIntervals

  let(:log) { double("log", info: nil, warn: nil) }
  let(:directory) { Dir.mktmpdir("memprof-spec-") }

  before { Memprof::Agent.labels } # loads all parts

  after { FileUtils.rm_rf(directory) }

  def served(**settings) = Memprof::Agent::Served.new(settings, log: log)

  it "opens nothing unasked" do
    before = [Thread.list.size, Memprof::Agent.subscriptions.size]
    parts = served(listen: nil, profiles: nil)
    parts.start
    expect([Thread.list.size, Memprof::Agent.subscriptions.size]).to eq(before)
    expect(parts.url).to be_nil
    parts.stop
  end

  it "listens, and writes files, until it ends" do
    parts = served(listen: "127.0.0.1:0", profiles: File.join(directory, "profiles"))
    parts.start
    expect(log).to have_received(:info).with("listens on #{parts.url}")
    Memprof::Agent.subscriptions.last.call(interval { Object.new })
    expect(Dir.children(File.join(directory, "profiles")).size).to eq(1)
    url = URI(parts.url)
    subscriptions = Memprof::Agent.subscriptions.size
    parts.stop
    expect { TCPSocket.new(url.host, url.port).close }.to raise_error(Errno::ECONNREFUSED)
    expect(Memprof::Agent.subscriptions.size).to eq(subscriptions - 1)
  end

  it "logs what it can't do, and leaves the agent alone" do
    served(listen: "0.0.0.0:1", profiles: nil).start
    expect(log).to have_received(:warn).with(/requires a token/)
    served(listen: "nowhere", profiles: nil).start
    expect(log).to have_received(:warn).with(/\Alisten must be an address/)
  end
end
