# frozen_string_literal: true

require "tmpdir"

RSpec.describe "Memprof::Malloc" do
  # Recording is global: each example has a process of its own. The first call of a method makes the VM
  # allocate tables for its cache, which would be counted at that line.
  def in_child(code, **options)
    result = run_ruby(%(require "memprof"; require "memprof/malloc"; ("a" * 2).clear\n#{code}), **options)
    expect(result.stderr).to eq ""
    expect(result).to be_success
    result.stdout.lines(chomp: true)
  end

  # Not a default gem any more since Ruby 4.0.
  def need_fiddle
    require "fiddle"
  rescue LoadError
    skip "fiddle is not installed"
  end

  it "counts blocks and bytes at the line that allocates, and takes off what is freed" do
    expect(in_child(<<~'RUBY')).to eq ["true", "true", "[1, 10001, 0]", "[1, 10001, 1, 0]", "true", "false"]
      p Memprof::Malloc.start
      string = "helloworld" * 1000
      location = Memprof::Malloc["-e:3"]
      p location.name.frozen?
      p [location.live, location.live_bytes, location.frees]
      string.clear
      p [location.allocations, location.total, location.frees, location.live]
      p Memprof::Malloc.stop, Memprof::Malloc.running?
    RUBY
  end

  it "finds the line of Fiddle.malloc, which Ruby's heap knows nothing of" do
    need_fiddle
    expect(in_child(<<~'RUBY')).to eq ["-e:4", "50 blocks of 1024"]
      require "fiddle"
      Memprof::Malloc.start
      blocks = Array.new(100) { Fiddle.malloc(1024) }
      blocks.first(50).each { |block| Fiddle.free(block) }
      leak = Memprof::Malloc.locations.max_by(&:live_bytes)
      puts leak.name
      puts "#{leak.each.count { |size, _| size == 1024 }} blocks of 1024"
    RUBY
  end

  it "counts malloc and free that Fiddle calls by their addresses" do
    need_fiddle
    expect(in_child(<<~'RUBY')).to eq ["20 blocks of 7777"]
      require "fiddle"
      pointer = Fiddle::TYPE_VOIDP
      library = Fiddle::Handle::DEFAULT
      malloc = Fiddle::Function.new(library["malloc"], [Fiddle::TYPE_SIZE_T], pointer, need_gvl: true)
      free = Fiddle::Function.new(library["free"], [pointer], Fiddle::TYPE_VOID, need_gvl: true)
      before = malloc.call(7777)
      Memprof::Malloc.start
      blocks = Array.new(50) { malloc.call(7777) }
      [before, *blocks.first(30)].each { |block| free.call(block) }
      puts "#{Memprof::Malloc["-e:9"].each.count { |size, _| size == 7777 }} blocks of 7777"
    RUBY
  end

  it "follows realloc" do
    need_fiddle
    expect(in_child(<<~'RUBY')).to eq ["[[64], [100000], []]"]
      require "fiddle"
      sizes = -> { %w[-e:6 -e:8].flat_map { |name| Memprof::Malloc[name].then { |l| l ? l.each.to_a.map(&:first) : [] } } & [64, 100_000] }
      Fiddle.free(Fiddle.realloc(Fiddle.malloc(10), 20)) # has Fiddle make what it needs once
      Memprof::Malloc.start
      block = Fiddle.malloc(64)
      seen = [sizes.call]
      block = Fiddle.realloc(block, 100_000)
      seen << sizes.call
      Fiddle.free(block)
      p seen << sizes.call
    RUBY
  end

  it "charges native threads and the collector to native code, never to a line" do
    lines = in_child(<<~'RUBY')
      Memprof::Malloc.start
      100.times { Thread.new { }.join }
      GC.start
      native = Memprof::Malloc.locations.map(&:name).grep(/\[0x\h+\]/)
      puts native.empty?, native.all? { |name| Memprof::Malloc[name].name == name }, Memprof::Malloc["gone [0x10]"].inspect
    RUBY
    expect(lines).to eq %w[false true nil]
  end

  it "finds the line of code that takes the place of freed code, in threads, fibers and callbacks from C" do
    expect(in_child(<<~'RUBY')).to eq ["[10001]", "[0, true]", "[1, 1]"]
      Memprof::Malloc.start
      100.times { "w" * 10_000 }
      totals = (1..300).map do |number|
        eval(%("x" * 10_000), nil, "evaluated.rb", number).clear
        GC.start if number % 60 == 0
        GC.compact if number == 150 && GC.respond_to?(:compact)
        Memprof::Malloc["evaluated.rb:#{number}"].total / 10_001 * 10_001
      end
      p totals.uniq
      work = -> { 50.times { [3, 1, 2].sort_by { |number| ("t" * 10_000).clear; number } } }
      threads = Array.new(3) { Thread.new(&work) } + [Thread.new { Fiber.new(&work).resume }]
      threads.each(&:join)
      location = Memprof::Malloc["-e:11"]
      p [location.each.count { |size, _| size == 10_001 }, location.total >= 600 * 10_001]
      first = "a" * 10_000; second =
        "b" * 10_000
      p [Memprof::Malloc["-e:16"], Memprof::Malloc["-e:17"]].map { |line| line.each.count { |size, _| size == 10_001 } }
    RUBY
  end

  it "estimates from samples, which large blocks all are" do
    expect(in_child(<<~'RUBY')).to eq ["true", "4096", "true", "[3, 2, 2]", "true", "nil"]
      def near(number, exact)
        (number - exact).abs < exact / 4
      end
      p Memprof::Malloc.start(sample: "4 KiB"), Memprof::Malloc.sample
      kept = Array.new(5_000) { "x" * 1_000 }
      p near(Memprof::Malloc["-e:6"].live_bytes, 5_005_000)
      large = Array.new(3) { "x" * 1_000_000 }
      location = Memprof::Malloc["-e:8"]
      large.pop.clear
      # The VM's own small blocks, should one be a sample, are no million.
      sizes = location.each.count { |size, _| size == 1_000_001 }
      p [location.total / 1_000_000, sizes, location.live_bytes / 1_000_000]
      p Memprof::Malloc.table.include?(", sampled every 4.0 KiB on average: estimates")
      Memprof::Malloc.stop
      Memprof::Malloc.start
      p Memprof::Malloc.sample
    RUBY
  end

  it "refuses a sample that is no size" do
    ["much", "0", -1, 1 << 32, 2.5].each do |sample|
      expect { Memprof::Malloc.start(sample: sample) }.to raise_error(ArgumentError, /size|must be/)
    end
  end

  it "keeps live blocks over a reset, which zeroes the counts" do
    expect(in_child(<<~'RUBY')).to eq ["nil", "[0, 0, 1]", "true", "[1, 0]"]
      Memprof::Malloc.start
      string = "x" * 20_000
      p Memprof::Malloc.clear
      location = Memprof::Malloc["-e:3"]
      p [location.total, location.frees, location.live]
      p Memprof::Malloc.total_bytes_allocated < 20_000
      string.clear
      p [location.frees, location.live]
    RUBY
  end

  it "counts ages in garbage collections" do
    expect(in_child(<<~'RUBY')).to eq ["Infinity", "true", "[3.0, 3]"]
      Memprof::Malloc.start
      string = "x" * 20_000
      location = Memprof::Malloc["-e:3"]
      p location.mean_lifespan, location.each.to_a == [[20_001, GC.count]]
      3.times { GC.start }
      string.clear
      p [location.mean_lifespan, location.max_lifespan]
    RUBY
  end

  it "yields what each location allocated, above a minimum" do
    expect(in_child(<<~'RUBY')).to eq ["nil", '["-e:3", 50001, 1, 0, 0, 0]', "1", "true"]
      Memprof::Malloc.start
      string = "x" * 50_000
      all = []
      p Memprof::Malloc.each(49_999) { |*row| all << row }
      p all.find { |name, *| name == "-e:3" }
      p Memprof::Malloc.each(50_000).count { |name, *| name == "-e:3" }
      p Memprof::Malloc.each(50_001).none? { |name, *| name == "-e:3" }
    RUBY
  end

  it "leaves out what a thread allocates in quiet, which nests" do
    expect(in_child(<<~'RUBY')).to eq ["[1, [2, :value]]", "nil", "[1, 20001]"]
      Memprof::Malloc.start
      p(Memprof::Malloc.quiet do |depth|
        "x" * 10_000
        [depth, Memprof::Malloc.quiet { |inner| [inner, :value] }]
      end)
      p Memprof::Malloc["-e:4"]
      other = Thread.new { sleep 0.01 until Thread.main[:quiet]; $kept = "y" * 20_000 }
      Memprof::Malloc.quiet { Thread.main[:quiet] = true; other.join }
      p Memprof::Malloc["-e:8"].then { |l| [l.each.count { |size,| size == 20_001 }, 20_001] }
    RUBY
  end

  it "ends quiet when its block raises" do
    expect(in_child(<<~'RUBY')).to eq ["1", "1"]
      Memprof::Malloc.start
      2.times { Memprof::Malloc.quiet { |depth| p depth; raise "x" } rescue nil }
    RUBY
  end

  # What is left on the stack may hold one of them for a while.
  it "ends quiet when its fiber is thrown away" do
    expect(in_child(<<~'RUBY')).to eq ["true"]
      Memprof::Malloc.start
      10.times { Fiber.new { Memprof::Malloc.quiet { Fiber.yield } }.resume }
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 100
      until (location = Memprof::Malloc["-e:7"]) || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
        GC.start; Fiber.new { Array.new(100) { Object.new } }.resume
        $kept = "y" * 20_000
      end
      p !location.nil?
    RUBY
  end

  it "dumps in mwrap's form, to anything that can be written to" do
    lines = in_child(<<~'RUBY')
      Memprof::Malloc.start
      string = "x" * 50_000
      Memprof::Malloc.dump($stdout, 49_999)
      Memprof::Malloc.dump(:bogus) rescue puts $!.class
    RUBY
    expect(lines).to include "           50001            1 -e:3"
    expect(lines.last).to eq "TypeError"
  end

  it "records a program from its start to its end, as MEMPROF_MALLOC says" do
    Dir.mktmpdir do |directory|
      path = "#{directory}/malloc.txt"
      result = run_ruby(%[("helloworld" * 1000).clear], ruby_args: ["-rmemprof/malloc"],
        env: { "MEMPROF_MALLOC" => "dump_path:#{path},dump_min:10000" })
      expect([result.stdout, result.stderr]).to eq ["", ""]
      expect(File.read(path)).to match(/\b1\d{4} +\d -e:1$/)
    end
    result = run_ruby(%[("helloworld" * 1000).clear], ruby_args: ["-rmemprof/malloc"],
      env: { "MEMPROF_MALLOC" => "dump_fd:1,dump_min:10000" })
    expect(result.stdout).to match(/\b1\d{4} +\d -e:1$/)
  end

  {
    "dump:1" => 'unknown setting "dump" in MEMPROF_MALLOC',
    "dump_path" => "dump_path has no value",
    "record:" => "record has no value",
    "record:/tmp" => "cannot write /tmp: it is a directory",
    "record:rec,native:maybe" => 'native must be true or false, not "maybe"',
    "table:-1" => 'table must be a number, not "-1"',
    "\xff:1".b => 'unknown setting "\xFF" in MEMPROF_MALLOC'
  }.each do |settings, message|
    it "runs the program without MEMPROF_MALLOC=#{settings.inspect}, and says why" do
      result = run_ruby("puts 1", ruby_args: ["-rmemprof/malloc"], env: { "MEMPROF_MALLOC" => settings })
      expect(result.stdout).to eq "1\n"
      expect(result.stderr).to eq "memprof: malloc is not recorded: #{message}\n"
    end
  end

  it "shows the locations with most live bytes" do
    text = in_child(<<~'RUBY').join("\n")
      Memprof::Malloc.start
      kept = Array.new(3) { "x" * 1_000_000 }
      "y" * 5_000_000
      Memprof::Malloc.stop
      puts Memprof::Malloc.table(limit: 1)
    RUBY
    size = /[\d.]+ MiB/
    count = /[\d,]+/
    expect(text).to match(/\A#{size} live in #{count} blocks of #{size} allocated by #{count} calls/)
    expect(text).to match(/^ +Live +Blocks +Allocated +Calls +Allocated at\n/)
    expect(text).to match(/^ *#{size} +\d+ +#{size} +\d+  -e:[34]$/)
    expect(text).to match(/^\d+ more with [\d.]+ \w+ live\z/)
  end

  it "agrees with itself when many threads free each other's blocks, through forks and collections" do
    expect(in_child(<<~'RUBY', timeout: 600)).to eq ["true", "0", "true", "0"]
      Memprof::Malloc.start
      queue = Queue.new
      threads = Array.new(16) do |number|
        Thread.new do
          500.times do |round|
            queue << "x" * (1000 + round)
            queue.pop.clear
            Process.wait(fork { exit!(Memprof::Malloc.total_bytes_allocated.positive? ? 0 : 1) }) if round == 100 && number < 4
            GC.compact if round == 200 && number.zero? && GC.respond_to?(:compact)
          end
        end
      end
      threads.each(&:join)
      line = Memprof::Malloc["-e:7"]
      p line.allocations >= 8_000, line.live_bytes - line.each.sum { |size,| size }
      p line.live == line.allocations - line.frees
      p Memprof::Malloc.missed
    RUBY
  end

  it "starts and stops a thousand times, under GC stress, and beside a trace" do
    expect(in_child(<<~'RUBY', timeout: 600)).to eq ["ok", "true", "true"]
      1000.times { Memprof::Malloc.start && "x" * 1000 && Memprof::Malloc.stop or raise }
      puts "ok"
      GC.stress = true
      Memprof::Malloc.start
      20.times { "x" * 1000 }
      GC.stress = false
      p Memprof::Malloc["-e:6"].allocations >= 20
      Memprof::Malloc.stop
      require "json"
      require "stringio"
      Memprof::Malloc.start
      out = StringIO.new
      Memprof.trace(out) { "z" * 30_000 }
      p JSON.parse(out.string).dig("memory", "malloc", "requested").to_i > 30_000 && Memprof::Malloc["-e:14"].total > 30_000
    RUBY
  end

  it "stays out of the way when the process ends while it records" do
    endings = [%(exit), %(exit!), %(Thread.new { loop { "x" * 1000 } }; sleep 0.05), %(abort rescue exit),
      %(Process.kill(:TERM, $$); sleep)]
    endings.each do |ending|
      start = %(require "memprof/malloc"; Memprof::Malloc.start; $kept = Array.new(1000) { "x" * 1000 })
      result = run_ruby("#{start}; #{ending}")
      expect({ ending => [result.stdout, result.stderr] }).to eq(ending => ["", ""])
    end
  end

  it "raises without a block for quiet" do
    expect { Memprof::Malloc.quiet }.to raise_error(ArgumentError, "no block given")
  end
end
