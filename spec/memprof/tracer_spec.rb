# frozen_string_literal: true

require "json"
require "memprof/tracer"
require "rack"
require "rack/lint"
require "rack/mock"
require "tmpdir"

RSpec.describe Memprof::Tracer do
  let(:directory) { Dir.mktmpdir("memprof-spec-") }
  let(:path) { File.join(directory, "requests.json") }
  let(:app) { ->(_env) { [200, { "content-type" => "text/plain" }, ["hello"]] } }

  after { FileUtils.rm_rf(directory) }

  def requests(file = path)
    File.readlines(file).map { |line| JSON.parse(line) }
  end

  it "passes on what the app returns, and adds a line" do
    linted = Rack::Lint.new(described_class.new(Rack::Lint.new(app), path: path))
    response = Rack::MockRequest.new(linted).get("/home?a=1")

    expect([response.status, response.body]).to eq([200, "hello"])
    expect(requests.size).to eq(1)
    expect(requests.first).to include("request" => include("PATH_INFO" => "/home", "QUERY_STRING" => "a=1"),
      "response" => { "code" => 200 }, "tracers" => include("objects", "gc"))
  end

  it "adds a line for a request that raises or throws" do
    catch(:async) { described_class.new(->(_env) { throw :async }, path: path).call({}) }
    expect { described_class.new(->(_env) { raise IOError, "gone" }, path: path).call({}) }
      .to raise_error(IOError, "gone")
    expect(requests.first.keys).to eq(%w[start tracers request time])
    expect(requests.last).to include("response" => { "code" => 500 }, "exception" => "IOError")
  end

  it "counts what each of many threads does" do
    busy = ->(env) do
      env["count"].times { Object.new && Thread.pass }
      [env["count"], {}, []]
    end
    tracer = described_class.new(busy, path: path, tracers: :objects)
    Array.new(8) { |index|
      Thread.new {
        10.times {
          tracer.call({ "count" => (index * 10) + 1 })
        }
      }
    }.each(&:join)

    expect(requests.size).to eq(80)
    counts = requests.map do |request|
      [request["response"]["code"], request["tracers"]["objects"]["classes"]["Object"]["count"]]
    end
    expect(counts).to all(satisfy { |code, count| code == count })
  end

  describe "requests that come one after the other" do
    # Each sends redis so many commands, over the client's own connection.
    let(:talker) do
      connection = Class.new do
        def call(*) = :called
        prepend Memprof::Tracers::Redis::Connection
      end
      ->(env) do
        env["commands"].times { connection.new.call(["GET", "a"]) }
        [200, {}, []]
      end
    end

    def commands
      requests.map { |request| request["tracers"]["redis"]["calls"] }
    end

    it "have what clients did for them, and not what they did for others" do
      tracer = described_class.new(talker, path: path, tracers: %i[redis gc])
      [3, 0, 1].each { |number| tracer.call({ "commands" => number }) }
      talker.call({ "commands" => 5 })
      tracer.call({ "commands" => 2 })
      expect(commands).to eq([3, nil, 1, 2])
    end

    it "have it in the child of a fork, too" do
      result = run_ruby(<<~RUBY)
        require "memprof/tracer"
        connection = Class.new do
          def call(*) = :called
          prepend Memprof::Tracers::Redis::Connection
        end.new
        app = ->(env) { env["commands"].times { connection.call(["GET"]) } && [200, {}, [env["child"]&.call]] }
        tracer = Memprof::Tracer.new(app, path: #{path.inspect}, tracers: %i[redis gc objects])
        tracer.call({ "commands" => 1 })
        child = -> do
          Process.wait(fork { 2.times { |number| tracer.call({ "commands" => number + 2 }) } })
          GC.start
        end
        tracer.call({ "commands" => 4, "child" => child })
        tracer.call({ "commands" => 5 })
      RUBY
      expect(result.stderr).to eq("")
      expect(commands).to eq([1, 2, 3, 4, 5])
      expect(requests.map { |request| request["tracers"]["gc"]["calls"] }).to eq([0, 0, 0, 1, 0])
    end

    it "keep to their thread, also when nested" do
      inner = described_class.new(talker, path: path, tracers: %i[redis gc])
      nested = ->(env) do
        Thread.new { talker.call(env) }.join
        inner.call(env)
        talker.call(env)
      end
      tracer = described_class.new(nested, path: path, tracers: %i[redis gc])
      2.times { |number| tracer.call({ "commands" => number + 1 }) }
      expect(commands).to eq([1, 2, 2, 4])
    end

    it "restart tracers of the program, and include those registered meanwhile" do
      numbers = (1..).each
      own = Class.new do
        define_method(:initialize) { @number = numbers.next }
        attr_reader :number

        def start = nil
        def finish = nil
        def report = { "number" => number }
      end
      tracer = described_class.new(app, path: path)
      tracer.call({})
      Memprof::Tracers.register(:own, own)
      2.times { tracer.call({}) }
      Memprof::Tracers.unregister(:own)
      tracer.call({})
      expect(requests.map { |request| request["tracers"]["own"] })
        .to eq([nil, { "number" => 1 }, { "number" => 2 }, nil])
    end

    it "are fine if a request's fiber is never heard of again" do
      waiting = ->(env) { env["wait"] ? Fiber.yield : talker.call(env) }
      tracer = described_class.new(waiting, path: path, tracers: %i[redis gc])
      100.times { Fiber.new { tracer.call({ "wait" => true }) }.resume }
      2.times { |number| tracer.call({ "commands" => number + 1 }) }
      expect(commands).to eq([1, 2])
    end
  end

  it "traces only what is requested" do
    tracer = described_class.new(app, path: path, tracers: %i[gc], only: ->(env) { env["PATH_INFO"] == "/a" })
    %w[/a /b /a].each { |place| tracer.call({ "PATH_INFO" => place }) }
    expect(requests.map { |request| request["tracers"].keys }).to eq([["gc"]] * 2)
  end

  it "continues when it can't write, and warns once" do
    tracer = described_class.new(app, path: "/dev/full")
    expect { 3.times { expect(tracer.call({}).first).to eq(200) } }
      .to output("memprof: the tracer cannot write its report: cannot write /dev/full: " \
                 "No space left on device; said only once\n").to_stderr
  end

  it "complains at once about invalid options" do
    expect { described_class.new(app, tracers: :disc) }.to raise_error(ArgumentError, /unknown tracer :disc/)
    expect { described_class.new(app, scope: :host) }.to raise_error(ArgumentError, /unknown scope :host/)
    { max_size: 0, one_in: 1.5, per_second: -1, when_full: :delete }.each do |name, value|
      expect { described_class.new(app, name => value) }.to raise_error(ArgumentError, /#{name} must be/)
    end
    expect { described_class.new(app, only: 1) }.to raise_error(ArgumentError, /callable, not 1/)
  end

  it "writes where Memprof.trace_filename says, if that is set" do
    other = File.join(directory, "other.json")
    Memprof.trace_filename = other
    described_class.new(app, path: path).call({})
    expect(requests(other).size).to eq(1)
    expect(File.exist?(path)).to be(false)
  ensure
    Memprof.trace_filename = nil
  end

  it "has a file for each process, in the directory that is set" do
    result = run_ruby(<<~RUBY, env: { "MEMPROF_DIR" => directory })
      require "memprof/tracer"
      tracer = Memprof::Tracer.new(->(env) { [200, {}, []] })
      tracer.call({})
      Process.wait(fork { 2.times { tracer.call({}) } })
      tracer.call({})
      print $$
    RUBY
    expect(result.stderr).to eq("")
    files = Dir.children(directory).sort_by { |name| name[/\d+/].to_i }
    expect(files.first).to eq("memprof_tracer-#{result.stdout}.json")
    expect(files.map { |name| requests(File.join(directory, name)).size }).to eq([2, 2])
    expect(files.map { |name| File.stat(File.join(directory, name)).mode & 0o777 }).to eq([0o600] * 2)
  end

  it "writes to no link that another user put there" do
    result = run_ruby(<<~RUBY, env: { "MEMPROF_DIR" => directory })
      require "memprof/tracer"
      File.symlink("/etc/hostname", File.join(ENV["MEMPROF_DIR"], "memprof_tracer-\#{$$}.json"))
      print Memprof::Tracer.new(->(env) { [200, {}, []] }).call({}).first
    RUBY
    expect(result.stdout).to eq("200")
    expect(result.stderr).to match(/\Amemprof: the tracer cannot write its report: .*: Too many levels/)
  end

  it "handles requests though another user put a pipe there" do
    result = run_ruby(<<~RUBY, env: { "MEMPROF_DIR" => directory })
      require "memprof/tracer"
      File.mkfifo(File.join(ENV["MEMPROF_DIR"], "memprof_tracer-\#{$$}.json"))
      tracer = Memprof::Tracer.new(->(env) { [200, {}, []] })
      print Array.new(3) { Thread.new { tracer.call({}).first } }.map(&:value)
    RUBY
    expect(result.stdout).to eq("[200, 200, 200]")
    expect(result.stderr).to match(/\Amemprof: the tracer cannot write its report: .* pipe without a reader/)
    expect(result.stderr.lines.size).to eq(1)
  end

  it "handles requests whose tracers can't begin" do
    Memprof::Tracers.register(:broken) do
      def start = raise(IOError, "no")
      def finish = nil
      def report = {}
    end
    tracer = described_class.new(app, path: path, tracers: %i[gc broken])
    expect(tracer.call({}).first).to eq(200)
    expect(requests.first["tracers"]).to include("gc" => Hash, "broken" => { "error" => "no (IOError)" })
    Memprof::Tracers.unregister(:broken)
    expect { expect(tracer.call({}).first).to eq(200) }.to output(/unknown tracer :broken/).to_stderr
  ensure
    Memprof::Tracers.unregister(:broken)
  end

  it "continues in a new file when the one it writes is moved away" do
    tracer = described_class.new(app, path: path)
    tracer.call({ "PATH_INFO" => "/one" })
    File.rename(path, "#{path}.1")
    tracer.call({ "PATH_INFO" => "/two" })
    files = [requests("#{path}.1"), requests]
    paths = files.map { |lines| lines.map { |line| line["request"]["PATH_INFO"] } }
    expect(paths).to eq([["/one"], ["/two"]])
  end

  it "lets the file grow to its greatest size, as it is asked to" do
    tracer = described_class.new(app, path: path, max_size: 3000, tracers: :gc)
    30.times { tracer.call({}) }
    expect([path, "#{path}.1"].map { |file| File.size(file) }).to all(be_between(1, 3000))

    stopped = "#{path}-stopped"
    tracer = described_class.new(app, path: stopped, max_size: 3000, when_full: :stop, tracers: :gc)
    expect { 30.times { tracer.call({}) } }
      .to output("memprof: #{stopped} is full: no more requests are traced; said only once\n").to_stderr
    expect(File.size(stopped)).to be_between(2000, 3000)
  end

  it "traces only some of many requests, if that is asked for" do
    tracer = described_class.new(app, path: path, one_in: 10**9, tracers: :gc)
    expect(Array.new(50) { tracer.call({}).first }).to all(eq(200))
    expect(File.exist?(path)).to be(false)

    allow(Memprof::Clock).to receive(:now).and_return(7.0)
    tracer = described_class.new(app, path: path, per_second: 2, tracers: :gc)
    10.times { tracer.call({}) }
    expect(requests.size).to eq(2)
  end

  describe "under a server that says when it has replied" do
    let(:env) { { "PATH_INFO" => "/home", "rack.after_reply" => [] } }

    def reply(env, app = self.app)
      described_class.new(app, path: path).call(env)
    end

    def written
      File.exist?(path) ? requests : []
    end

    it "adds the line then, with what was so when the app returned" do
      env["action_dispatch.request.path_parameters"] = { controller: "home", action: "show" }
      busy = ->(_env) { [201, {}, Array.new(3) { Object.new.to_s }] }
      before = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      response = reply(env, busy)
      took = Process.clock_gettime(Process::CLOCK_MONOTONIC) - before
      expect(written).to eq([])

      response[0] = 500
      env["action_dispatch.request.path_parameters"] = { controller: "errors", action: "show" }
      env["PATH_INFO"] = "/500"
      1000.times { Object.new }
      sleep(0.05)
      env["rack.after_reply"].each(&:call)
      expect(written.size).to eq(1)
      expect(written.first).to include("response" => { "code" => 201 }, "time" => be < took + 0.01,
        "request" => { "PATH_INFO" => "/home" }, "rails" => { "controller" => "home", "action" => "show" })
      expect(written.first["tracers"]["objects"]["classes"]["Object"]["count"]).to eq(3)
    end

    it "reports what tracers in Ruby had to say when the app returned" do
      heard = Class.new do
        attr_reader :report

        def start = @report = { "calls" => 1 }
        def finish = nil
      end
      Memprof::Tracers.register(:heard, heard)
      tracer = described_class.new(->(_env) { [200, {}, []] }, path: path, tracers: %i[gc heard])
      tracer.call(env)
      Memprof::Tracers.unregister(:heard)
      env["rack.after_reply"].each(&:call)
      expect(written.map { |line| line["tracers"] }).to match([{ "gc" => Hash, "heard" => { "calls" => 1 } }])
    end

    it "keeps what the trace counted although classes get other numbers meanwhile" do
      stub_const("Ours", Class.new)
      reply(env, ->(_env) { [200, {}, Array.new(7) { Ours.new }.map(&:to_s)] })
      GC.start
      Memprof.trace(File::NULL) { Array.new(9) { Class.new.new } }
      env["rack.after_reply"].each(&:call)
      expect(written.first["tracers"]["objects"]["classes"]).to include("Ours" => include("count" => 7))
    end

    it "adds the line at once if the app raises, or streams" do
      expect { reply(env, ->(_env) { raise IOError, "gone" }) }.to raise_error(IOError, "gone")
      reply(env, ->(_env) { [200, {}, ["a"].each] })
      expect(written.size).to eq(2)
      expect(env["rack.after_reply"]).to eq([])
    end

    it "continues when it can't write, warns once, and bothers no server with it" do
      tracer = described_class.new(app, path: "/dev/full")
      expect {
        3.times { tracer.call(env) }
        expect { env["rack.after_reply"].each(&:call) }.not_to raise_error
      }.to output(/\Amemprof: the tracer cannot write its report: .*; said only once\n\z/).to_stderr
    end

    it "is fine for Rack::Lint" do
      finished = []
      linted = Rack::Lint.new(described_class.new(Rack::Lint.new(app), path: path))
      response = Rack::MockRequest.new(linted).get("/home", "rack.response_finished" => finished)
      expect(response.body).to eq("hello")
      finished.reverse_each { |work| work.call({}, 200, {}, nil) }
      expect(written.size).to eq(1)
    end

    it "has the line in the file of Memprof.trace_filename before that is closed" do
      Memprof.trace_filename = path
      described_class.new(app).call(env)
      expect(written).to eq([])
      Memprof.trace_filename = nil
      expect(written.size).to eq(1)
    ensure
      Memprof.trace_filename = nil
    end

    it "has the line when the process ends before the server calls" do
      result = run_ruby(<<~RUBY)
        require "memprof/tracer"
        app = Memprof::Tracer.new(->(_env) { [200, {}, []] }, path: #{path.dump})
        app.call({ "rack.after_reply" => [] })
        print File.exist?(#{path.dump})
      RUBY
      expect([result.stdout, result.stderr]).to eq(["false", ""])
      expect(written.size).to eq(1)
    end
  end
end
