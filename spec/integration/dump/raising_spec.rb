# frozen_string_literal: true

# Functions of the VM that raise while its heap is read. In processes of their own: an exception that jumps
# over the extension leaves the collector off, or a forked child that goes on as a second copy of the program.
RSpec.describe "A heap whose objects make the VM raise" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  # What must hold after each of them.
  let(:checks) { <<~RUBY }
    def sound?
      was_disabled = GC.disable
      GC.enable
      !was_disabled && $$ == PROGRAM
    end
    PROGRAM = $$
  RUBY

  it "reads objects that were allocated and not initialized, of every class" do
    # Ruby 4.0 warns where an IO::Buffer is allocated.
    result = run_ruby(<<~RUBY, ruby_args: ["-W:no-experimental"])
      require "memprof"
      require "date"
      require "socket"
      require "stringio"
      #{checks}
      kept = ObjectSpace.each_object(Class).filter_map do |klass|
        klass.allocate unless klass.singleton_class?
      rescue StandardError
        nil
      end
      raise "too few" if kept.size < 100 || kept.grep(Fiber).empty?

      %i[memprof objspace binary heap_dump].each do |format|
        written = [false, true].map { |fork| Memprof.dump_all("heap", format: format, fork: fork).objects }
        puts "\#{format} \#{sound?} \#{written.all? { |objects| objects > 10_000 }}"
      end
      Memprof::Heap.capture.object(kept.grep(Fiber).first).class_name.then { |name| puts name }
      Memprof.iseqs
      Memprof.count_objects("Object")
      report = Memprof.report { kept << Fiber.allocate << Regexp.allocate << Enumerator.allocate }
      puts report.total_retained >= 3, sound?
    RUBY
    expect(result.stderr).to eq("")
    expect(result.stdout).to eq(<<~TEXT)
      memprof true true
      objspace true true
      binary true true
      heap_dump true true
      Fiber
      true
      true
    TEXT
  end

  it "says nothing of an uninitialized fiber but that it is there" do
    result = run_ruby(<<~RUBY)
      require "memprof"
      empty, ready = Fiber.allocate, Fiber.new {}
      Memprof.dump_all("heap.json")
      require "json"
      records = File.foreach("heap.json").map { |line| JSON.parse(line) }.select { |record| record["class_name"] == "Fiber" }
      p records.map { |record| record["alive"] }.uniq.sort_by(&:to_s)
    RUBY
    expect(result.stdout).to eq("[nil, true]\n")
  end

  # The function of an extension's type that says what an object takes.
  it "continues where an extension's own function raises" do
    result = run_ruby(<<~RUBY)
      begin
        require "fiddle"
      rescue LoadError
        puts "no fiddle"
        exit
      end
      require "memprof"
      #{checks}
      class Raising < Fiddle::Closure
        def call(_) = raise(IOError, "asked for its size")
      end
      SIZE = Raising.new(Fiddle::TYPE_LONG_LONG, [Fiddle::TYPE_VOIDP])
      NAME = Fiddle::Pointer["raising"]
      # rb_data_type_t: name, mark, free, size, compact, reserved, parent, data, flags.
      TYPE = Fiddle::Pointer.malloc(72, Fiddle::RUBY_FREE)
      TYPE[0, 72] = [NAME.to_i, 0, 0, SIZE.to_i, 0, 0, 0, 0, 0].pack("J*")
      WRAP = Fiddle::Function.new(Fiddle::Handle::DEFAULT["rb_data_typed_object_wrap"],
        [Fiddle::TYPE_VOIDP] * 3, Fiddle::TYPE_VOIDP)
      class Wrapped; end
      Wrapped.undef_alloc_func if Wrapped.respond_to?(:undef_alloc_func)
      make = -> { Fiddle.dlunwrap(WRAP.call(Fiddle.dlwrap(Wrapped), NAME, TYPE).to_i) }

      kept = make.call
      %i[memprof objspace binary heap_dump].each do |format|
        [false, true].each { |fork| Memprof.dump_all("heap", format: format, fork: fork) }
      end
      puts sound?
      puts Memprof::Heap.capture.object(kept).memsize > 0
      report = Memprof.report { kept = [kept, make.call] }
      puts report.retained_objects_by_class.any? { |row| row[:data] == "Wrapped" && row[:count] == 1 }
      puts sound?, $!.inspect
    RUBY
    skip "Ruby has no fiddle here" if result.stdout == "no fiddle\n"

    expect(result.stderr.lines.grep_v(/warning: undefining the allocator/)).to eq([]) # Ruby 3.2 and later
    expect(result.stdout).to eq("true\ntrue\ntrue\ntrue\nnil\n")
  end
end
