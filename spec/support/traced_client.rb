# frozen_string_literal: true

# Examples for the calls of any client, whatever they request. The parameters say how to load the client, open
# a connection, and send one request with this `client`; and where a report has the number of calls.
RSpec.shared_examples "a client whose calls are traced" do |server:, library:, open:, ask:, count:|
  prelude = <<~RUBY
    OPEN = -> { #{open} }
    ASK = ->(client) { #{ask} }
    def counted(**options, &block)
      traced(tracers: #{count.first.inspect}, **options, &block).dig(*#{count.map(&:to_s).inspect}) || 0
    end
  RUBY
  define_method(:run_client) { |code| client_program("#{prelude}\n#{code}", server: server) }

  it "is seen when its library is loaded in the middle of a trace" do
    result = run_client(<<~RUBY)
      work = -> { client = OPEN.call; 3.times { ASK.call(client) } }
      first = counted { require #{library.inspect}; work.call }
      emit(first: first, second: counted { work.call }, idle: counted { nil })
    RUBY
    expect(result["first"]).to be >= 3
    expect(result).to include("second" => result["first"], "idle" => 0)
  end

  it "is counted for the thread that asks" do
    result = run_client(<<~RUBY)
      require #{library.inspect}
      clients = Array.new(2) { OPEN.call.tap { |client| ASK.call(client) } }
      own = nil
      all = counted(scope: :process) do
        threads = clients.zip([20, 50]).map do |client, times|
          Thread.new { counted { times.times { ASK.call(client) && Thread.pass } } }
        end
        own = threads.map(&:value)
      end
      emit(own: own, all: all)
    RUBY
    expect(result).to eq("own" => [20, 50], "all" => 70)
  end

  it "is counted in the process that asks" do
    result = run_client(<<~RUBY)
      require #{library.inspect}
      client = OPEN.call
      ASK.call(client)
      reader, writer = IO.pipe
      parent = counted do
        ASK.call(client)
        pid = fork do
          mine = OPEN.call
          5.times { ASK.call(mine) }
          writer.puts(counted { 2.times { ASK.call(mine) } })
          exit!
        end
        Process.wait(pid)
        ASK.call(client)
      end
      emit(parent: parent, child: Integer(reader.gets))
    RUBY
    expect(result).to eq("parent" => 2, "child" => 2)
  end
end

# Examples for clients that release the GVL while they wait for an answer.
RSpec.shared_examples "a client that waits for the GVL" do |server:, library:, open:, ask:, tracer:|
  it "has waits for the GVL beside its time" do
    result = client_program(<<~RUBY, server: server)
      require #{library.inspect}
      client = #{open}
      #{ask}
      2.times { Thread.new { loop { nil } } }
      began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      tracers = traced(tracers: #{tracer.inspect}) { 5.times { #{ask} } }
      emit(length: Process.clock_gettime(Process::CLOCK_MONOTONIC) - began, **tracers)
    RUBY
    report = result[tracer.name]
    expect(report["time"]).to be_positive
    expect(report["time"] + report.fetch("gvl_wait", 0)).to be <= result["length"]
    expect(report.fetch("gvl_wait", 0).positive?).to be(RUBY_VERSION >= "3.2")
  end
end
