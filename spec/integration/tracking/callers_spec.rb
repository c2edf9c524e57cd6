# frozen_string_literal: true

require "json"
require "tmpdir"

# The line of the application behind an object that library code allocates: the VM's own backtrace says which.
RSpec.describe "The line of the application that called a library" do
  # A gem, as its path says. Each of its methods passes on what it is called with, in a way of its own.
  library = <<~'RUBY'
    module Library
      KEPT = {}.compare_by_identity
      STEPS = %i[direct block sent defined evaluated lazily missing rescued sorted].freeze

      # The object is made on the line that asks for the backtrace.
      def self.keep
        made, stack = Object.new, caller_locations(0)
        KEPT[made] = stack.find { |frame| frame.path == "app.rb" }&.lineno
      end

      def self.go(steps) = steps.empty? ? keep : public_send(steps.first, steps.drop(1))
      def self.direct(steps) = go(steps)
      def self.block(steps) = [steps].each { |rest| go(rest) }
      def self.sent(steps) = method(:go).to_proc.call(steps)
      define_singleton_method(:defined) { |steps| go(steps) }
      def self.evaluated(steps) = eval("\n\ngo(steps)", binding, __FILE__, 70)
      def self.lazily(steps) = Enumerator.new { |out| out << go(steps) }.next
      def self.method_missing(name, *steps) = name == :unknown ? go(steps.first) : super
      def self.respond_to_missing?(name, all = false) = name == :unknown || super
      def self.missing(steps) = unknown(steps)
      def self.sorted(steps) = [1, 2].sort_by { |number| number == 1 ? (go(steps); 0) : 1 }

      def self.rescued(steps)
        raise ArgumentError
      rescue ArgumentError
        go(steps)
      ensure
        go([])
      end

      def self.warm = Object.new
      def self.deep(levels) = levels.zero? ? keep : deep(levels - 1)

      def self.dump(path)
        GC.start
        Memprof.dump_all(path)
        made = KEPT.to_h { |object, line| [JSON.parse(ObjectSpace.dump(object))["address"], line] }
        File.write("truth.json", JSON.generate(made))
      end
    end
  RUBY

  # Says by address which line the dump has, and which the VM's backtrace had.
  define_method(:callers) do |application|
    Dir.mktmpdir do |directory|
      path = File.join(directory, "gems/library-1.0/lib")
      FileUtils.mkdir_p(path)
      File.write(File.join(path, "library.rb"), library)
      File.write(File.join(directory, "app.rb"), application)
      options = ["-I#{ChildRuby::LIB}", "-I#{path}", "-rjson", "-robjspace", "-rmemprof", "-rlibrary"]
      result = run_command(RbConfig.ruby, *options, "app.rb", chdir: directory)
      raise result.stderr unless result.success?

      truth = JSON.parse(File.read(File.join(directory, "truth.json")))
      found = File.foreach(File.join(directory, "out.json")).filter_map do |line|
        object = JSON.parse(line)
        [object["_id"], object.values_at("caller_file", "caller_line")] if truth.key?(object["_id"])
      end
      [found.to_h, truth.transform_values { |line| line ? ["app.rb", line] : [nil, nil] }]
    end
  end

  calls = <<~RUBY
    random = Random.new(11)
    50.times { Library.warm } # by the first ones memprof checks how the VM lays out its frames
    call = {
      0 => ->(steps) { Library.go(steps) },
      1 => ->(steps) { [1].each { Library.go(steps) } },
      2 => ->(steps) { Fiber.new { Library.go(steps) }.resume },
      3 => ->(steps) {
        Thread.new { Library.go(steps) }.join
      },
      4 => ->(steps) { eval("Library.go(steps)", binding, "app.rb", 90) },
      5 => ->(steps) { Library.method(:go).to_proc.call(steps) },
      6 => Library.method(:go)
    }
  RUBY

  [1, 3].each do |stack|
    it "is that of the innermost of its frames, with stacks of up to #{stack}" do
      found, truth = callers(<<~RUBY)
        Memprof.start(stack: #{stack})
        #{calls}
        400.times { |number| call.values.sample(random: random).call(Library::STEPS.sample(number % 6, random: random)) }
        Library.dump("out.json")
      RUBY
      expect(found.size).to be > 400
      expect(found).to eq(truth)
    end
  end

  it "is the same when frames move and when code is freed" do
    skip "this Ruby does not compact" unless GC.respond_to?(:compact)
    found, truth = callers(<<~RUBY)
      Memprof.start
      #{calls}
      200.times do |number|
        eval("def call_it(steps)\n \#{"\n" * number} Library.go(steps)\nend", binding, "app.rb", 1000)
        call_it(Library::STEPS.sample(3, random: random))
        Object.send(:remove_method, :call_it) if number.even?
        [-> { GC.start }, -> { GC.compact }][number % 2].call if number % 20 < 2
      end
      Library.dump("out.json")
    RUBY
    expect(found.size).to be > 200
    expect(found).to eq(truth)
  end

  it "is the same when the collector runs at each allocation" do
    found, truth = callers(<<~RUBY)
      Memprof.start
      #{calls}
      GC.stress = true
      call.each_value { |way| way.call(%i[block evaluated rescued]) }
      GC.stress = false
      Library.dump("out.json")
    RUBY
    expect(found).to eq(truth)
  end

  it "is not looked for too far out, nor where the application itself allocates" do
    found, truth = callers(<<~RUBY)
      Memprof.start
      50.times { Library.warm }
      Library.go([])
      Library.deep(200)
      Library.deep(2_000)
      Library::KEPT[Object.new] = nil
      Library.dump("out.json")
    RUBY
    expect(found.values).to contain_exactly(["app.rb", 3], ["app.rb", 4], [nil, nil], [nil, nil])
    expect(truth.values.compact.flatten.compact.grep(Integer)).to contain_exactly(3, 4, 5)
  end
end
