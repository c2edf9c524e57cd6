# frozen_string_literal: true

require "json"
require "memprof/tracer"
require "tmpdir"

RSpec.describe Memprof::Filter do
  let(:path) { File.join(Dir.mktmpdir("memprof-spec-"), "requests.json") }
  let(:request) do
    Struct.new(:env, :path_parameters).new({ "PATH_INFO" => "/home", "REQUEST_METHOD" => "GET" },
      { "controller" => "home", "action" => "index" })
  end
  let(:controller) { Struct.new(:request, :response).new(request, Struct.new(:status).new("201 Created")) }

  before { Memprof.trace_filename = path }

  after do
    Memprof.trace_filename = nil
    FileUtils.rm_rf(File.dirname(path))
  end

  it "traces an action, with what Rails calls it" do
    expect(described_class.filter(controller) { :value }).to eq(:value)

    record = JSON.parse(File.read(path))
    expect(record).to include("rails" => { "controller" => "home", "action" => "index" },
      "request" => { "PATH_INFO" => "/home", "REQUEST_METHOD" => "GET" }, "response" => { "code" => 201 })
    expect(request.env.size).to eq(2)
  end

  it "is a filter itself: around_action calls around" do
    described_class.around(controller) { nil }
    expect { described_class.around(controller) { raise IOError } }.to raise_error(IOError)
    expect(File.readlines(path).size).to eq(2)
  end

  it "says what was raised, and what Rails answers to that" do
    need(client: "action_dispatch")
    result = run_ruby(<<~RUBY)
      require "action_dispatch"
      require "memprof/tracer"
      Memprof.trace_filename = #{path.inspect}
      ActionDispatch::ExceptionWrapper.rescue_responses["KeyError"] = :not_found
      Request = Struct.new(:env, :path_parameters)
      Rescuing = Struct.new(:request) { def handler_for_rescue(raised) = raised.is_a?(IOError) }
      controller = Rescuing.new(Request.new({}, {}))
      [KeyError, ArgumentError, IOError].each do |error|
        Memprof::Filter.filter(controller) { raise error }
      rescue error
        nil
      end
    RUBY
    expect(result.stderr).to eq("")
    lines = File.readlines(path).map { |line| JSON.parse(line) }
    expect(lines.map { |line| line["exception"] }).to eq(%w[KeyError ArgumentError IOError])
    expect(lines.map { |line| line["response"] }).to eq([{ "code" => 404 }, { "code" => 500 }, nil])
  end

  it "takes the symbols of Rails today" do
    request.path_parameters = { controller: "home", action: "show" }
    described_class.filter(controller) { nil }
    expect(JSON.parse(File.read(path))["rails"]).to eq("controller" => "home", "action" => "show")
  end

  it "runs the action though nothing can be written, and warns once" do
    result = run_ruby(<<~RUBY, env: { "MEMPROF_DIR" => "/nowhere" })
      require "memprof/tracer"
      Request = Struct.new(:env, :path_parameters)
      Controller = Struct.new(:request)
      controller = Controller.new(Request.new({}, {}))
      print Array.new(3) { |number| Memprof::Filter.around(controller) { number } }
    RUBY
    expect(result.stdout).to eq("[0, 1, 2]")
    file = "/nowhere/memprof_tracer-#{result.status.pid}.json"
    expect(result.stderr).to eq("memprof: the tracer cannot write its report: cannot write #{file}: " \
                                "no such directory: /nowhere; said only once\n")
  end

  it "runs the action of a controller without request parameters" do
    expect {
      expect(described_class.filter(Object.new) { :value }).to eq(:value)
      request.path_parameters = nil
      controller.response = Class.new { def status = raise(IOError, "gone") }.new
      expect(described_class.filter(controller) { :value }).to eq(:value)
    }.to output(/\Amemprof: the tracer cannot write its report: .*NoMethodError.*only once\n\z/).to_stderr
  end

  it "lets what the action raises through, and runs it once" do
    runs = []
    action = -> { runs << :run and raise IOError, "gone" }
    expect { described_class.filter(controller, &action) }.to raise_error(IOError, "gone")
    expect(runs).to eq([:run])
  end

  it "keeps calls interposed between actions" do
    described_class.filter(controller) { nil }
    expect(Memprof::Tracers::Hooks.pinned?).to be(true)
  end

  it "takes the options of the middleware" do
    Memprof.trace_filename = nil
    other = "#{path}-%p"
    filter = described_class.with(path: other, one_in: 1, tracers: :gc)
    expect(filter.around(controller) { :value }).to eq(:value)
    expect(JSON.parse(File.read("#{path}-#{Process.pid}"))["tracers"].keys).to eq(["gc"])
    expect { described_class.with(one_in: 0) }.to raise_error(ArgumentError, /one_in must be a positive/)
  end
end
