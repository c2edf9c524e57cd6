# frozen_string_literal: true

require "fileutils"
require "json"
require "net/http"
require "tmpdir"

# Memprof::Web in applications that run: a server with threads, one with several processes, Rails.
RSpec.describe "Memprof::Web in an application" do
  rackup = <<~'RUBY'
    require "memprof/web"
    Memprof::Web.permit { |env| env["HTTP_X_USER"] == "admin" }
    use Memprof::Web::Tracing
    map("/memprof") { run Memprof::Web }
    KEPT = []
    LOCK = Mutex.new
    run(lambda do |env|
      LOCK.synchronize { 20.times { KEPT << Object.new } } # kept
      [200, { "content-type" => "text/plain" }, [Process.pid.to_s]]
    end)
  RUBY
  admin = { "X-User" => "admin" }
  own = admin.merge("Sec-Fetch-Site" => "same-origin")

  let(:directory) { Dir.mktmpdir("memprof-spec-") }
  let(:line) { rackup.lines.index { |text| text.include?("# kept") } + 1 }

  after { FileUtils.rm_rf(directory) }

  # Runs puma with the application, gives its port to the block, and stops it; gives what it printed.
  def serve(rackup, *arguments, workers: 0)
    path = File.join(directory, "config.ru")
    File.write(path, rackup)
    command = [RbConfig.ruby, "-I#{ChildRuby::LIB}", "-e", "require 'puma/cli'; Puma::CLI.new(ARGV).run",
      "--", "--workers", workers.to_s, *arguments, "--bind", "tcp://127.0.0.1:0",
      "--environment", "production", path]
    log = +""
    IO.popen({ "RUBYOPT" => nil, "MEMPROF_DIR" => directory }, command, err: [:child, :out]) do |server|
      ready = -> { log =~ %r{Listening on http://127.0.0.1:(\d+)} && log.scan(/Worker \d+ .*booted/).size == workers }
      log << (server.gets || raise("puma does not start:\n#{log}")) until ready.call
      yield(log[%r{http://127.0.0.1:(\d+)}, 1].to_i)
    ensure
      log << stop_puma(server)
    end
    log
  end

  # Each request by a connection of its own, so that any worker may answer.
  def get(port, path, headers = {})
    Net::HTTP.start("127.0.0.1", port) { |http| http.get(path, headers) }
  end

  def post(port, path, headers, **form)
    Net::HTTP.start("127.0.0.1", port) { |http| http.post(path, URI.encode_www_form(form), headers) }
  end

  # Where a page leads to; nil while it waits.
  def redirect(port, path, headers)
    answer = get(port, path, headers)
    raise answer.body unless ["202", "303"].include?(answer.code)

    answer["location"]
  end

  before(:all) do
    require "puma"
  rescue LoadError
    skip "puma is not installed"
  end

  it "shows nothing to who is not permitted" do
    log = serve(rackup, "--threads", "2:2") do |port|
      ["/memprof", "/memprof/", "/memprof/live", "/memprof/live.json", "/memprof/assets/x"].each do |path|
        expect(get(port, path).code).to eq("404"), path
      end
      expect(post(port, "/memprof/live/dumps", { "Sec-Fetch-Site" => "same-origin" }).code).to eq("404")
      expect(get(port, "/memprof", admin)["location"]).to eq("/memprof/live")
      expect(post(port, "/memprof/live/dumps", admin).code).to eq("403")
      expect(Dir.children(directory)).to eq(["config.ru"])
    end
    expect(log).not_to match(/error|warn/i)
  end

  it "tracks, dumps and traces beside the requests of many threads" do
    log = serve(rackup, "--threads", "5:5") do |port|
      expect(post(port, "/memprof/live/tracking/start", own)["location"]).to include("done=started")
      post(port, "/memprof/live/requests", own, count: "40")
      clients = Array.new(4) { Thread.new { Array.new(30) { get(port, "/").code } } }
      place = post(port, "/memprof/live/dumps", own)["location"]
      expect(clients.flat_map(&:value).uniq).to eq(["200"])
      # A request is traced when it is through, which may be a moment after its client has the answer.
      live = eventually("the last of the traces") do
        all = JSON.parse(get(port, "/memprof/live.json", admin).body)
        all if all["requests"]["traced"] >= 40
      end
      row = live["tracking"]["rows"].find { |found| found["class"] == "Object" && found["line"] == line }
      expect(row).to include("count" => 2400, "file" => end_with("config.ru"))
      expect(live["requests"]).to include("wanted" => 40, "left" => 0, "traced" => 40)
      requests = JSON.parse(get(port, "/memprof/live/requests.json", admin).body)["rows"]
      expect(requests.map { |request| request["action"] }.uniq).to eq(["GET /"])
      heap = eventually("the dump") { redirect(port, place, admin) }
      overview = eventually("the heap") do
        answer = get(port, "#{heap.chomp("/")}.json", admin)
        answer if answer.code == "200"
      end
      expect(JSON.parse(overview.body)["overview"]["process"]["pid"]).to eq(live["process"]["pid"])
      expect(post(port, "/memprof/live/tracking/stop", own)["location"]).to include("done=stopped")
    end
    expect(log).not_to match(/error|warn|SEGV/i)
  end

  [[], ["--preload"]].each do |arguments|
    it "has each worker answer for itself, and all see the dumps #{arguments.join}" do
      log = serve(rackup, "--threads", "2:2", *arguments, workers: 2) do |port|
        done = post(port, "/memprof/live/tracking/start", own)["location"]
        tracking = Hash.new { |all, pid| all[pid] = [] }
        eventually("an answer of both") do
          live = JSON.parse(get(port, "/memprof/live.json", admin).body)
          tracking[live["process"]["pid"]] << live["tracking"]["running"]
          tracking.size == 2 && tracking.values.all? { |answers| answers.size >= 3 }
        end
        pid = done[/pid=(\d+)/, 1].to_i
        expect(tracking.transform_values(&:uniq)).to eq(tracking.keys.to_h { |key| [key, [key == pid]] })
        if File.readable?("/proc/self/smaps")
          server = JSON.parse(get(port, "/memprof/live/memory.json", admin).body)["cluster"]
          expect(server["processes"].map { |process| process["pid"] } - tracking.keys).to eq([server["pid"]])
          expect(get(port, "/memprof/live/memory", admin).body).to match(/<h2>The server<.*3 processes take/m)
        end
        place = post(port, "/memprof/live/dumps", own)["location"]
        heap = eventually("the dump") { redirect(port, place, admin) }
        codes = eventually("the heap everywhere") do
          answers = Array.new(10) { get(port, "#{heap.chomp("/")}.json", admin).code }
          answers if answers.uniq == ["200"]
        end
        expect(codes.size).to eq(10)
      end
      expect(log).not_to match(/error|warn|SEGV/i)
    end
  end

  it "is mounted in Rails" do
    found = run_ruby("require 'logger'; require 'rails'; require 'action_controller/railtie'")
    skip "Rails is not installed (the package ruby-railties, the gem railties)" unless found.success?

    app = File.expand_path("../fixtures/apps/rails_web/app.rb", __dir__)
    stdout, stderr, status = run_ruby(app, env: { "MEMPROF_DIR" => directory })
    expect([stderr, status.exitstatus]).to eq(["", 0])
    expect(stdout.lines.map(&:chomp)).to eq([
      "guest 404", "admin 303 /memprof/live", "live 200 true", "foreign 403",
      "start 303 started", "trace 303 tracing", "orders 200 3000", "tracked 3000 Order",
      "traced orders#index 200", "dump 303", "heap 200 true", "stop 303 stopped"
    ])
  end
end
