# frozen_string_literal: true

# Tracking while the VM is at its worst. Each in a process of its own: a failure here is a crash.
RSpec.describe "Tracking" do
  def expect_output(code, expected, **options)
    result = run_ruby(code, timeout: 300, **options)
    expect([result.stderr.lines.first(5).join, result.status.exitstatus]).to eq(["", 0])
    expect(result.stdout.lines(chomp: true)).to match(expected)
  end

  # Ruby 3.1 crashes by itself when the heap is verified and then compacted automatically, so one at a time;
  # and in one of five programs when it is compacted automatically while anybody follows deaths, objspace's
  # own tracing as well.
  {
    "when the heap is compacted automatically" => ("GC.auto_compact = true" if RUBY_VERSION >= "3.2"),
    "when every object is moved and all references are verified" => <<~RUBY
      begin
        GC.verify_compaction_references(expand_heap: true, toward: :empty)
      rescue ArgumentError # Ruby 3.1 calls it otherwise
        GC.verify_compaction_references(double_heap: true, toward: :empty)
      end
    RUBY
  }.compact.each do |condition, code|
    it "loses no object, and finds none twice, #{condition}", if: GC.respond_to?(:compact) do
      expect_output(<<~RUBY, ["6667 6667 6667"])
        require "memprof"
        Memprof.start(stack: 3)
        session = Memprof.instance_variable_get(:@session)
        kept = Array.new(20_000) { Object.new }
        kept = kept.each_slice(3).map(&:first)
        3.times do
          GC.compact
          Array.new(5000) { |n| "x" * (n % 700) }
          GC.start
        end
        #{code}
        5.times { Array.new(20_000) { [] }; GC.start }
        live = session.stats.select { |_, _, line, name| line == 4 && name == "Object" }.sum(&:first)
        sites = session.profile.sites("objects", nil).select { |row| row["line"] == 4 && row["class"] == "Object" }
        puts "\#{kept.size} \#{live} \#{sites.sum { |row| row["retained"]["objects"] }}"
      RUBY
    end
  end

  it "moves classes, frames and threads with the heap" do
    expect_output(<<~'RUBY', ["Moved 300", "Moved#make", "100"])
      require "memprof"
      Memprof.start
      junk = Array.new(5000) { Object.new }
      eval "class Moved; def make; self.class.new; end; end", binding, "moved.rb", 1
      junk = nil
      kept = []
      session = Memprof.const_get(:Session).prepare(scope: :thread).tap(&:open)
      threads = Array.new(2) { Queue.new.then { |queue| [queue, Thread.new { queue.pop; 50.times { kept << Struct } ; Array.new(50) { Object.new } }] } }
      3.times do
        100.times { kept << Moved.new.make }
        GC.compact if GC.respond_to?(:compact)
      end
      made = threads.flat_map { |queue, thread| queue << 1; thread.value }
      report = session.report
      puts "Moved #{report.sites.select { |s| s.class_name == "Moved" && s.file == "moved.rb" }.sum(&:allocated_objects)}"
      puts report.sites.select { |s| s.class_name == "Moved" && s.file == "moved.rb" }.map(&:method_name).uniq
      puts report.sites.select { |s| s.class_name == "Object" && s.line == 8 }.sum(&:allocated_objects)
    RUBY
  end

  it "works with a collection at every allocation" do
    expect_output(<<~'RUBY', ["150", "true true"], ruby_args: ["--disable=gems"])
      require "memprof"
      session = Memprof.const_get(:Session).prepare(stack: 8, strings: true).tap(&:open)
      GC.stress = true
      kept = Array.new(50) { |n| eval("Class.new { def work; [Object.new, 'x' * #{n}]; end }.new.work") }
      GC.stress = false
      session.finish
      rows = session.stats.select { |_, file, _, name| file.include?("eval") && %w[Object String Array].include?(name) }
      report = session.report
      puts report.sites.select { |s| s.file.include?("eval") && s.retained_objects > 0 && %w[Object String Array].include?(s.class_name) }.sum(&:retained_objects)
      puts "#{rows.sum(&:first) >= kept.flatten.size} #{report.strings_allocated.any?}"
    RUBY
  end

  it "sees an address that is used again as a new object" do
    expect_output(<<~'RUBY', ["true", "0"])
      require "memprof"
      Memprof.start
      50.times { Array.new(2000) { Object.new }; GC.start }
      kept = Array.new(2000) { Object.new }
      GC.start
      rows = Memprof.instance_variable_get(:@session).stats.select { |_, _, _, name| name == "Object" }
      puts rows.find { |_, _, line, _| line == 4 }[0] == 2000
      puts [rows.select { |_, _, line, _| line == 3 }.sum(&:first) - 5, 0].max
    RUBY
  end

  it "keeps up with threads and fibers that come and go" do
    expect_output(<<~'RUBY', ["40000", "true"])
      require "memprof"
      Memprof.start
      session = Memprof.instance_variable_get(:@session)
      without = GC.disable
      20.times.map { Thread.new { 1000.times { Object.new; Thread.pass if rand(50) == 0 } } }.each(&:join)
      200.times { Fiber.new { 100.times { Object.new } }.resume }
      puts session.stats.select { |_, _, line, name| [5, 6].include?(line) && name == "Object" }.sum(&:first)
      GC.enable
      500.times { Thread.new { Object.new }.join }
      GC.start
      puts session.stats.any?
    RUBY
  end

  it "keeps sessions of threads that run side by side apart" do
    expect_output(<<~'RUBY', ["[]"])
      require "memprof"
      session = Memprof.const_get(:Session)
      wrong = Queue.new
      12.times.map do |id|
        Thread.new do
          40.times do
            mine = session.prepare(scope: :thread, stack: 1 + id % 3).tap(&:open)
            kept = Array.new(id + 1) { Thread.pass; Object.new }
            mine.finish
            seen = mine.stats.select { |_, _, _, name| name == "Object" }.sum(&:first)
            wrong << [id, seen] unless seen == kept.size
            mine.close
          end
        end
      end.each(&:join)
      p Array.new(wrong.size) { wrong.pop }.first(3)
      raise "sessions left" unless Memprof.send(:const_get, :Native).sessions == 0
    RUBY
  end

  it "continues in a forked child with a table of its own" do
    lines = ["parent 100", "child 150", "child after 50", "thread's session 0"]
    expect_output(<<~'RUBY', match_array(lines))
      require "memprof"
      Memprof.start
      session = Memprof.instance_variable_get(:@session)
      count = -> { session.stats.select { |_, _, _, name| name == "Object" }.sum(&:first) }
      ready = Queue.new
      Thread.new { Memprof.const_get(:Session).prepare(scope: :thread).tap(&:open); ready << 1; sleep }
      ready.pop
      kept = Array.new(100) { Object.new }
      pid = fork do
        more = Array.new(50) { Object.new }
        GC.start
        puts "child #{count.call}"
        kept.clear
        GC.start
        # The machine's stack may still hold a few.
        puts "child after #{count.call <= 55 ? 50 : count.call}"
        own = Memprof.const_get(:Session).prepare(scope: :thread).tap(&:open)
        own.close
        native = Memprof.send(:const_get, :Native)
        puts "thread's session #{native.sessions - 1}"
      end
      Process.wait(pid)
      puts "parent #{count.call}"
    RUBY
  end

  it "lets the program exit while it runs, in at_exit handlers, finalizers, threads and by a signal" do
    expect_output(<<~'RUBY', ["done"])
      require "memprof"
      Memprof.start(stack: 16)
      ObjectSpace.define_finalizer(Object.new, proc { Array.new(100) { "x".dup } })
      Thread.new { loop { Object.new } }
      at_exit { Array.new(1000) { "y".dup }; puts "done" }
      sleep 0.05
    RUBY
    result = run_ruby('require "memprof"; Memprof.start; Process.kill(:TERM, $$); sleep')
    expect(result.status.termsig).to eq(Signal.list["TERM"])
  end

  it "is not disturbed by another tool that traces allocations and collects inside its hook" do
    expect_output(<<~'RUBY', ["true", "true"])
      require "memprof"
      require "objspace"
      ObjectSpace.trace_object_allocations do
        session = Memprof.const_get(:Session).prepare.tap(&:open)
        kept = Array.new(20_000) { |n| n.to_s }
        20.times { Array.new(20_000) { Object.new }; GC.start }
        GC.compact if GC.respond_to?(:compact)
        profile = session.profile
        retained = profile.sites("objects", nil).select { |row| row["line"] == 5 && row["class"] == "String" }
        puts retained.sum { |row| row["retained"]["objects"] } == 20_000
        puts profile.sites("objects", nil).select { |row| row["line"] == 6 }.sum { |row| row["retained"]["objects"] } < 100
      end
    RUBY
  end

  it "survives classes that lie about themselves" do
    expect_output(<<~'RUBY', ["Liar", "Liar"])
      require "memprof"
      class Liar < BasicObject
        def self.name = raise("no name")
        def self.to_s = raise("no string")
        def class = raise("no class")
        def method_missing(*) = raise("nothing")
      end
      Memprof.start
      kept = [Liar.new]
      puts Memprof.instance_variable_get(:@session).stats.map(&:last).grep(/Liar/)
      Memprof.stop
      puts Memprof.report { kept << Liar.new }.retained_objects_by_class.map { |row| row[:data] }.grep(/Liar/)
    RUBY
  end

  it "survives paths, names and values that are no text" do
    expect_output(<<~'RUBY', ["true", "true", "true"])
      require "memprof"
      require "json"
      report = Memprof.report do
        @kept = [eval("\"\\xff\\x00\\n;\".dup", binding, "odd\n\xffpath;.rb", 3), "\u00e9" * 300, "\0" * 10]
      end
      json = report.to_json
      puts json.valid_encoding?, JSON.parse(json).any?
      puts %i[text markdown collapsed speedscope firefox pprof].all? { |format| report.write(File::NULL, format: format) || true }
    RUBY
  end

  it "says what it can't do with Ractors, and works where the VM is sound", if: RUBY_VERSION >= "3.3" do
    result = run_ruby(<<~'RUBY', timeout: 300)
      require "memprof"
      Warning[:experimental] = false
      Memprof.start
      session = Memprof.instance_variable_get(:@session)
      made = Array.new(3) { Ractor.new { Array.new(5000) { Object.new }.size } }
      puts made.sum { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take }
      mine = Array.new(1000) { Object.new }
      GC.start
      puts session.stats.select { |_, _, line, name| line == 7 && name == "Object" }.sum(&:first)
      Memprof.stop
      Memprof.start
    RUBY
    expect([result.status.exitstatus, result.stdout.lines.first]).to eq([0, "15000\n"])
    expect(result.stdout.lines[1]).to eq("1000\n") if RUBY_VERSION >= "4"
    expect(result.stderr).to match(RUBY_VERSION < "4" ? /Ractors are running: Ruby #{RUBY_VERSION}/o : /\A\z/)
  end
end
