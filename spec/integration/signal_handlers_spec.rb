# frozen_string_literal: true

# A signal handler may take no lock, and `require` takes one. Each in a process of its own, which has done
# nothing before.
RSpec.describe "memprof in a signal handler" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  def in_handler(work, setup: 'require "memprof"', **options)
    run_ruby(<<~RUBY, **options)
      #{setup}
      done = false
      Signal.trap("USR2") do
        #{work}
      rescue Exception => e
        puts "\#{e.class}: \#{e.message}", e.backtrace.first(3)
      ensure
        done = true
      end
      Process.kill(:USR2, $$)
      sleep 0.001 until done
    RUBY
  end

  {
    "writes a dump" => 'p Memprof.dump_all("heap").objects > 1000',
    "writes a dump by a child" => 'p Memprof.dump_all("heap", fork: true).objects > 1000',
    "traces" => 'Memprof.trace("trace") { "x".dup }; p File.size("trace") > 100',
    "traces a request" => <<~RUBY,
      Memprof.trace_filename = "requests"
      Memprof.trace_request({}) { [200, {}, []] }
      p File.size("requests") > 100
    RUBY
    "makes a report" => <<~RUBY,
      report = Memprof.report { "x".dup }
      report.pretty_print(to_file: "shown")
      %i[text json markdown speedscope].each { |format| report.write("report", format: format) }
      p [report.to_s, report.to_json].none?(&:empty?)
    RUBY
    "writes a profile to what is not an IO" => <<~RUBY,
      sink = Class.new { attr_reader :text and def write(text) = (@text = text).size }.new
      Memprof.report { "x".dup }.write(sink, format: :speedscope)
      p sink.text.include?("speedscope")
    RUBY
    "tracks a block" => 'Memprof.track("stats") { @kept = "x".dup }; p File.size("stats") > 10',
    "starts, and prints counts" => 'Memprof.start; Memprof.stats("stats"); p Memprof.stop',
    "looks for growth" => <<~RUBY,
      growth = Memprof.growth(times: 4) { "x".dup }
      p [growth.to_s, growth.to_json].none?(&:empty?)
    RUBY
    "captures the heap" => "p Memprof::Heap.capture.retained(Object) > 0",
    "opens a dump" => <<~RUBY,
      Memprof.dump_all("heap")
      heap = Memprof::Heap.open("heap", index: false)
      source = Class.new { def read(*arguments) = (@file ||= File.open("heap", "rb")).read(*arguments) }.new
      read = Memprof::Heap.read(source)
      p heap.leaks.any? && heap.where("class = String").any? && read.size == heap.size
    RUBY
    "measures memory" => <<~RUBY,
      memory = Memprof.memory
      p memory.items.sum(&:bytes) == memory.rss && [memory.to_s, memory.to_json].none?(&:empty?)
    RUBY
    "measures a cluster's memory" => <<~RUBY,
      cluster = Memprof.cluster_memory(Process.pid)
      p cluster.pss > 0 && [cluster.to_s, cluster.to_json].none?(&:empty?)
    RUBY
    "records malloc" => <<~RUBY,
      malloc = Memprof::Malloc
      malloc.start(stack: 8, native: true)
      kept = "x" * 100_000
      malloc.stop
      texts = [malloc.table, malloc.tree_text, malloc.tree.to_s]
      malloc.write("folded", format: :collapsed)
      p malloc.locations.any? && malloc.each.any? && texts.none?(&:empty?) && File.size("folded") > 10
    RUBY
    "writes a recording of malloc and reads it" => <<~RUBY,
      Memprof::Malloc.record("recording") { "x" * 100_000 }
      recording = Memprof::Malloc::Recording.new("recording")
      change = recording.compare(recording)
      p [recording, change].all? { |one| one.to_s.size * one.to_json.size > 0 } &&
        [recording.tree_text, recording.functions_text].none?(&:empty?)
    RUBY
    "counts objects" => "p Memprof.count_objects.any?",
    "lists iseqs" => "iseqs = Memprof.iseqs; p [iseqs.to_s, iseqs.to_json].none?(&:empty?)",
    "runs a middleware" => <<~RUBY
      app = Memprof::Middleware.new(->(_) { [200, {}, ["x"]] }, io: File.open(File::NULL, "w"))
      p app.call({}).first == 200
    RUBY
  }.each do |what, work|
    it what do
      # A constant of memprof can't be loaded by its name there.
      setup = 'require "memprof/everything"' if work.match?(/Memprof::(?:Heap|Malloc)/)
      setup = 'require "memprof/middleware"' if what.include?("middleware")
      result = in_handler(work, setup: setup || 'require "memprof"')
      expect(result).to have_attributes(stdout: "true\n", stderr: "")
    end
  end

  it "can be loaded without anything that a handler may want" do
    program = <<~RUBY
      before = $LOADED_FEATURES.dup
      require "memprof"
      added = $LOADED_FEATURES - before
      p added.reject { |path| path.start_with?(#{ChildRuby::LIB.dump}) }, added.size < 30, Memprof.autoload?(:Heap).class
    RUBY
    expect(run_ruby(program)).to have_attributes(stdout: "[]\ntrue\nString\n", stderr: "")
  end

  it "writes a dump and a trace in a program of memprof run" do
    env = { "RUBYOPT" => "-I#{ChildRuby::LIB} -rmemprof/autorun", "MEMPROF_OUTPUT" => "#{Dir.pwd}/report" }
    work = 'p Memprof.dump_all("heap").objects > 1000; Memprof.trace("trace") { }'
    result = in_handler(work, setup: "", env: env)
    expect(result.stdout).to eq("true\n")
    expect(File.size("trace")).to be > 100
  end

  it "refuses what the signal interrupted, and waits for other threads" do
    result = run_ruby(<<~RUBY)
      require "memprof"
      lock = Memprof::Lock.new
      other = Memprof::Lock.new
      trap("USR2") do
        other.synchronize { puts "had it" }
        lock.synchronize { puts "never" }
      rescue Memprof::Error => e
        puts e.message
      end
      held = Queue.new
      thread = Thread.new { other.synchronize { held << 1; sleep 0.05 } }
      held.pop
      lock.synchronize { Process.kill(:USR2, $$); sleep 0.01 }
      thread.join
      lock.synchronize { puts "free" }
      begin
        lock.synchronize { raise ThreadError, "the block's own" }
      rescue ThreadError => e
        puts e.message
      end
    RUBY
    expect(result.stderr).to eq("")
    expect(result.stdout.lines).to match(["had it\n", a_string_starting_with("the signal interrupted"),
      "free\n", "the block's own\n"])
  end

  # A TracePoint calls at every line, call and return, and so wherever a signal may come.
  it "starts and stops wherever it interrupts the same" do
    result = run_ruby(<<~RUBY)
      require "memprof"
      library = File.dirname(Memprof.method(:start).source_location.first)
      interrupted = ->(outer, inner, moment) do
        seen = []
        count = 0
        trace = TracePoint.new(:line, :call, :return, :c_call, :c_return) do |point|
          next unless point.path.start_with?(library)

          seen << inner.call if (count += 1) == moment
        end
        trace.enable(target_thread: Thread.current) { seen << outer.call }
        seen
      end
      start = Memprof.method(:start)
      stop = Memprof.method(:stop)
      outcomes = []
      moments = nil
      1.step do |moment|
        started = interrupted.call(start, start, moment)
        break moments = moment if started.size == 1

        outcomes << [:start, started.sort_by(&:to_s), Memprof.running?]
        stopped = interrupted.call(stop, stop, [moment, 2].min)
        outcomes << [:stop, stopped.sort_by(&:to_s), Memprof.running?]
      end
      p moments > 10, outcomes.uniq
    RUBY
    expect(result.stderr).to eq("")
    expect(result.stdout).to eq("true\n[[:start, [false, true], true], [:stop, [false, true], false]]\n")
  end
end
