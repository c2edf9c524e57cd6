# frozen_string_literal: true

# What memprof counts, against what Ruby itself says.
RSpec.describe "Tracking" do
  it "agrees with ObjectSpace on every live object, by file, line and class" do
    result = run_ruby(<<~'RUBY')
      require "memprof"
      require "objspace"
      Point = Struct.new(:x, :y)
      ObjectSpace.trace_object_allocations_start
      Memprof.start
      kept = []
      3000.times do |n|
        kept << Point.new(n.to_s, [n, Object.new]) << { n => "v#{n}" } << Class.new
        kept.shift(3) if n % 3 == 0
        "garbage #{n}" * 3
      end
      GC.start
      session = Memprof.instance_variable_get(:@session)
      ours = session.stats.reject { |_, _, _, name| name.start_with?("<") || name == "Enumerator" }
      ObjectSpace.trace_object_allocations_stop
      theirs = Hash.new(0)
      ObjectSpace.each_object(BasicObject) do |object|
        file = ObjectSpace.allocation_sourcefile(object)
        theirs[[file, ObjectSpace.allocation_sourceline(object), Kernel.instance_method(:class).bind_call(object).name]] += 1 if file == __FILE__
      end
      lines = 7..9
      ours = ours.to_h { |count, file, line, name| [[file, line, name], count] }.select { |(_, line, _), _| lines.cover?(line) }
      theirs = theirs.select { |(_, line, _), _| lines.cover?(line) }
      # ObjectSpace hides singleton classes, and has no class for an object of an anonymous one.
      ours = ours.reject { |(_, _, name), _| name == "Class" }
      theirs = theirs.reject { |(_, _, name), _| name == "Class" }
      p ours.values.sum
      puts ours == theirs || [ours.to_a - theirs.to_a, theirs.to_a - ours.to_a].inspect
    RUBY
    expect(result.stderr).to eq("")
    count, same = result.stdout.lines(chomp: true)
    expect([count.to_i > 10_000, same]).to eq([true, "true"])
  end

  it "agrees with GC.stat on how many objects a block allocates" do
    result = run_ruby(<<~'RUBY')
      require "memprof"
      def work = 5000.times.map { |n| [n.to_s, { n => Object.new }] }.size
      work
      before = GC.stat(:total_allocated_objects)
      work
      stat = GC.stat(:total_allocated_objects) - before
      puts stat, Memprof.report { work }.total_allocated
    RUBY
    stat, ours = result.stdout.lines.map(&:to_i)
    # The VM's inline caches are made once.
    expect(ours).to be_within(10).of(stat)
  end

  it "agrees with ObjectSpace.memsize_of on what is retained" do
    result = run_ruby(<<~'RUBY')
      require "memprof"
      require "objspace"
      kept = nil
      report = Memprof.report { kept = Array.new(100) { |n| "x" * (n * 10) } + [Array.new(1000), { 1 => 2 }] }
      theirs = kept.sum { |object| ObjectSpace.memsize_of(object) } + ObjectSpace.memsize_of(kept)
      ours = report.retained_memory_by_class.reject { |row| row[:data].start_with?("<") }.sum { |row| row[:count] }
      puts theirs, ours
    RUBY
    theirs, ours = result.stdout.lines.map(&:to_i)
    expect(ours).to eq(theirs)
  end

  it "agrees with ObjectSpace.memsize_of on what is freed, also while the heap is compacted" do
    result = run_ruby(<<~'RUBY')
      require "memprof"
      require "objspace"
      X = "x"
      BIG = Array.new(41) { |n| 1 << (n * 100) }
      Seven = Struct.new(:a, :b, :c, :d, :e, :f, :g)
      class Wide
        def initialize = 30.times { |n| instance_variable_set(:"@v#{n}", n) }
      end
      # In this program Ruby 3.1 itself marks a freed method entry then, also without a report.
      GC.auto_compact = true if GC.respond_to?(:auto_compact=) && RUBY_VERSION >= "3.2"
      {
        String: ->(n) { X * (n * 100) },
        Array: ->(n) { Array.new(n * 10) },
        Hash: ->(n) { (0..n).to_h { |key| [key, n] } },
        Seven: ->(n) { Seven.new(n) },
        Wide: ->(_) { Wide.new },
        Integer: ->(n) { -BIG[n] },
        MatchData: ->(n) { ("ab" * n).match(/(?<first>a)(b)(.*)/) },
        Regexp: ->(n) { Regexp.new("a|b{#{n}}(c*)") }
      }.each do |name, make|
        klass = Object.const_get(name)
        make.(1) # what only the first call makes
        theirs = (2..40).sum { |n| ObjectSpace.memsize_of(make.(n)) }
        report = Memprof.report(trace: klass) do
          (2..40).each(&make)
          GC.start
        end
        sites = report.sites
        ours = sites.sum(&:allocated_bytes)
        freed = sites.sum(&:freed_objects)
        p [name, freed, ours - theirs] unless freed >= 37 && ours == theirs
      end
    RUBY
    expect([result.stderr, result.stdout]).to eq ["", ""]
  end

  it "counts freed objects with their bytes and their age in collections" do
    result = run_ruby(<<~'RUBY')
      require "memprof"
      report = Memprof.report do
        100.times { Object.new }
        GC.start
        kept = Array.new(10) { Object.new }
        3.times { GC.start }
        kept.clear
      end
      site = ->(line) { report.sites.find { |s| s.line == line && s.class_name == "Object" } }
      dead, aged = site[3], site[5]
      p [dead.freed_objects, dead.freed_bytes, dead.max_age <= 1]
      p [aged.allocated_objects, aged.max_age >= 3, aged.freed_objects.between?(8, 10)]
    RUBY
    expect(result.stdout).to eq("[100, 4000, true]\n[10, true, true]\n")
  end
end
