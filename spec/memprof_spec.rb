# frozen_string_literal: true

require "stringio"
require "tempfile"

RSpec.describe Memprof do
  # An instance variable, and made beforehand: what a `let` makes would be tracked.
  before do
    @tempfiles = Array.new(2) { Tempfile.new("memprof").tap(&:close) }
    @file, @second = @tempfiles.map(&:path)
  end

  def written
    File.readlines(@file, chomp: true).map(&:strip)
  end

  describe ".start and .stop" do
    it "return true for a change and false for none" do
      expect([described_class.running?, described_class.start,
        described_class.start]).to eq([false, true, false])
      expect([described_class.running?, described_class.stop,
        described_class.stop]).to eq([true, true, false])
    end

    it "start one session, however many threads call at once" do
      allow(Memprof::Session).to receive(:prepare).and_wrap_original do |prepare, **options|
        prepare.call(**options).tap { sleep(0.05) }
      end
      started = Array.new(2) { Thread.new { described_class.start } }.map(&:value)
      expect(started).to contain_exactly(true, false)
    end

    it "refuse impossible options, and then track nothing" do
      expect { described_class.start(sample: 0) }.to raise_error(ArgumentError, /sample must be nil or 1 to/)
      expect { described_class.start(stack: "deep") }.to raise_error(ArgumentError, /stack must be 1 to/)
      expect(described_class).not_to be_running
    end

    it "forget what was seen" do
      described_class.start
      kept = [+"abc"]
      described_class.stop
      described_class.start
      described_class.stats(@file)
      expect(written).to eq([])
      expect(kept.size).to eq(1)
    end
  end

  describe ".stats" do
    it "prints count, file, line and class" do
      described_class.start
      x = +"abc"
      described_class.stats(@file)
      expect(written).to include("1 #{__FILE__}:#{__LINE__ - 2}:String")
      expect(x).to eq("abc")
    end

    it "prints the count right-aligned to seven characters, the largest first, ties by place" do
      described_class.start
      one = [Object.new, Object.new]
      two = Array.new(3) { Object.new }
      one << Object.new
      described_class.stats(@file)
      line = __LINE__ - 4
      expect(File.readlines(@file, chomp: true).grep(/Object/)).to eq(
        ["      3 #{__FILE__}:#{line + 1}:Object", "      2 #{__FILE__}:#{line}:Object",
          "      1 #{__FILE__}:#{line + 2}:Object"]
      )
      expect([one, two].flatten.size).to eq(6)
    end

    it "can be asked again, and shows what came since" do
      described_class.start
      x = []
      described_class.stats(@file)
      y = []
      described_class.stats(@second)
      expect(written).to eq(["1 #{__FILE__}:#{__LINE__ - 4}:Array"])
      # On the first such call of stats the VM allocates a call cache.
      expect(File.readlines(@second, chomp: true).grep_v(/<callcache>/)).to eq(
        ["      1 #{__FILE__}:#{__LINE__ - 7}:Array", "      1 #{__FILE__}:#{__LINE__ - 5}:Array"]
      )
      expect([x, y]).to eq([[], []])
    end

    it "goes to an IO, or to standard output" do
      io = StringIO.new
      described_class.start
      x = Object.new
      described_class.stats(io)
      expect(io.string).to include("      1 #{__FILE__}:#{__LINE__ - 2}:Object\n")
      expect { described_class.stats }.to output(/^      1 #{__FILE__}:#{__LINE__ - 3}:Object$/).to_stdout
      expect(x).to be_an(Object)
    end

    it "names Memprof.start when nothing is tracked" do
      expect { described_class.stats }.to raise_error(Memprof::NotRunning, /Memprof\.start/)
      expect { described_class.stats! }.to raise_error(RuntimeError, /Memprof\.start/)
    end

    it "shows the living only" do
      described_class.start
      without_gc { 10.times { $last = +"abc" } }
      line = __LINE__ - 1
      before = stats_of(line)
      full_gc
      # The machine's stack may still hold one of those that died.
      expect([before, stats_of(line)]).to match([10, be_between(1, 2)])
    end

    def stats_of(line)
      described_class.stats(@file)
      written.grep(/:#{line}:String/).sum(&:to_i)
    end
  end

  describe ".stats!" do
    it "forgets what it has shown and tracks on" do
      described_class.start
      x = []
      described_class.stats!(@file)
      described_class.stats(@second)
      expect([written.size, File.read(@second)]).to eq([1, ""])
      expect(described_class).to be_running
      expect(x).to eq([])
    end
  end

  describe ".track" do
    it "shows twelve objects for twelve" do
      described_class.track(@file) { 12.times { +"abc" } }
      expect(written).to include("12 #{__FILE__}:#{__LINE__ - 1}:String")
    end

    it "returns the block's value, and stops" do
      expect(described_class.track(@file) { 42 }).to eq(42)
      expect(described_class).not_to be_running
    end

    it "stops if the block raises, and shows nothing" do
      File.write(@file, "as it was")
      expect { described_class.track(@file) { raise IOError, "no" } }.to raise_error(IOError, "no")
      expect([described_class.running?, File.read(@file)]).to eq([false, "as it was"])
    end

    it "stops if the block is left by throw, break or return" do
      catch(:out) { described_class.track(@file) { throw :out } }
      described_class.track(@file) { break }
      expect(described_class).not_to be_running
    end

    it "stops if the file can't be written" do
      expect {
        described_class.track("/no/such/directory/x") {
          1
        }
      }.to raise_error(Memprof::Error, %r{/no/such/directory})
      expect(described_class).not_to be_running
    end

    it "needs a block, a scope that exists" do
      expect { described_class.track }.to raise_error(ArgumentError, "block required")
      expect { described_class.track(scope: :fiber) {} }.to raise_error(ArgumentError, /scope/)
    end

    it "shows its own block inside a tracked program, which it leaves as it was" do
      described_class.start
      outer = Object.new
      described_class.track(@file) { Array.new(2) { Object.new } }
      inner = written.grep(/Object/)
      described_class.stats(@file)
      expect(inner).to eq(["2 #{__FILE__}:#{__LINE__ - 3}:Object"])
      expect(written.grep(/Object/).size).to eq(2)
      expect(described_class).to be_running
      expect(outer).not_to be_nil
    end

    it "may be stopped inside, and then has nothing to show" do
      File.write(@file, "as it was")
      value = described_class.track(@file) do
        x = Object.new
        [described_class.stop, described_class.running?, x.nil?]
      end
      expect([value, File.read(@file),
        described_class.running?]).to eq([[true, false, false], "as it was", false])
    end

    it "may be stopped and started again inside" do
      described_class.track(@file) do
        described_class.stop
        described_class.start
      end
      expect(described_class).to be_running
    end

    it "counts with scope: :thread what this thread and those it starts allocate, and nothing else" do
      stop = false
      noise = Thread.new { Object.new until stop }
      made = []
      described_class.track(@file, scope: :thread) do
        made << Object.new
        Thread.new { Thread.new { made << Object.new }.join }.join
        Fiber.new { made << Object.new }.resume
      end
      stop = true
      noise.join
      lines = written.grep(/:Object/).map { |line| line[/:(\d+):/, 1].to_i - __LINE__ }
      expect(lines).to eq([-6, -5, -4])
    end
  end

  describe "classes" do
    it "names subclasses, anonymous classes, singletons and modules" do
      stub_const("Parent", Class.new)
      anonymous = Class.new(Parent)
      singleton = Parent.new.tap { |object| def object.hello; end }
      described_class.start
      kept = [Parent.new, anonymous.new, Class.new(Parent), Module.new, singleton.dup]
      described_class.stats(@file)
      line = __LINE__ - 2
      classes = written.grep(/:#{line}:/).map { |text| text[/:\d+:(.*)/, 1] }
      expect(classes).to include("Parent", "#<Class < Parent>", "Class", "Module")
      expect(kept.size).to eq(5)
    end

    it "counts internal objects" do
      described_class.start
      code = RubyVM::InstructionSequence.compile("def internal_objects(a) = [a].map { |x| x }")
      described_class.stats(@file)
      expect(written.join("\n")).to match(/:<iseq>$/)
      expect(code).not_to be_nil
    end
  end

  describe ".report" do
    it "does not call retained what only a finalizer held" do
      # In a process and by a thread of their own: the machine stack of this one may hold on to some of them.
      result = run_ruby(<<~'RUBY')
        require "memprof"
        def finalizer(held) = proc { held.size }
        report = Memprof.report(trace: Object, allow_files: "-e") do
          Thread.new do
            20.times { ObjectSpace.define_finalizer(Object.new, finalizer(Array.new(10) { Object.new })) }
          end.join
        end
        p [report.total_allocated, report.total_retained]
      RUBY
      expect([result.stdout, result.stderr]).to eq(["[220, 0]\n", ""])
    end
  end

  describe "stacks" do
    it "distinguish methods of one name, and omit memprof's own frames" do
      report = described_class.report(stack: 10, trace: Object) do
        [1].map { Object.new }
        { a: 1 }.map { Object.new }
      end
      stacks = report.sites.map(&:stack)
      expect(stacks.map { |stack| stack.join(" ")[/Array#map|Enumerable#map/] }).to contain_exactly(
        "Array#map", "Enumerable#map"
      )
      expect(stacks.flatten.map(&:to_s).grep(/Memprof/)).to eq([])
    end
  end

  describe "sampling" do
    it "scales counts without bias" do
      described_class.start(sample: 50)
      kept = Array.new(100_000) { Object.new }
      line = __LINE__ - 1
      described_class.stats(@file)
      count = written.grep(/:#{line}:Object/).sum(&:to_i)
      # Five standard deviations of a binomial count of 2000.
      expect(count).to be_within(5 * 50 * Math.sqrt(2000)).of(kept.size)
      expect(count % 50).to eq(0)
    end

    it "is not biased by untracked threads, and follows those that are started" do
      made = 40_000
      described_class.track(@file, scope: :thread, sample: 20) do
        threads = Array.new(2) { Thread.new { Array.new(made) { Object.new } } }
        $kept = threads.map(&:value)
      end
      other = Thread.new { Array.new(made) { Object.new } }
      described_class.track(@second, scope: :thread, sample: 20) do
        $other = Array.new(made) { Object.new }
        other.join
      end
      counts = [@file, @second].map { |file| File.readlines(file).grep(/:Object/).sum(&:to_i) }
      expect(counts[0]).to be_within(5 * 20 * Math.sqrt(2 * made / 20)).of(2 * made)
      expect(counts[1]).to be_within(5 * 20 * Math.sqrt(made / 20)).of(made)
    ensure
      $kept = $other = nil # each later collection would look at them
    end
  end

  describe "requiring it" do
    # Each file takes time and memory in every process of a program: what no measurement needs is loaded on
    # demand, and the extension with the first measurement. A name, unlike a path, has RubyGems look through
    # all gems.
    it "costs nothing: no hook, only these files, none of them by name" do
      stdout, stderr, = run_ruby(<<~RUBY, env: { "MEMPROF_AGENT" => nil })
        before = $LOADED_FEATURES.dup
        Object.prepend(Module.new { def require(name) = $stderr.puts(name) || super })
        require "memprof"
        puts $LOADED_FEATURES - before
        GC.start
        puts Memprof.running?
      RUBY
      *paths, running = stdout.lines(chomp: true)
      files = paths.map { |path| path.sub(%r{\A.*/lib/(?=memprof)}, "") }
      libraries = files.grep(%r{/memprof\.[a-z]+\z})
      expect([stderr, running, libraries]).to eq(["memprof\n", "false", []])
      expect(files - libraries).to match_array(%w[
        memprof.rb memprof/api.rb memprof/clock.rb memprof/compat.rb memprof/errors.rb
        memprof/internal_classes.rb memprof/loading.rb memprof/located.rb memprof/lock.rb memprof/output.rb
        memprof/paint.rb memprof/paths.rb memprof/printable.rb memprof/report.rb memprof/screen_width.rb
        memprof/session.rb memprof/support.rb memprof/tracing.rb memprof/units.rb memprof/version.rb
        memprof/report/filter.rb memprof/report/groups.rb memprof/report/site.rb
      ])
    end
  end
end
