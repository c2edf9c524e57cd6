# frozen_string_literal: true

require "json"
require "memprof/trace/trace_text"
require "memprof/tracer"
require "stringio"
require "tmpdir"

RSpec.describe Memprof::Trace::Lines do
  def lines(**options, &block)
    io = StringIO.new
    Memprof.trace(io, tracers: :objects, **options, &block)
    JSON.parse(io.string).dig("objects", "lines")
  end

  # Allocates in one line.
  def objects(count)
    count.times { Object.new }
  end

  def strings(count)
    Array.new(count) { "abc".dup }
  end

  it "has the lines that allocated most objects, also of those that were freed" do
    found = lines(lines: 3) do
      objects(300)
      GC.start
      strings(100)
    end
    at = ->(name) do
      line = method(name).source_location.last + 1
      match(%r{\Aspec/memprof/trace/lines_spec\.rb:#{line} in .*#{name}\z})
    end
    expect(found).to match([
      { "location" => at.(:objects), "class" => "Object", "count" => 300, "bytes" => 12_000 },
      { "location" => at.(:strings), "class" => "String", "count" => 100, "bytes" => 4000 },
      { "location" => at.(:strings), "class" => "Array", "count" => 1, "bytes" => 840 }
    ])
  end

  it "lists none unless that is wanted" do
    expect(lines { objects(3) }).to be_nil
    expect(lines(lines: false) { objects(3) }).to be_nil
    expect(lines(lines: 1) { nil }).to eq([])
  end

  it "tracks whether or not another session does, and disturbs none" do
    Memprof.report do
      expect(lines(lines: 1) { objects(30) }.first).to include("count" => 30)
    end
    report = Memprof.report(trace: Object) { lines(lines: 1) { objects(30) } }
    expect(report.total_allocated).to eq(30)
    inner = nil
    outer = lines(lines: 1) { inner = lines(lines: 1) { objects(30) } && objects(20) }
    expect(outer.first["count"]).to eq(50)
  end

  it "has the objects of each of many threads" do
    counts = Array.new(4) { |thread| Array.new(5) { |time| (10 * thread) + time + 1 } }
    threads = counts.map do |wanted|
      Thread.new do
        wanted.map { |count| lines(lines: 1) { objects(count) && Thread.pass }.first["count"] }
      end
    end
    expect(threads.map(&:value)).to eq(counts)
  end

  it "has those of all threads with scope: :process" do
    found = lines(lines: 1, scope: :process) { Thread.new { objects(70) }.join }
    expect(found.first).to include("class" => "Object", "count" => 70)
  end

  it "stands in the table for people" do
    io = StringIO.new
    def io.tty? = true
    def io.winsize = [24, 200]
    Memprof.trace(io, tracers: :objects, lines: 1) { objects(3) }
    expect(io.string.gsub(/\e\[\d*m/, ""))
      .to match(/^Objects +Bytes +Class +Allocated at\n +3 +120 B +Object +\S+_spec\.rb:\d+ in .*objects/)
  end

  it "wants a number that it can list, and the tracer that counts objects" do
    [0, -1, 1001, "5", 2.5, true].each do |wrong|
      expect { Memprof.trace(lines: wrong) { nil } }
        .to raise_error(ArgumentError, "lines must be an Integer from 1 to 1000, not #{wrong.inspect}")
    end
    expect { Memprof.trace(tracers: :gc, lines: 3) { nil } }
      .to raise_error(ArgumentError, "lines: needs the tracer objects")
    expect { Memprof::Tracer.new(nil, lines: 0) }.to raise_error(ArgumentError, /\Alines must be/)
  end

  describe "of requests" do
    let(:directory) { Dir.mktmpdir("memprof-spec-") }
    let(:path) { File.join(directory, "requests.json") }

    after { FileUtils.rm_rf(directory) }

    def requests
      File.readlines(path).map { |line| JSON.parse(line).dig("tracers", "objects", "lines") }
    end

    it "is written for each that the middleware traces, also if it raises or throws" do
      app = ->(env) { objects(env["count"]).then { env["way"]&.call } }
      tracer = Memprof::Tracer.new(app, path: path, lines: 1)
      plain = Memprof::Tracer.new(app, path: path)
      tracer.call({ "count" => 30 })
      plain.call({ "count" => 20 })
      catch(:out) { tracer.call({ "count" => 40, "way" => -> { throw :out } }) }
      expect { tracer.call({ "count" => 50, "way" => -> { raise IOError } }) }.to raise_error(IOError)
      expect(requests.map { |lines| lines&.first&.fetch("count") }).to eq([30, nil, 40, 50])
    end
  end

  describe "in a process" do
    # What is open, beside the JSON of traces.
    def child(script, env = {})
      result = run_ruby(<<~RUBY, env: env)
        require "memprof"
        require "json"
        require "stringio"
        NATIVE = Memprof.module_eval("Native")
        def objects(count) = count.times { Object.new }
        def report(**options, &block)
          io = StringIO.new
          Memprof.trace(io, tracers: :objects, **options, &block)
        ensure
          puts io.string[/"lines":\\[.*?\\]/] || "none"
        end
        #{script}
        GC.start
        puts "open: \#{NATIVE.sessions}"
      RUBY
      expect(result.stderr).to eq("")
      result.stdout.lines(chomp: true)
    end

    it "leaves no session open, however the block ends" do
      printed = child(<<~RUBY)
        catch(:out) { report(lines: 1) { objects(3) && throw(:out) } }
        report(lines: 1) { objects(4) && raise } rescue nil
        thread = Thread.new { report(lines: 1) { objects(5) && Thread.current.kill } }
        thread.join
        200.times do
          killed = Thread.new { Memprof.trace(StringIO.new, tracers: :objects, lines: 1) { objects(5) } }
          Thread.pass
          killed.kill.join
        end
      RUBY
      expect(printed[0..2].map { |line| line[/"count":(\d+)/, 1] }).to eq(%w[3 4 5])
      expect(printed.last).to eq("open: 0")
    end

    it "ends with a fiber that is thrown away" do
      printed = child(<<~RUBY)
        def leave = Fiber.new { Memprof.trace(StringIO.new, lines: 1) { Fiber.yield } }.resume
        50.times { leave }
        def deep(depth) = depth.zero? ? nil : deep(depth - 1)
        deep(100)
        10.times { GC.start }
        puts NATIVE.sessions < 25
      RUBY
      expect(printed.first).to eq("true")
    end

    it "is the parent's when the block forks" do
      printed = child(<<~RUBY)
        $stdout.sync = true
        report(lines: 1) do
          Process.wait(fork { puts "child: \#{NATIVE.sessions}" })
          objects(6)
        end
      RUBY
      expect(printed).to match(["child: 0", /"count":6/, "open: 0"])
    end

    it "lists what the variable says, where objects are counted" do
      variable = { "MEMPROF_TRACE_LINES" => "1" }
      expect(child("report { objects(7) }", variable)).to match([/\A"lines":\[{[^}]*"count":7/, "open: 0"])
      script = "report(lines: false) { objects(7) }; Memprof.trace(StringIO.new, tracers: :gc) { }"
      expect(child(script, variable)).to eq(["none", "open: 0"])
      expect(child("begin; report { }; rescue ArgumentError => e; puts e.message; end",
        { "MEMPROF_TRACE_LINES" => "many" }))
        .to include("MEMPROF_TRACE_LINES must be an Integer from 1 to 1000, not \"many\"")
    end
  end
end
