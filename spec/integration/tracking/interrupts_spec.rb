# frozen_string_literal: true

# Threads that are ended at any moment of a tracked block: by Thread#kill, by Timeout, by an exception from
# another thread. In processes of their own: a session that cannot be closed tracks for as long as its process
# lives.
RSpec.describe "Tracked blocks whose threads are ended" do
  let(:setup) { <<~RUBY }
    require "memprof"
    require "memprof/middleware"
    require "memprof/testing"
    require "memprof/dump"
    require "memprof/dump/globals"
    NATIVE = Memprof.send(:const_get, :Native)
    OUT = File.open(File::NULL, "w")
    APP = Memprof::Middleware.new(->(_) { [200, {}, ["x"]] }, io: OUT)
    MEASURE = Memprof::Testing::Measurement
    class Late < Exception; end
    class Cut < StandardError; end
    def left?
      disabled = GC.disable
      GC.enable
      disabled || NATIVE.sessions > 0 || Memprof.running?
    end
    # Runs the work again and again, interrupted at the first place, the second, ... until it is done before,
    # and yields after each, with whether it ended by the interrupt. Where methods, blocks and C functions return is where Ruby looks whether the
    # thread is to end.
    def interrupt_everywhere(work, interrupt)
      work.call
      here = Thread.current
      interrupts = 0
      (1..1500).each do |number|
        count = 0
        point = TracePoint.new(:return, :b_return, :c_return) do
          next unless Thread.current.equal?(here) && (count += 1) == number

          interrupts += 1
          interrupt.call
        end
        begin
          point.enable { work.call }
          ended = false
        rescue Late, Cut
          ended = true
        end
        yield(number, ended)
        break if count < number
      end
      puts interrupts
    end
  RUBY

  {
    "Memprof.report" => "Memprof.report(scope: :thread) { 'x'.dup }",
    "Memprof.track" => "Memprof.track(OUT) { 'x'.dup }",
    "Memprof.growth" => "Memprof.growth(times: 4, warmup: 0) { 'x'.dup }",
    "the middleware" => "APP.call({})",
    "a matcher" => "MEASURE.new(-> { 'x'.dup }, MEASURE::Plan.new(0, false, true, []))",
    "Memprof.start" => "Memprof.start; Memprof.stop",
    "a dump" => "Memprof.dump(File::NULL) { 'x'.dup }"
  }.each do |name, work|
    it "leaves nothing behind wherever it is interrupted: #{name}" do
      result = run_ruby(<<~RUBY)
        #{setup}
        interrupt_everywhere(-> { #{work} }, -> { raise Late }) do |number|
          Memprof.stop if Memprof.running?
          abort "left behind by interrupt \#{number}" if left?
        end
      RUBY
      expect(result.stderr).to eq("")
      expect(result.stdout.to_i).to be > 5
    end
  end

  # Thread#raise comes where Thread#kill and Timeout come, and is put off where these are.
  {
    "Memprof.trace" => "Memprof.trace(OUT) { 'x'.dup }",
    "Memprof.trace of the process" => "Memprof.trace(OUT, scope: :process) { 'x'.dup }",
    "Memprof.trace_request" => "Memprof.trace_request({}) { [200, {}, []] }",
    "the tracer" => "TRACER.call({})",
    "Memprof::Malloc.record" => "Memprof::Malloc.record('/dev/null') { 'x'.dup }",
    "a matcher of leaks of malloc" => "LEAKS.found?(-> { 'x'.dup })",
    "a matcher of malloc" => "BYTES.within?(-> { 'x'.dup })"
  }.each do |name, work|
    it "leaves nothing running wherever it is interrupted: #{name}" do
      result = run_ruby(<<~RUBY)
        #{setup}
        require "memprof/tracer"
        Memprof.trace_to(File::NULL)
        TRACER = Memprof::Tracer.new(->(_) { [200, {}, ["x"]] })
        BYTES = Memprof::Testing::NativeAllocations.new(1000, warmup: 0)
        LEAKS = Memprof::Testing::NativeLeaks.new(1_000_000, times: 4, warmup: 0)
        TRACERS = Memprof::Tracers
        def subscribed?(subscriber)
          subscriber.instance_variable_get(:@thread) || !subscriber.instance_variable_get(:@permanent)
        end
        def running?
          NATIVE::Malloc.running? || ObjectSpace.each_object(NATIVE::Trace).any?(&:finish) ||
            TRACERS::Subscriber.running.any? { |subscriber| subscribed?(subscriber) } ||
            TRACERS::Hooks.instance_variable_get(:@watchers) > 1
        end
        interrupt_everywhere(-> { #{work} }, -> { Thread.current.raise(Late) }) do |number|
          abort "left running by interrupt \#{number}" if left? || running?
        end
      RUBY
      expect(result.stderr).to eq("")
      expect(result.stdout.to_i).to be > 5
    end
  end

  # What Timeout of Ruby 3.1 raises is a StandardError, which must not be taken for memprof's own.
  {
    "Memprof.report" => "Memprof.report { 'x'.dup }",
    "Memprof.track" => "Memprof.track(OUT) { 'x'.dup }",
    "Memprof.dump" => "Memprof.dump(OUT) { 'x'.dup }",
    "the global variables of a dump" => "Memprof::Dump::Globals.read",
    "Memprof.trace" => "Memprof.trace(OUT) { 'x'.dup }",
    "Memprof.trace with a tracer of the program" => "Memprof.trace(OUT, tracers: [:quick]) { 'x'.dup }",
    "Memprof.trace_request" => "Memprof.trace_request({}) { [200, {}, []] }"
  }.each do |name, work|
    it "does not swallow an exception from another thread wherever it comes: #{name}" do
      result = run_ruby(<<~RUBY)
        #{setup}
        class Quick
          def start = 1.to_s
          def finish = 2.to_s
          def report = { "answer" => 42.to_s }
        end
        Memprof::Tracers.register(:quick, Quick)
        Memprof.trace_to(File::NULL)
        raised = false
        cut = lambda do
          raised = true
          Thread.current.raise(Cut)
        end
        interrupt_everywhere(-> { #{work} }, cut) do |number, ended|
          abort "swallowed at \#{number}" if raised && !ended
          abort "left behind by interrupt \#{number}" if left?
          raised = false
        end
      RUBY
      expect(result.stderr).to eq("")
      expect(result.stdout.to_i).to be > 5
    end
  end

  {
    "Memprof.report" => "Memprof.report(scope: :thread) { 'x'.dup }",
    "the middleware" => "APP.call({})",
    "a matcher that counts bytes" => "MEASURE.new(-> { 'x'.dup }, MEASURE::Plan.new(0, true, false, []))"
  }.each do |name, work|
    it "leaves nothing behind when threads are killed: #{name}" do
      result = run_ruby(<<~RUBY)
        #{setup}
        deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 6
        kills = 0
        until kills == 600 || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
          thread = Thread.new { loop { #{work} } }
          thread.report_on_exception = false
          Thread.pass while rand(3) > 0
          sleep(rand * 0.002) if (kills % 3).zero?
          thread.kill
          thread.join
          kills += 1
          abort "left behind by kill \#{kills}" if left?
        end
        puts kills
      RUBY
      expect(result.stderr).to eq("")
      expect(result.stdout.to_i).to be > 10
    end
  end

  it "closes what was opened in between" do
    result = run_ruby(<<~RUBY)
      require "memprof"
      NATIVE = Memprof.send(:const_get, :Native)
      session = Memprof::Session.prepare
      p session.closed?, NATIVE.sessions
      session.close
      2.times { session.open } # starts again, and is still one
      p session.closed?, NATIVE.sessions
      2.times { session.close }
      p session.closed?, NATIVE.sessions
    RUBY
    expect(result.stdout).to eq("true\n0\nfalse\n1\ntrue\n0\n")
  end
end
