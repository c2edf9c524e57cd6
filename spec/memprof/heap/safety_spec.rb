# frozen_string_literal: true

require "tmpdir"
require_relative "shop"

# In processes of their own: what goes wrong here would take others along.
RSpec.describe "Memprof::Heap, under stress" do
  def in_child(code, **options)
    result = run_ruby(<<~RUBY, args: Shop.dumps, timeout: 240, **options)
      require "memprof"
      require "memprof/heap"
      BEFORE, AFTER, LATER = ARGV
      #{code}
    RUBY
    expect(result.stderr).to eq("")
    expect(result).to be_success
    result.stdout.lines(chomp: true)
  end

  # A dump that is being read for as long as the block likes.
  def slow_reader
    <<~'RUBY'
      READER, WRITER = IO.pipe
      WRITER.write(File.binread(LATER)[0, 1000])
    RUBY
  end

  it "is asked by many threads at once" do
    expect(in_child(<<~'RUBY')).to eq(%w[1])
      heap = Memprof::Heap.open(AFTER, index: false)
      answers = Array.new(8) do
        Thread.new do
          Array.new(5) do
            session = heap.where("class = Session").first
            [session.path.to_s, session.referrers.size, session.retains.size, heap.overview, heap.strings.retained]
          end
        end
      end
      puts answers.flat_map(&:value).uniq.size
    RUBY
  end

  it "lets the program run while it opens, and yields the progress" do
    expect(in_child(<<~RUBY)).to eq(%w[true reading true])
      #{slow_reader}
      stages = []
      opening = Thread.new { Memprof::Heap.read(READER) { |stage, done, total| stages << [stage, done, total] } }
      work = 0
      finish = Time.now + 120
      work += 1 until (work > 100 && stages.any?) || Time.now > finish
      puts work > 100, stages.map(&:first).last
      WRITER.write(File.binread(LATER)[1000..])
      WRITER.close
      puts opening.value.size > 1000
    RUBY
  end

  it "can be killed, interrupted and timed out" do
    expect(in_child(<<~RUBY)).to eq(["killed", "Timeout::Error", "Interrupt", "true"])
      require "timeout"
      #{slow_reader}
      thread = Thread.new { Memprof::Heap.read(READER) }
      sleep 0.2
      thread.kill
      puts "killed" if thread.join(60)
      begin
        Timeout.timeout(0.2) { Memprof::Heap.read(READER) }
      rescue Timeout::Error => e
        puts e.class
      end
      begin
        Thread.new { sleep 0.2; Process.kill(:INT, $$) }
        Memprof::Heap.read(READER)
      rescue Interrupt => e
        puts e.class
      end
      puts Memprof::Heap.open(BEFORE, index: false).size > 1000
    RUBY
  end

  it "ends opening with what the block raises, throws, or returns" do
    expect(in_child(<<~RUBY)).to eq(["KeyError", "thrown", "broken"])
      #{slow_reader}
      begin
        Memprof::Heap.read(READER) { raise KeyError }
      rescue KeyError => e
        puts e.class
      end
      puts(catch(:done) { Memprof::Heap.read(READER) { throw :done, "thrown" } })
      puts(Memprof::Heap.read(READER) { break "broken" })
    RUBY
  end

  it "survives fork, also of a process that opens" do
    expect(in_child(<<~RUBY)).to eq(["true", "RuntimeError", "true"])
      #{slow_reader}
      heap = Memprof::Heap.open(BEFORE, index: false)
      Process.wait(fork { exit!(heap.where("class = Session").first.path.size > 2 && heap.overview.size > 2) })
      puts $?.success?
      child = nil
      opening = Thread.new do
        Memprof::Heap.read(READER) { child ||= fork }
      rescue RuntimeError => e
        $stdout.puts e.class
        $stdout.flush
        exit!(0)
      end
      Process.wait(child) if (sleep 0.05 until child; child)
      opening.kill
      puts $?.success?
    RUBY
  end

  it "works with a collection at every allocation" do
    expect(in_child(<<~'RUBY')).to eq(%w[done])
      heap = Memprof::Heap.open(AFTER, index: false)
      JSON.generate({})
      GC.stress = true
      session = heap.where("class = Session").first
      session.path.map(&:label)
      session.references.to_a.map(&:inspect)
      heap.top(2).map(&:data)
      heap.where("class = Session").group_by_class
      session.retains.subset.stats
      heap.where("class = Guest").subset.parents_of([session])
      GC.stress = false
      puts "done"
    RUBY
  end

  it "frees its memory" do
    expect(in_child(<<~'RUBY')).to eq(%w[true true])
      require "objspace"
      heap = Memprof::Heap.open(AFTER, index: false)
      strings = heap.strings
      puts ObjectSpace.memsize_of(strings.native) > strings.size * 4
      rss = -> { File.read("/proc/self/statm").split[1].to_i * 4096 }
      work = lambda do |times|
        times.times do
          Memprof::Heap.open(AFTER, index: false).leaks
          GC.start
        end
      end
      work.call(30)
      before = rss.call
      work.call(60)
      puts rss.call - before < 50 << 20
    RUBY
  end

  it "opens what is cut, and refuses what is none" do
    Dir.mktmpdir do |directory|
      bytes = File.binread(Shop.dumps.last)
      cut = File.join(directory, "cut")
      File.binwrite(cut, bytes[0, bytes.size / 2])
      heap = Memprof::Heap.open(cut, index: false)
      expect(heap.source[:truncated]).to be(true)
      expect(heap.size).to be_between(1, Shop.heap.size - 1)
      ["", "\0" * 100, "{}\n", bytes[0, 4]].each do |content|
        File.binwrite(cut, content)
        expect { Memprof::Heap.open(cut, index: false) }
          .to raise_error(Memprof::InvalidDump, /\Acannot read #{cut}: /)
      end
    end
  end

  it "leaves no index of a dump that was cut before its first object" do
    Dir.mktmpdir do |directory|
      cut = File.join(directory, "cut.memprof")
      Memprof.dump_all(cut)
      File.truncate(cut, 30)
      expect { Memprof::Heap.open(cut) }.to raise_error(Memprof::InvalidDump, /before its first object/)
      expect(Dir.children(directory)).to eq(["cut.memprof"])
    end
  end
end
