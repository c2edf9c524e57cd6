# frozen_string_literal: true

require "memprof/middleware"
require "stringio"

RSpec.describe "Memprof::Middleware in rack-mini-profiler" do
  # As rack-mini-profiler has it: a timer for each step, the innermost of which is current.
  let(:profiler) do
    Class.new do
      timer = Struct.new(:name)
      current = Struct.new(:current_timer)
      singleton_class.attr_accessor :current
      define_singleton_method(:names) { @names ||= [] }
      define_singleton_method(:profiling) do |&block|
        self.current = current.new(timer.new("request"))
        block.call
      ensure
        self.current = nil
      end
      define_singleton_method(:step) do |name, &block|
        before = self.current.current_timer
        self.current.current_timer = added = timer.new(name)
        block.call
      ensure
        names << added.name
        self.current.current_timer = before
      end
    end
  end

  before do
    stub_const("Rack::MiniProfiler", profiler)
    @kept = nil
  end

  def middleware(&app) = Memprof::Middleware.new(app, io: StringIO.new)

  it "names what the request allocated, and what of it is alive" do
    app = middleware do
      Array.new(3_000) { Object.new }
      @kept = Array.new(500) { Object.new }
      [200, {}, []]
    end
    profiler.profiling { expect(app.call({})).to eq([200, {}, []]) }
    expect(profiler.names.size).to eq(1)
    allocated, alive = profiler.names.first.delete(",").scan(/\d+/).map(&:to_i)
    expect(profiler.names.first).to match(/\A[\d,]+ objects allocated, [\d,]+ alive\z/)
    expect(allocated).to be_between(3_502, 3_700)
    expect(alive).to be_between(501, allocated)
  end

  it "has a row if the app raises, and passes the exception on" do
    app = middleware { raise IOError, "gone" }
    expect { profiler.profiling { app.call({}) } }.to raise_error(IOError, "gone")
    expect(profiler.names).to match([/\A[\d,]+ objects? allocated/])
  end

  it "has none without a profile, and serves the request whatever the profiler is like" do
    expect(middleware { [204, {}, []] }.call({})).to eq([204, {}, []])
    expect(profiler.names).to eq([])
    stub_const("Rack::MiniProfiler", Class.new { def self.step(*) = raise("never called") })
    expect(middleware { [204, {}, []] }.call({})).to eq([204, {}, []])
  end

  # The gem itself, where it is installed.
  it "is in what the gem stores" do
    program = <<~'RUBY'
      require "rack"
      require "rack-mini-profiler"
      require "memprof/middleware"
      require "stringio"
      Rack::MiniProfiler.config.storage = Rack::MiniProfiler::MemoryStore
      app = ->(_env) { Array.new(2_000) { Object.new }; [200, { "content-type" => "text/html" }, ["<body></body>"]] }
      app = Rack::MiniProfiler.new(Memprof::Middleware.new(app, io: StringIO.new))
      env = Rack::MockRequest.env_for("/orders", "REMOTE_ADDR" => "127.0.0.1")
      status, headers, = app.call(env)
      ids = (headers["X-MiniProfiler-Ids"] || headers["x-miniprofiler-ids"]).split(",")
      page = Rack::MiniProfiler.config.storage_instance.load(ids.last)
      puts status, page[:root][:children].map { |child| child[:name] }
    RUBY
    result = run_ruby(program)
    skip "rack-mini-profiler is not installed" if result.stderr.include?("cannot load such file")
    expect(result.stderr).to eq("")
    expect(result.stdout.lines.first).to eq("200\n")
    row = result.stdout.lines.last
    expect(row).to match(/\A[\d,]+ objects allocated, [\d,]+ alive$/)
    expect(row.delete(",").to_i).to be_between(2_001, 3_000)
  end
end
