# frozen_string_literal: true

require "json"
require "tmpdir"

# Programs that leak, each in a way that was reported of real ones, and programs that do not. Each is dumped
# three times; what `memprof leaks` says of the dumps has to name what the program was written to do.
RSpec.describe "memprof leaks, of several dumps" do
  include ChildRuby

  looking = <<~'RUBY'
    require "memprof"
    Memprof.start
    def look
      GC.start
      Memprof.dump_all("#{$looks = $looks.to_i + 1}.memprof")
    end
    # A line of which the dump has objects.
  RUBY

  # The answer in JSON, and as text. Lines of a program count from 1.
  define_method(:verdict) do |program|
    Dir.mktmpdir do |directory|
      File.write(File.join(directory, "looking.rb"), looking)
      File.write(File.join(directory, "app.rb"), program)
      ran = run_ruby(File.join(directory, "app.rb"), ruby_args: ["-r./looking.rb"], chdir: directory)
      raise ran.stderr unless ran.success?

      files = %w[1.memprof 2.memprof 3.memprof]
      json = run_memprof("leaks", "--format", "json", *files, chdir: directory)
      text = run_memprof("leaks", *files, chdir: directory)
      expect([json.status.exitstatus, text.status.exitstatus]).to eq([0, 0]), json.stderr + text.stderr
      [JSON.parse(json.stdout, symbolize_names: true), text.stdout.gsub(/\n +/, " ")]
    end
  end

  def holder(finding)
    finding[:retained_by].map { |part| part.is_a?(Hash) ? "#{part[:file]}:#{part[:line]}" : part }.join
  end

  def lines(finding)
    [*finding[:lines], finding[:own]].compact.map { |line| line[:line] }
  end

  leaks = {
    "a hash of a module" => [<<~'RUBY', "String", "Cache::STORE -> Hash[*]", 3, nil],
      module Cache
        STORE = {}
        def self.fetch(n) = STORE["key #{n}"] ||= "value #{n} " * 30
      end
      3.times { |round| 2000.times { |n| Cache.fetch(round * 2000 + n) }; look }
    RUBY
    "the same behind 40 idle threads" => [<<~'RUBY', "String", "Cache::STORE -> Hash[*]", 3, nil],
      module Cache
        STORE = {}
        def self.fetch(n) = STORE["key #{n}"] ||= "value #{n} " * 30
      end
      40.times { Thread.new { Queue.new.pop } }
      3.times { |round| 2000.times { |n| Cache.fetch(round * 2000 + n) }; look }
    RUBY
    "collections of many like holders" =>
      [<<~'RUBY', "String", "TENANTS -> Hash[*] -> Tenant@notes -> Array[*]", 3, nil],
        class Tenant
          def initialize = @notes = []
          def note(n) = @notes << "note number #{n} " * 2
        end
        TENANTS = (1..100).to_h { |id| [id, Tenant.new] }
        3.times { TENANTS.each_value { |tenant| 40.times { |n| tenant.note(n) } }; look }
      RUBY
    "arrays of a hash that were there before" => [<<~'RUBY', "String", "SUBS -> Hash[*] -> Array[*]", 2, nil],
      SUBS = Hash.new { |hash, key| hash[key] = [] }
      def subscribe(n) = SUBS[n % 50] << "subscriber number #{n} " * 3
      3.times { 5000.times { |n| subscribe(n) }; look }
    RUBY
    "blocks of at_exit" => [<<~'RUBY', "Proc", "root end_proc", 3, "at_exit keeps its block"],
      class Client
        def initialize = @buffer = "x" * 2000
        def open = at_exit { @buffer.clear }
      end
      3.times { 500.times { Client.new.open }; look }
      exit!(0)
    RUBY
    "exceptions with their receivers" => [<<~'RUBY', "NoMethodError", "RECENT -> Array[*]", 3, "receiver"],
      RECENT = []
      class Document
        def initialize = @paragraphs = Array.new(50) { |n| "paragraph #{n} " * 5 }
      end
      def render = Document.new.title
      3.times { 200.times { render rescue RECENT << $! }; look }
    RUBY
    "slices that share a longer string" => [<<~'RUBY', "String", "SEEN -> Array[*]", 3, "shared"],
      SEEN = []
      def receive(n)
        SEEN << ("#{"x" * 60_000}#{n}")[-100..]
      end
      3.times { 200.times { |n| receive(n) }; look }
    RUBY
    "threads that wait for ever" => [<<~'RUBY', "Thread", "root vm", 4, "threads that do not end; one is at"],
      class Batch
        def initialize
          @queue, @lines = Queue.new, Array.new(100) { |n| "line #{n} " * 4 }
          Thread.new { @lines << @queue.pop }
        end
      end
      def wait = Thread.list.drop(1).each { |thread| Thread.pass until thread.stop? }
      3.times { 25.times { Batch.new }; wait; look }
    RUBY
    "a thread-local that is not reset" =>
      [<<~'RUBY', "Hash", "Thread[:trail] -> Array[*]", 2, "its local [:trail] is not reset"],
        JOBS, DONE = Queue.new, Queue.new
        def note(n) = (Thread.current[:trail] ||= []) << { event: n, tags: ["job", "event #{n}"] }
        WORKER = Thread.new { while (n = JOBS.pop) do note(n); DONE << n end }
        3.times { 1000.times { |n| JOBS << n; DONE.pop }; look }
      RUBY
    "blocks that capture" => [<<~'RUBY', "Proc", "PENDING -> Array[*]", 3, "app.rb:4 captures local lines"],
      PENDING = []
      def order(n)
        lines = Array.new(30) { |line| "order #{n} line #{line}" }
        PENDING << -> { lines.size }
      end
      3.times { 300.times { |n| order(n) }; look }
    RUBY
    "a memo by instance" => [<<~'RUBY', "Report", "MEMO -> Hash[key]", 4, "each is a key of a Hash"],
      MEMO = {}.compare_by_identity
      Report = Class.new { def initialize = @rows = Array.new(30) { |n| "row #{n} of a report" } }
      def total(report) = MEMO[report] ||= 1
      def request = total(Report.new)
      3.times { 300.times { request }; look }
    RUBY
    "singleton classes" => [<<~'RUBY', "Row", "ROWS -> Array[*]", 5, "each has a singleton class"],
      Row = Class.new
      ROWS = []
      def import(n)
        row = Row.new
        8.times { |column| row.define_singleton_method(:"column_#{column}") { n } }
        ROWS << row
      end
      3.times { 100.times { |n| import(n) }; look }
    RUBY
    "modules that extend one object" => [<<~'RUBY', "#<Class>", "CONNECTION", 3, "singleton class keeps"],
      CONNECTION = Object.new
      def query(names)
        CONNECTION.extend(Module.new { names.each { |name| define_method(name) { |value| value } } })
      end
      3.times { |round| 200.times { |n| query(["a#{round}_#{n}", "b#{round}_#{n}"]) }; look }
    RUBY
    "an array of numbers" => [<<~'RUBY', "Array", "SEEN", nil, nil]
      SEEN = []
      3.times { 100_000.times { |n| SEEN << n }; look }
    RUBY
  }

  leaks.each do |what, (program, of_class, retained_by, line, why)|
    it "names what leaks: #{what}" do
      answer, text = verdict(program)
      finding = answer[:findings].first
      expect(finding).not_to be_nil, text
      expect(finding[:class][/\A\S+/]).to eq(of_class), text
      expect(holder(finding)).to include(retained_by), text
      expect(lines(finding)).to include(line), text if line
      expect(finding[:why]).to include(why), text if why
      expect(text.lines.size).to be <= 30
      expect(text).to include(finding[:why].to_s)
    end
  end

  it "names each line that allocates a good part" do
    _, text = verdict(<<~'RUBY')
      KEPT = []
      def load = KEPT << "x" * 2000
      def read = KEPT << "y" * 1000
      3.times { 200.times { load; read }; look }
    RUBY
    expect(text).to match(/Allocated at +app\.rb:2 in load: String .*; app\.rb:3 in read: String /)
  end

  it "says so where only native memory grows, and what shows its lines" do
    skip "fiddle is not installed" unless run_ruby("require 'fiddle'").success?
    answer, text = verdict(<<~'RUBY')
      require "fiddle"
      3.times { 3000.times { Fiddle.malloc(2000) }; look }
    RUBY
    skip "no /proc/self/smaps" unless answer[:memory]
    expect(text).to start_with("No Ruby object grows, native memory does")
    expect(text.tr("\n", " ")).to include("`memprof attach PID --malloc` shows which lines allocate it")
  end

  healthy = {
    "an idle program" => <<~'RUBY',
      require "json"
      require "net/http"
      3.times { 100.times { JSON.parse('{"a":[1,2]}') }; look }
    RUBY
    "a cache that turns over" => <<~'RUBY',
      LRU = {}
      def fetch(n) = (LRU[n] = "value #{n} " * 20) && LRU.size > 1000 && LRU.shift
      n = 0
      3000.times { fetch(n += 1) }
      3.times { 3000.times { fetch(n += 1) }; look }
    RUBY
    "threads that come and go" => <<~'RUBY',
      3.times { 50.times { Thread.new { Array.new(100) { |n| "text #{n}" } }.join }; look }
    RUBY
    "a pool of threads at work" => <<~'RUBY'
      JOBS, DONE = Queue.new, Queue.new
      20.times { Thread.new { loop { n = JOBS.pop; Array.new(n % 100) { |i| "#{i}" * 20 }; DONE << n } } }
      3.times { 2000.times { |n| JOBS << n }; 2000.times { DONE.pop }; look }
    RUBY
  }

  healthy.each do |what, program|
    it "accuses nothing in #{what}" do
      answer, text = verdict(program)
      expect(answer[:findings]).to eq([]), text
      expect(text).to start_with("Nothing grows")
    end
  end
end
