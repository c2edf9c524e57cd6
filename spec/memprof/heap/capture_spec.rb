# frozen_string_literal: true

# In processes of their own: what else lives, and whether objects move, concerns no other spec there.
RSpec.describe Memprof::Heap::Capture do
  def in_child(code, env: {})
    result = run_ruby("require \"memprof\"\n#{code}", env: env, timeout: 300)
    expect(result.stderr).to eq("")
    expect(result).to be_success
    result.stdout.lines(chomp: true)
  end

  it "needs no more than memprof/heap" do
    result = run_ruby('require "memprof/heap"; puts Memprof::Heap.capture.size.positive?', timeout: 300)
    expect([result.stdout, result.stderr]).to eq(["true\n", ""])
  end

  it "says why an object is alive, from wherever it is asked" do
    paths = ['CACHE -> Hash["user:42"] -> Session'] * 4
    expect(in_child(<<~'RUBY')).to eq([*paths, "$glob -> Array[0] -> Object"])
      Session = Struct.new(:user)
      CACHE = { "user:42" => Session.new("Ann") }
      def in_method(session) = Memprof::Heap.capture.path_to(session)
      puts Memprof::Heap.capture.path_to(CACHE["user:42"])
      puts in_method(CACHE["user:42"])
      puts Thread.new { session = CACHE["user:42"]; Memprof::Heap.capture.path_to(session) }.value
      puts Fiber.new { session = CACHE["user:42"]; Memprof::Heap.capture.path_to(session) }.resume
      $glob = [Object.new]
      puts Memprof::Heap.capture.path_to($glob[0])
    RUBY
  end

  it "returns the same path for every question" do
    path = '$glob -> Hash["user:42"] -> Session'
    expect(in_child(<<~'RUBY')).to eq([path, path, path, "true", "true", path])
      Session = Struct.new(:user)
      $glob = { "user:42" => Session.new("Ann") }
      def ask(held)
        capture = Memprof::Heap.capture
        object = capture.object(held)
        asked = capture.ask(:path, to: object)
        puts capture.path_to(held), asked[:sentence], capture.ask(:object, of: object)[:path][:sentence]
        puts asked[:steps].map { |step| step[:id] } == capture.path_to(held).map(&:id)
        puts asked[:steps].map { |step| step[:label] } == capture.path_to(held).map(&:label)
        puts capture[object.id].path
      end
      ask($glob["user:42"])
    RUBY
  end

  it "names the global variable that retains most" do
    expect(in_child(<<~'RUBY')).to eq(["20000 String $glob -> Array[*]"])
      $glob = Array.new(20_000) { |number| "text number #{number}, too long for its slot" * 4 }
      largest = Memprof::Heap.capture.leaks[:findings].first
      puts [*largest[:count], largest[:class], *largest[:retained_by]].join(" ")
    RUBY
  end

  it "passes over local variables of who asks, also those that a binding has" do
    expect(in_child(<<~'RUBY')).to eq(["CACHE -> Array[0] -> Object"] * 2)
      CACHE = [Object.new]
      held = CACHE[0]
      puts Memprof::Heap.capture.path_to(held)
      def in_binding
        inner = CACHE[0]
        binding.eval("Memprof::Heap.capture.path_to(inner)")
      end
      puts in_binding
    RUBY
  end

  it "returns a path from the stack only if nothing else references the object" do
    expect(in_child(<<~'RUBY')).to eq(["vm", "true", "true"])
      class Holder
        def initialize = @kept = Object.new
        def ask = Memprof::Heap.capture.path_to(@kept)
      end
      path = Holder.new.ask
      puts path.root.name
      puts path.map(&:class_name).include?("Thread")
      puts path.to_s.end_with?("Holder@kept -> Object")
    RUBY
  end

  it "knows sizes, referrers and contents of live objects" do
    expect(in_child(<<~'RUBY')).to eq(%w[[:key] true true 3 value BasicObject live true])
      HOLDER = { key: "value".dup }
      STRINGS = Array.new(100) { "x" * 1000 }
      basic = BasicObject.new
      list = [1, 2, 3]
      capture = Memprof::Heap.capture
      puts capture.referrers(HOLDER[:key]).map(&:label)
      puts capture.retained(STRINGS) > 100_000
      puts capture.retained(STRINGS) == capture.object(STRINGS).retains.sum(:size)
      puts capture.object(list).length
      puts capture.object(HOLDER[:key]).value
      puts capture.object(basic).class_name
      puts capture.source[:format]
      puts capture.object(capture.object(HOLDER)) == capture.object(HOLDER)
    RUBY
  end

  it "says so if an object is none of its" do
    expect(in_child(<<~'RUBY')).to eq(<<~TEXT.lines(chomp: true))
      old = Object.new
      capture = Memprof::Heap.capture
      fresh = Array.new(3) { Class.new.new } << Object.new
      def why
        yield
      rescue StandardError => e
        puts "#{e.class}: #{e.message}"
      end
      why { capture.path_to(fresh.last) }
      [3, nil, true, :static, 1.5].each { |value| why { capture.object(value) } }
      puts capture.moved?
      GC.compact
      puts capture.moved?
      why { capture.retained(old) }
    RUBY
      Memprof::Error: Object was allocated after the heap was captured; capture it again
      ArgumentError: 3 is not an object on the heap
      ArgumentError: nil is not an object on the heap
      ArgumentError: true is not an object on the heap
      ArgumentError: :static is not an object on the heap
      ArgumentError: 1.5 is not an object on the heap
      false
      true
      Memprof::Error: objects were moved (GC.compact) after the heap was captured; capture it again
    TEXT
  end

  it "sees only what is alive, unless asked not to collect" do
    expect(in_child(<<~'RUBY')).to eq(%w[true true])
      class Dropped; end
      def drop(count) = count.times { Dropped.new }
      GC.start
      GC.disable
      drop(1000)
      puts Memprof::Heap.capture(gc: false).where("class = Dropped").size >= 1000
      GC.enable
      puts Memprof::Heap.capture.where("class = Dropped").size < 10
    RUBY
  end

  it "keeps nothing alive" do
    expect(in_child(<<~'RUBY')).to eq(%w[true true])
      class Kept; end
      require "objspace"
      def take
        kept = Array.new(100) { Kept.new }
        Memprof::Heap.capture.tap { |capture| puts capture.where("class = Kept").size == 100 && kept.size == 100 }
      end
      capture = take
      3.times { GC.start }
      puts ObjectSpace.each_object(Kept).count < 10
    RUBY
  end

  it "works while other threads allocate, and again and again" do
    expect(in_child(<<~'RUBY')).to eq(%w[true true])
      # What it takes is loaded before others compete for the lock.
      Memprof::Heap.capture
      stop = false
      threads = Array.new(2) { Thread.new { Array.new(1000) { |number| "text #{number}" } until stop } }
      sizes = Array.new(2) { Memprof::Heap.capture.size }
      stop = true
      threads.each(&:join)
      puts sizes.min > 1000
      GC.start
      rss = -> { File.read("/proc/self/statm").split[1].to_i * 4096 rescue 0 }
      before = rss.call
      20.times { Memprof::Heap.capture.retained(threads) }
      GC.start
      puts rss.call - before < 100 << 20
    RUBY
  end

  it "works in a forked process, and beside tracking" do
    expect(in_child(<<~'RUBY')).to eq(["HELD -> Array[0] -> Object", "-e:2", "true"])
      Memprof.start
      HELD = [Object.new]
      capture = Memprof::Heap.capture
      pid = fork { puts Memprof::Heap.capture.path_to(HELD[0]); $stdout.flush; exit!(capture.strings.size > 10) }
      Process.wait(pid)
      puts capture.object(HELD[0]).location.sub(/:\d+/) { ":2" }
      puts $?.success?
    RUBY
  end

  it "is for the main Ractor to take, and for all to ask" do
    expect(in_child(<<~'RUBY')).to eq(["Memprof::Unsupported", "true", "true"])
      Warning[:experimental] = false
      # Other Ractors may not load it.
      Memprof::Heap
      value = ->(ractor) { ractor.respond_to?(:value) ? ractor.value : ractor.take }
      puts value.(Ractor.new { Memprof::Heap.capture rescue $!.class })
      capture = Ractor.make_shareable(Memprof::Heap.capture)
      size = value.(Ractor.new(capture) { |heap| heap.strings.where("length > 10").first(3).map(&:inspect).size })
      puts size == 3
      puts value.(Ractor.new(capture) { |heap| heap.overview[:objects][:count] == heap.size })
    RUBY
  end

  it "yields the stages, and raises what the block raises" do
    expect(in_child(<<~'RUBY')).to eq(["stopped", "true"])
      # Enough for more than a tenth of a second.
      KEPT = Array.new(600_000) { |number| [number.to_s] }
      begin
        Memprof::Heap.capture { |stage, _, _| throw :never if stage == :none; raise "stopped" }
        puts "stopped"
      rescue RuntimeError => e
        puts e.message
      end
      puts Memprof::Heap.capture.object(KEPT).length == 600_000
    RUBY
  end

  it "loads nothing late, and says why, if there is no place for its file" do
    reason = "cannot capture the heap: cannot create a temporary file: none"
    expect(in_child(<<~'RUBY')).to eq(["true", reason])
      require "memprof/everything"
      require "json" # which memprof itself loads with the first dump or capture
      $LOAD_PATH.clear
      puts Memprof::Heap.capture.size > 10_000
      require_count = $LOADED_FEATURES.size
      def Dir.tmpdir = raise(ArgumentError, "none")
      begin
        Memprof::Heap.capture
      rescue Memprof::Error => e
        puts e.message[/\A[^;]+/]
      end
      abort("loaded #{$LOADED_FEATURES.last}") if $LOADED_FEATURES.size != require_count
    RUBY
  end

  it "leaves neither file nor descriptor when the thread is ended" do
    skip "no /proc here" unless File.exist?("/proc/self/fd")
    Dir.mktmpdir do |directory|
      expect(in_child(<<~'RUBY', env: { "TMPDIR" => directory })).to eq(["[]", "0"])
        Memprof::Heap.capture
        open = -> { Dir.children("/proc/self/fd").size }
        GC.start
        before = open.call
        12.times do |round|
          thread = Thread.new { loop { Memprof::Heap.capture(gc: false) } }
          sleep(0.01 * round)
          thread.kill.join
        end
        # The collector closes what the last capture had open, unless a word on the stack looks like it.
        100.times do
          GC.start
          break if open.call <= before
          Array.new(100) { |number| Thread.new { number.to_s * 2 }.value }
          sleep(0.05)
        end
        p Dir.children(ENV.fetch("TMPDIR"))
        puts [open.call - before, 0].max
      RUBY
    end
  end

  it "is complete if the process forks meanwhile, and the child ends" do
    skip "no fork here" unless Process.respond_to?(:fork)
    expect(in_child(<<~'RUBY')).to eq(["true", '"what is in it"'])
      $text = "what is in it".dup
      # Enough for more than a tenth of a second.
      KEPT = Array.new(600_000) { |number| [number.to_s] }
      forked = nil
      capture = Memprof::Heap.capture { forked ||= fork { exit } }
      Process.wait(forked)
      puts $?.success?
      p capture.object($text).value
    RUBY
  end
end
