# frozen_string_literal: true

RSpec.describe "What one session knows of classes and frames, and the next finds" do
  def lines_of(code, **options)
    result = run_ruby(<<~RUBY, **options)
      require "memprof"
      # Lines of stats about these classes, as [objects, class].
      def seen(*classes, &block)
        rows = nil
        Memprof.const_get(:Session).run(scope: :thread) do |session|
          block.call
          session.finish
          rows = session.stats.map { |count, _file, _line, name| [count, name] }
        end
        rows.select { |_, name| classes.include?(name) }
      end
      #{code}
    RUBY
    expect(result.stderr).to eq("")
    expect(result).to be_success
    result.stdout.lines.map(&:chomp)
  end

  it "has no number of the sessions before it, whatever the collector did in between" do
    expect(lines_of(<<~RUBY)).to eq(["true"])
      Thing = Class.new
      between = [-> {}, -> { GC.start }, -> { GC.compact if GC.respond_to?(:compact) },
        -> { GC.start(full_mark: false, immediate_sweep: false) }, -> { Array.new(5_000) { "x" * 50 } }]
      wrong = (1..300).reject do |number|
        kept = []
        rows = seen("Thing") { (number % 7 + 1).times { kept << Thing.new } }
        between[number % 5].call
        rows == [[number % 7 + 1, "Thing"]]
      end
      puts wrong.empty? || wrong.inspect
    RUBY
  end

  it "renames a class that was anonymous, or had a temporary name" do
    expect(lines_of(<<~RUBY)).to eq(['[[1, "#<Class>"]]', '[[1, "Late"]]', "true"])
      made = Class.new(BasicObject)
      make = -> { $kept = made.allocate }
      p seen("#<Class>", "#<Class < BasicObject>", "Late", &make).map { |count, _| [count, "#<Class>"] }
      Late = made
      p seen("Late", &make)
      holder = Module.new
      holder::Inner = Class.new
      inner = holder::Inner
      make = -> { $kept = inner.new }
      seen(&make)
      Outer = holder
      p seen("Outer::Inner", &make) == [[1, "Outer::Inner"]] || RUBY_VERSION < "3.2"
    RUBY
  end

  it "names the method of this session, also where another had its file, name and line before" do
    expect(lines_of(<<~RUBY)).to eq(%w[First#make Second#make First#make])
      names = %i[First Second First].map do |name|
        Object.send(:remove_const, name) if Object.const_defined?(name)
        made = Object.const_set(name, Class.new { class_eval("def make = Object.new", "made.rb", 1) })
        report = Memprof.report(trace: Object) { $kept = made.new.make }
        GC.start
        report.find { |site| site.file == "made.rb" }.method_name
      end
      puts names
    RUBY
  end

  it "stays small over 100,000 requests that each bring a class and code of their own" do
    result = lines_of(<<~RUBY, timeout: 900)
      require "memprof/middleware"
      nowhere = Object.new
      def nowhere.write(text) = text.bytesize
      app = ->(env) do
        eval("[Class.new.new, Object.new]", nil, "request_\#{env[:number]}.rb", 1)
        [200, {}, []]
      end
      tracked = Memprof::Middleware.new(app, io: nowhere)
      sizes = (1..100_000).map do |number|
        tracked.call({ number: number })
        number % 500 == 0 ? Memprof.const_get(:Native).memsize : 0
      end
      puts sizes.max < 20 * 1024 * 1024 || sizes.max
    RUBY
    expect(result).to eq(["true"])
  end

  it "is dropped when several collections pass without a session" do
    expect(lines_of(<<~RUBY)).to eq(["true"])
      code = (1..6_000).map { |line| "Object.new\\n" }.join
      native = Memprof.const_get(:Native)
      seen { eval(code, nil, "long.rb") }
      before = native.memsize
      20.times { GC.start }
      puts native.memsize < before / 10 || [before, native.memsize].inspect
    RUBY
  end

  it "does not keep classes and code alive for long" do
    expect(lines_of(<<~RUBY)).to eq(["true"])
      classes = ObjectSpace::WeakMap.new
      200.times do |number|
        made = Class.new
        Object.const_set(:"Made\#{number}", made)
        classes[number.to_s.freeze] = made
        seen { made.class_eval("def make = new", "made.rb"); made.new }
        Object.send(:remove_const, :"Made\#{number}")
      end
      made = nil
      10.times { GC.start }
      puts classes.size < 20 || classes.size
    RUBY
  end
end
