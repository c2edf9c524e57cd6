# frozen_string_literal: true

require "net/http"
require "memprof/agent"
require "memprof/agent/listener"

RSpec.describe Memprof::Agent::Listener do
  include AgentIntervals

  def get(url, path, **headers)
    Net::HTTP.start(URI(url).host.delete("[]"), URI(url).port, open_timeout: 30, read_timeout: 60) do |http|
      http.get(path, headers.transform_keys(&:to_s))
    end
  end

  after { @listener&.stop }

  it "serves this machine without a token" do
    @listener = described_class.new("127.0.0.1:0", token: nil).start
    expect(@listener.url).to eq("http://127.0.0.1:#{@listener.port}/")
    answer = get(@listener.url, "/metrics")
    expect([answer.code, answer.body]).to match(["200", include("memprof_gc_runs_total")])
    expect(get(@listener.url, "/metrics", Host: "attacker.example").code).to eq("403")
    url = @listener.url
    @listener.stop
    expect { get(url, "/metrics") }.to raise_error(Errno::ECONNREFUSED)
  end

  it "requires its token if it has one" do
    @listener = described_class.new("localhost:0", token: "a long token").start
    expect(get(@listener.url, "/metrics").code).to eq("404")
    expect(get(@listener.url, "/metrics", Authorization: "Bearer a long token").code).to eq("200")
  end

  it "listens to other machines with a token only" do
    expect { described_class.new("0.0.0.0:9394", token: nil) }
      .to raise_error(ArgumentError,
        "listen on 0.0.0.0 requires a token (MEMPROF_AGENT_TOKEN); without one, " \
                                     "expected an address of this machine, such as 127.0.0.1")
    expect { described_class.new("[::]:9394", token: "") }.to raise_error(ArgumentError, /requires a token/)
    expect {
      described_class.new("127.0.0.1:0", token: "short")
    }.to raise_error(ArgumentError, /8 characters/)
    expect { described_class.new("0.0.0.0:0", token: "a long token") }.not_to raise_error
  end

  it "refuses what is not an address with a port" do
    ["", "9394", "127.0.0.1", "127.0.0.1:65536", "example.com:80", "127.0.0.256:80", "::1:80",
      "/tmp/x"].each do |text|
      expect {
        described_class.address(text)
      }.to raise_error(ArgumentError, /\Alisten must be an address and a port/)
    end
    expect(described_class.address("[::1]:80")).to eq(["::1", 80])
  end

  it "takes a following port if others have the first, as the workers of a server do" do
    @listener = described_class.new("127.0.0.1:0", token: nil).start
    another = described_class.new("127.0.0.1:#{@listener.port}", token: nil).start
    expect(another.port).to be_between(@listener.port + 1, @listener.port + 64)
    expect(get(another.url, "/metrics").code).to eq("200")
  ensure
    another&.stop
  end

  it "ends at once although a request waits for a delta" do
    allow(Memprof::Agent).to receive(:running?).and_return(true)
    totals = totals_of(interval { Object.new })
    app = Memprof::Agent::Endpoints.new(gate: WebBrowser::Open.new, totals: totals, threads: 2)
    @listener = described_class.new("127.0.0.1:0", token: nil, app: app).start
    waiting = Thread.new { get(@listener.url, "/debug/pprof/heap?seconds=300").code }
    Timeout.timeout(60) { Thread.pass until app.waiting.positive? }
    @listener.stop
    expect(waiting.value).to eq("200")
  end

  it "leaves the port to the parent in the child of a fork" do
    @listener = described_class.new("127.0.0.1:0", token: nil).start
    pid = fork do
      @listener.after_fork
      exit!(@listener.url.nil? ? 0 : 1)
    end
    expect(Process.wait2(pid).last).to be_success
    expect(get(@listener.url, "/metrics").code).to eq("200")
  end
end
