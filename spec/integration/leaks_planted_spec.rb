# frozen_string_literal: true

require "memprof/heap"
require "tmpdir"

# A program plants leaks, and what looks like one and is none; answers are compared with what it knows.
RSpec.describe "What is said to leak" do
  around do |example|
    Dir.mktmpdir do |directory|
      @directory = directory
      example.run
    end
  end

  def run_planted(program)
    path = File.join(@directory, "app.rb")
    File.write(path, program)
    result = run_ruby(path, env: { "DIRECTORY" => @directory })
    expect(result.stderr).to eq("")
    result.stdout
  end

  def heap(name) = Memprof::Heap.open(File.join(@directory, name), index: false)

  def leaks(*names)
    paths = names.map { |name| File.join(@directory, name) }
    stdout, stderr, status = run_memprof("leaks", "--no-index", *paths)
    expect(status.exitstatus).to eq(0), stderr
    stdout
  end

  # Threads as a server has them, and memprof's, each with a stack; and objects, made after tracking began.
  waiting = <<~'RUBY'
    require "memprof/signal"
    class Session
      def initialize(number) = @text = "session #{number} " * 10
    end
    gate = Queue.new
    POOL = Array.new(16) { Thread.new { gate.pop } }
    Thread.pass until POOL.all?(&:stop?)
    LOG = Array.new(30) { |number| Session.new(number) }
  RUBY

  dump = "Memprof.dump_all(File.join(ENV.fetch('DIRECTORY'), 'one.memprof'))\n"

  it "is not what is memprof's own, nor the stacks of idle threads" do
    run_planted("#{waiting}#{dump}")
    heap = heap("one.memprof")
    named = heap.leaks(threshold: 0.1, limit: 1000)[:findings].map { |finding| finding[:class] }
    expect(named.grep(/Memprof|Thread|Fiber/)).to eq([])
    classes = heap.histogram(by: :class, limit: 10_000)[:rows].map { |row| row[:key] }
    expect(classes.grep(/\AMemprof\b/)).to eq([])
    expect(heap.tree(depth: 1, limit: 1000, min: 1).to_s).not_to include("Memprof::Native")
    expect(heap.where("class = Thread").count).to eq(17)
    excluded = heap.overview[:warnings].grep(/\A[\d,]+ objects of memprof itself \(.+\) not counted\.\z/)
    expect(excluded.size).to eq(1)
    expect(leaks("one.memprof").tr("\n", " ")).to include("objects of memprof itself")
    expect(leaks("one.memprof")).not_to include("memprof/signal")
  end

  it "takes the rest of the heap as the total" do
    run_planted("#{waiting}#{dump}")
    heap = heap("one.memprof")
    sum = heap.histogram(by: :type, limit: 100)[:rows].sum { |row| row[:size] }
    totals = [heap.overview[:objects][:size], heap.histogram(by: :class)[:total][:size], heap.objects.memsize]
    expect(totals).to all(eq(sum))
  end

  it "names the key of a thread-local, and the line of a captured block" do
    run_planted(<<~RUBY)
      require "memprof"
      local = Object.new
      body = "b" * 1_000_000
      Thread.current[:visitor] = ["v" * 1_000_000]
      def listen(&block) = (HOOKS << block)
      HOOKS = []
      def hook(body)
        listen { body.size }
      end
      hook(body)
      body = nil
      File.write(File.join(ENV.fetch("DIRECTORY"), "line"), __LINE__ - 4)
      Memprof.dump_all(File.join(ENV.fetch("DIRECTORY"), "one.memprof"))
    RUBY
    holders = heap("one.memprof").leaks(threshold: 5)[:findings].map { |found| found[:retained_by].join }
    # The fiber that the thread runs has them if it is an object.
    expect(holders).to include(/(Thread|Fiber)\[:visitor\]/)
    line = File.read(File.join(@directory, "line"))
    expect(holders).to include(/HOOKS -> Array\[\*\] -> Proc \S+app\.rb:#{line}\b/)
  end

  it "takes no arrow in a text for a step" do
    run_planted(<<~RUBY)
      require "memprof"
      ROUTES = { "/a -> /b" => ["x" * 1_000_000], c: ("a -> b " * 200_000) }
      Memprof.dump_all(File.join(ENV.fetch("DIRECTORY"), "one.memprof"))
    RUBY
    held = heap("one.memprof").leaks(threshold: 5)[:findings].map { |found| found[:retained_by].join }
    expect(held).to include("ROUTES -> Hash[*] -> Array[*]", "ROUTES -> Hash[*]")
  end

  # Four dumps; each time so much is put into a cache that drops the oldest, and into a list.
  growing = <<~'RUBY'
    require "memprof"
    Memprof.start
    class Entry
      def initialize(number) = @text = "entry #{number} " * 10
    end
    class Cache
      def initialize(limit) = (@limit, @entries = limit, {})
      def put(number)
        @entries[number] = Entry.new(number)
        @entries.shift if @entries.size > @limit
      end
    end
    CACHE = Cache.new(2_000)
    LIST = []
    SHRINKING = Array.new(20_000) { "text #{_1} " * 5 }
    numbers = (1..).each
    3_000.times { CACHE.put(numbers.next) }
    4.times do |dump|
      2_500.times { CACHE.put(numbers.next) }
      500.times { LIST << Entry.new(numbers.next) }
      SHRINKING.pop(3_000)
      Memprof.dump_all(File.join(ENV.fetch("DIRECTORY"), "#{dump}.memprof"))
    end
  RUBY

  it "is what grows from dump to dump, and no cache that drops as much as it takes up" do
    run_planted(growing)
    names = Array.new(4) { |number| "#{number}.memprof" }
    [2, 3, 4].each do |dumps|
      grew = leaks(*names.first(dumps))
      count = Memprof::Units.count((dumps - 1) * 500)
      expect(grew).to match(/^1\. #{count} more Entry instances retain \S+ KiB$/)
      expect(grew).to match(/^Retained by +LIST -> Array\[\*\]$/)
      expect(grew).not_to include("CACHE")
      expect(grew).not_to include("SHRINKING")
    end
  end

  it "is a list whose head is replaced, and a text that is appended to" do
    run_planted(<<~'RUBY')
      require "memprof"
      Memprof.start
      Node = Struct.new(:text, :rest)
      module Log; LINES = +""; end
      def push(number) = $head = Node.new("node #{number} " * 10, $head)
      3.times do |dump|
        2_000.times do |number|
          push(number)
          Log::LINES << "a line of the log" * (5 * 3**dump)
        end
        Memprof.dump_all(File.join(ENV.fetch("DIRECTORY"), "#{dump}.memprof"))
      end
    RUBY
    text = leaks("0.memprof", "1.memprof", "2.memprof").tr("\n", " ")
    expect(text).to match(/ 4,000 more Node instances retain \S+ KiB, each retained by another /)
    expect(text).to match(/ Retained by +\$head -> Node\.rest Allocated at +\S*app\.rb:5 in push /)
    expect(text).to match(/ 1 String instance grew by \S+ [KM]iB Retained by +Log::LINES /)
    text = leaks("2.memprof").tr("\n", " ")
    expect(text).to match(/ [56],\d+ Node instances retain \S+ [KM]iB \(\S+ %\), each retained by another /)
    expect(text).to match(/ Retained by +\$head -> Node\.rest Allocated at +\S*app\.rb:5 in push /)
  end

  it "is ranked by what roots reach" do
    run_planted(<<~'RUBY')
      require "memprof"
      Memprof.start
      class Dropped; def initialize = @text = "d" * 100; end
      class Held; def initialize = @text = "h" * 100; end
      LIST = []
      path = ->(name) { File.join(ENV.fetch("DIRECTORY"), name) }
      GC.start
      Memprof.dump_all(path["0.memprof"])
      GC.disable
      Array.new(20_000) { Dropped.new }.clear
      500.times { LIST << Held.new }
      Memprof.dump_all(path["1.memprof"])
    RUBY
    rows = heap("0.memprof").diff(heap("1.memprof")).by_class
    classes = rows.map { |row| row[:class] }
    dropped = rows.find { |row| row[:class] == "Dropped" }
    expect(classes.index("Held")).to be < classes.index("Dropped")
    expect(dropped[:garbage][:count]).to be > 19_900
    expect(dropped[:reachable][:count]).to be < 100
  end
end
