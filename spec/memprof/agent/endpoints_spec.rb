# frozen_string_literal: true

require "memprof/agent"
require "rack"
require "socket"

RSpec.describe Memprof::Agent::Endpoints do
  include AgentIntervals
  include WebBrowser

  let(:totals) { totals_of(interval { $kept = Array.new(30) { Object.new } }) }
  let(:app) { described_class.new(gate: WebBrowser::Open.new, totals: totals) }

  after do
    $kept = nil
    app.close
  end

  # As it is without Rack::Lint.
  def call(app, path, query = "", **env)
    app.call({ "REQUEST_METHOD" => "GET", "PATH_INFO" => path, "QUERY_STRING" => query }.merge(env))
  end

  # One end is the server's, which lets go of it; the other is the client's.
  def hijacked(app, query)
    server, client = UNIXSocket.pair
    env = { "rack.hijack?" => true, "rack.hijack" => -> { server } }
    status, = call(app, "/debug/pprof/heap", query, **env)
    [client, status, server]
  end

  it "serves profiles as Go does" do
    %w[heap allocs].each do |name|
      answer = ask(app, "/debug/pprof/#{name}")
      expect(answer.status).to eq(200)
      expect(answer.headers).to include("content-type" => "application/octet-stream",
        "content-disposition" => %(attachment; filename="#{name}.pb.gz"))
      expect(Zlib.gunzip(answer.body.b)).to include("inuse_space".b, "Object".b)
    end
    expect(ask(app, "/debug/pprof/heap", method: "HEAD").body).to eq("")
  end

  it "serves metrics in the format that is accepted" do
    answer = ask(app, "/metrics")
    expect(answer.headers["content-type"]).to eq("text/plain; version=0.0.4; charset=utf-8")
    expect(answer.body).to include("# TYPE memprof_gc_seconds_total counter")
    answer = ask(app, "/metrics", headers: { "Accept" => "application/openmetrics-text" })
    expect(answer.headers["content-type"]).to start_with("application/openmetrics-text; version=1.0.0")
    expect(answer.body).to end_with("# EOF\n")
  end

  it "says when there is no profile yet" do
    app = described_class.new(gate: WebBrowser::Open.new, totals: Memprof::Agent::Totals.new)
    expect(ask(app, "/debug/pprof/heap").status).to eq(503)
    expect(ask(app, "/debug/pprof/heap?seconds=100").body).to eq("the agent is not running\n")
    expect(ask(app, "/metrics").status).to eq(200)
    allow(Memprof::Agent).to receive_messages(running?: true, settings: { interval: 30 })
    expect(ask(app, "/debug/pprof/heap").headers["retry-after"]).to eq("30")
  end

  it "refuses what it does not have" do
    expect(ask(app, "/debug/pprof/goroutine").status).to eq(404)
    expect(ask(app, "/metrics", method: "POST").status).to eq(405)
    %w[0 301 -1 x 1e3].each { |value|
      expect(ask(app, "/debug/pprof/heap?seconds=#{value}").status).to eq(400)
    }
    cascade = ask(app, "/").headers.transform_keys(&:downcase)
    expect(cascade["x-cascade"]).to eq("pass")
  end

  it "reveals nothing if it fails" do
    allow(totals).to receive(:pprof).and_raise("secret\nof many lines")
    errors = StringIO.new
    status, _, body = call(app, "/debug/pprof/heap", "rack.errors" => errors)
    expect([status, body]).to eq([500, ["internal error in memprof (please report it)\n"]])
    expect(errors.string).to include("RuntimeError").and(satisfy { |text| text.lines.size == 1 })
  end

  describe "access" do
    let(:gate) {
      Memprof::Web::Gate::Mounted.new({}, variable: "MEMPROF_AGENT_TOKEN", owner: described_class.name)
    }
    let(:app) { described_class.new(gate: gate, totals: totals) }
    let(:paths) { %w[/metrics /debug/pprof/heap /debug/pprof/allocs?seconds=9 /nothing] }

    it "is denied by default, as if nothing was there" do
      expect(paths.map { |path| ask(app, path).status }).to all(eq(404))
      expect(paths.map { |path| ask(app, path).body }.uniq).to eq(["Not found\n"])
      expect(ask(described_class, "/metrics").status).to eq(404)
    end

    it "says once in the log that nothing grants it" do
      said = StringIO.new
      call(app, "/nothing", "rack.errors" => said)
      expect(said.string).to eq("")
      2.times { call(app, "/metrics", "rack.errors" => said) }
      expect(said.string).to eq("memprof: /metrics answers 404, as no request is permitted: call " \
                                "Memprof::Agent::Endpoints.permit, or set MEMPROF_AGENT_TOKEN\n")
      gate.token = "a long token"
      app = described_class.new(gate: gate, totals: totals)
      call(app, "/metrics", "rack.errors" => said)
      expect(said.string.lines.size).to eq(1)
    end

    it "is granted by a block, but not by one that raises" do
      gate.permit { |env| env["HTTP_X_INSIDE"] == "yes" }
      expect(ask(app, "/metrics").status).to eq(404)
      expect(ask(app, "/metrics", headers: { "X-Inside" => "yes" }).status).to eq(200)
      gate.permit { raise "no" }
      expect(ask(app, "/metrics").status).to eq(404)
    end

    it "is granted by a token, which is compared in constant time" do
      gate.token = "a long token"
      expect(Memprof::Web::Secret).to receive(:same?).at_least(:once).and_call_original
      expect(ask(app, "/metrics", headers: { "Authorization" => "Bearer a long token" }).status).to eq(200)
      expect(ask(app, "/metrics", headers: { "Authorization" => "Bearer a long tokeN" }).status).to eq(404)
      expect(ask(app, "/metrics", headers: { "Authorization" => "a long" }).status).to eq(404)
    end

    it "may have its token in the environment" do
      variables = { "MEMPROF_AGENT_TOKEN" => "from the environment", "MEMPROF_WEB_TOKEN" => "another one" }
      gate = Memprof::Web::Gate::Mounted.new(variables, variable: "MEMPROF_AGENT_TOKEN")
      app = described_class.new(gate: gate, totals: totals)
      bearer = ->(token) { ask(app, "/metrics", headers: { "Authorization" => "Bearer #{token}" }).status }
      expect([bearer.("from the environment"), bearer.("another one")]).to eq([200, 404])
    end
  end

  describe "deltas" do
    before { allow(Memprof::Agent).to receive(:running?).and_return(true) }

    # Those that wait, apart from the application.
    def threads = Thread.list.count { |thread| thread.name == "memprof delta" }

    # Head and uncompressed body.
    def answer_of(client)
      raw = client.read
      head, body = raw.split("\r\n\r\n", 2)
      [head, body && Zlib.gunzip(body)]
    ensure
      client.close
    end

    it "are what was measured meanwhile, apart from the application" do
      client, status, = hijacked(app, "seconds=1")
      expect(status).to eq(-1)
      totals.add(interval(at: 1_700_000_060) { run_as("Array.new(5) { Object.new }", "late.rb") })
      head, message = answer_of(client)
      expect(head).to start_with("HTTP/1.1 200 OK\r\n").and(include("connection: close", "content-length: "))
      expect(message).to include("late.rb".b)
    end

    it "are empty if no interval ended" do
      client, = hijacked(app, "seconds=1")
      expect(answer_of(client).last).not_to include(__FILE__.b)
    end

    it "wait in a thread of the server if it can't let go of the connection, but few do" do
      first = Thread.new { call(app, "/debug/pprof/allocs", "seconds=300") }
      Timeout.timeout(30) { Thread.pass until first.stop? }
      status, headers, = call(app, "/debug/pprof/allocs", "seconds=7")
      expect([status, headers["retry-after"]]).to eq([503, "7"])
      expect(call(app, "/debug/pprof/allocs").first).to eq(200)
      app.close
      expect(first.value.first).to eq(200)
    end

    it "are bounded in number, and end with their clients" do
      clients = Array.new(100) { hijacked(app, "seconds=300") }
      taken = clients.count { |_, status, _| status == -1 }
      expect(taken).to eq(Memprof::Agent::Deltas::MOST)
      expect(clients.map { |_, status, _| status }.tally[503]).to eq(100 - taken)
      # One of an earlier example may still be about to end.
      Timeout.timeout(60) { Thread.pass until threads == taken }
      started = Memprof::Clock.now
      expect(call(app, "/metrics").first).to eq(200)
      expect(Memprof::Clock.now - started).to be < 10
      clients.each { |client, _, _| client.close }
      Timeout.timeout(60) { Thread.pass while threads.positive? }
      client, status, = hijacked(app, "seconds=1")
      expect(status).to eq(-1)
      expect(answer_of(client).first).to start_with("HTTP/1.1 200")
    end

    it "wait neither for a client that does not read nor for one that talks" do
      stub_const("Memprof::Agent::Deltas::PATIENCE", 0.2)
      allow(totals).to receive(:difference).and_return("x" * 5_000_000)
      hijacked(app, "seconds=1") => [client, *]
      talker, = hijacked(app, "seconds=300")
      talk = Thread.new do
        loop { talker.write("x" * 4096) }
      rescue SystemCallError, IOError
        nil
      end
      Timeout.timeout(60) { Thread.pass while threads.positive? }
      talk.join
      client.close
    end

    it "leave their connections to the parent in the child of a fork" do
      client, _, server = hijacked(app, "seconds=2")
      reader, writer = IO.pipe
      pid = fork do
        writer.write([server.closed?, hijacked(app, "seconds=300")[1]].inspect)
        exit!(0)
      end
      Process.wait(pid)
      writer.close
      expect(reader.read).to eq("[true, -1]")
      expect(answer_of(client).first).to start_with("HTTP/1.1 200")
    end
  end

  it "answers a hundred at once with one copy, and holds up no other request" do
    large = totals_of(interval { run_as("Object.new\n" * 2000, "/srv/app.rb") })
    app = described_class.new(gate: WebBrowser::Open.new, totals: large)
    bodies = Array.new(100) { Thread.new { call(app, "/debug/pprof/heap").last.first } }.map(&:value)
    expect(bodies.map(&:object_id).uniq.size).to eq(1)
  end
end
