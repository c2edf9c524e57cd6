# frozen_string_literal: true

require "memprof/rspec"
require "objspace"

RSpec.describe Memprof::RSpec::AllocateAtMost do
  def fail_with(message)
    raise_error(RSpec::Expectations::ExpectationNotMetError, message)
  end

  # Bytes of a small object on this Ruby.
  let(:slot) { ObjectSpace.memsize_of(Object.new) }

  it "passes up to the limit" do
    expect { 12.times { Object.new } }.to allocate_at_most(12)
    expect { 12.times { Object.new } }.to allocate_at_most(100)
    expect { nil }.to allocate_at_most(0)
  end

  it "fails over the limit, and says what was expected, what was found, and where" do
    line = __LINE__ + 1
    block = -> { 12.times { Object.new } }
    expect { expect(&block).to allocate_at_most(2).objects }.to fail_with(<<~MESSAGE.chomp)
      expected block to allocate at most 2 objects, but it allocated 12 objects
        Objects  Bytes  Class   Allocated at
             12  #{12 * slot} B  Object  spec/memprof/rspec/allocate_at_most_spec.rb:#{line}
    MESSAGE
  end

  it "shows the sites that allocated most, and how many more there are" do
    many = 15.times.map { |number| "#{number + 1}.times { Object.new }" }.join("\n")
    block = eval("-> { #{many} }", binding, "many.rb", 1) # rubocop:disable Security/Eval
    expect { expect(&block).to allocate_at_most(2) }.to fail_with(
      /120 objects\n.*Allocated at\n +15 .*many.rb:15\n +14 .*many.rb:14\n(.*\n){8}  ... and 5 more\Z/
    )
  end

  it "takes ranges" do
    expect { 3.times { Object.new } }.to allocate_at_most(2..5)
    expect { 3.times { Object.new } }.to allocate_at_most(3..)
    expect { expect { Object.new }.to allocate_at_most(2..5) }.to fail_with(
      /to allocate 2 to 5 objects, but it allocated 1 object\n/
    )
    expect { 6.times { Object.new } }.not_to allocate_at_most(2..5)
  end

  it "counts bytes, of freed objects too" do
    expect { "x" * 5000 }.to allocate_at_most(5000..5200).bytes
    expect { 3.times { "x" * 5000 } }.to allocate_at_most(15_000..15_600).memory
    expect { expect { "x" * 5000 }.to allocate_at_most(4000).bytes }.to fail_with(
      /to allocate at most 4000 bytes, but it allocated 5\d\d\d bytes\n/
    )
  end

  it "counts objects of some classes, with their subclasses" do
    stub_const("Text", Class.new(String))
    block = -> { [+"a", Text.new("b"), {}] }
    expect(&block).to allocate_at_most(2..2).objects.of(String)
    expect(&block).to allocate_at_most(1..1).of(Text)
    expect(&block).to allocate_at_most(2..2).of(Hash, Array)
    expect(&block).to allocate_at_most(2..2).of(Enumerable)
    expect(&block).to allocate_at_most(1..1).of("Text")
    expect { expect(&block).to allocate_at_most(1).of(Hash, Array) }.to fail_with(
      /at most 1 object of Hash or Array, but it allocated 2 objects of Hash or Array\n/
    )
  end

  it "takes limits by class, which a nearer class takes objects from" do
    block = -> { [+"a", +"b", Object.new] }
    expect(&block).to allocate_at_most({ String => 2, Array => 1 })
    expect(&block).to allocate_at_most({ Object => 1..1, String => 2..2, Array => 1..1 })
    expect(&block).to allocate_at_most({ String => { count: 2, size: 2 * slot } })
    expect(&block).to allocate_at_most({ String => 2 * slot }).bytes
    expect { expect(&block).to allocate_at_most({ String => 1, Array => 1 }) }.to fail_with(
      /at most 1 object of Array, but it allocated 2 objects of String and 1 object of Array\n/
    )
  end

  it "says in the negative what was not exceeded" do
    expect { 3.times { Object.new } }.not_to allocate_at_most(2)
    expect { expect { Object.new }.not_to allocate_at_most(2) }.to fail_with(
      /expected block not to allocate at most 2 objects, but it allocated 1 object\n.*Object/
    )
  end

  it "runs the block once to warm up, or as often as asked" do
    runs = 0
    expect { runs += 1 }.to allocate_at_most(0)
    expect(runs).to eq(2)
    expect { runs += 1 }.to allocate_at_most(0).warmup(3)
    expect(runs).to eq(6)
    expect { runs += 1 }.to allocate_at_most(0).warmup(0)
    expect(runs).to eq(7)
  end

  it "leaves out the VM's own objects unless asked for them" do
    block = -> { eval("1 + 1") }
    expect { expect(&block).to allocate_at_most(0).of("<iseq>") }.to fail_with(/[1-9] objects? of <iseq>/)
    expect { expect(&block).to allocate_at_most(0).with_internal_objects }.to fail_with(/<iseq>/)
    expect { expect(&block).to allocate_at_most(1000) }.not_to raise_error
  end

  it "joins with its like: one run serves both" do
    runs = 0
    block = -> { [+"a"].tap { runs += 1 } }
    expect(&block).to allocate_at_most(2).and retain_at_most(0)
    expect(&block).to allocate_at_most(0).or allocate_at_most(2).of(String)
    expect(&block).to(allocate_at_most(2) & retain_at_most(0) & allocate_at_most(1).of(Array))
    expect(runs).to eq(6)
    expect { expect(&block).to allocate_at_most(1).and allocate_at_most(0).of(Array) }.to fail_with(
      /at most 1 object, but.*\.\.\.and:.*no objects of Array/m
    )
  end

  it "joins with other block matchers, and then runs the block once only" do
    list = []
    expect { list << Object.new }.to allocate_at_most(1).and change(list, :size).by(1)
    expect { list << Object.new }.to change(list, :size).by(1).and allocate_at_most(1)
    expect { puts "hello" }.to output("hello\n").to_stdout.and allocate_at_most(100)
    expect { list << Object.new }.to change(list, :size).by(2).and allocate_at_most(1).warmup(1)
    expect do
      expect { list << Object.new }.to change(list, :size).by(1).and allocate_at_most(0)
    end.to fail_with(/at most|no objects, but it allocated 1 object/)
  end

  # The exception and its backtrace are allocated by the block, too.
  it "joins with matchers that rescue or catch, in either order" do
    stub_const("Thing", Class.new)
    failing = -> { 3.times.map { Thing.new }.then { raise KeyError, "gone" } }
    expect(&failing).to raise_error(KeyError).and allocate_at_most(3).of(Thing)
    expect(&failing).to allocate_at_most(3).of(Thing).and raise_error(KeyError, "gone")
    expect(&failing).to raise_error(KeyError).and retain_at_most(0).of(Struct)
    expect(&failing).to raise_error(KeyError).and allocate_at_most(100_000).bytes.warmup(2)
    expect { 2.times.map { Thing.new } && throw(:x) }.to throw_symbol(:x).and allocate_at_most(2).of(Thing)
    expect { expect(&failing).to allocate_at_most(3).of(Thing) }.to raise_error(KeyError)
    [
      [raise_error(KeyError).and(allocate_at_most(2).of(Thing)), /allocated 3/],
      [allocate_at_most(2).of(Thing).and(raise_error(KeyError)), /allocated 3/],
      [raise_error(TypeError).and(allocate_at_most(3).of(Thing)), /TypeError/]
    ].each do |matcher, message|
      expect { expect(&failing).to matcher }.to fail_with(message)
    end
  end

  it "does not count what the other matcher allocates" do
    expect { nil }.to change { Array.new(5) { Object.new }.size }.by(0).and allocate_at_most(0)
    expect { |probe| 3.times(&probe) }.to yield_successive_args(0, 1, 2).and allocate_at_most(50)
  end

  it "counts classes without a name" do
    nameless = Class.new(Array)
    expect { expect { nameless.new }.to allocate_at_most(0).of(nameless) }.to fail_with(/allocated 1 object/)
    expect { expect { nameless.new }.to allocate_at_most(0).of(Array) }.to fail_with(/allocated 1 object/)
    expect { nameless.new }.to allocate_at_most(0).of(String)
  end

  it "distinguishes anonymous classes" do
    nameless = Class.new(Array)
    child = nil
    expect { Class.new(Array).new }.to allocate_at_most(0).of(nameless)
    expect {
      expect { (child = Class.new(nameless)).new }.to allocate_at_most(0).of(nameless)
    }.to fail_with(/allocated 1 object/)
    expect {
      child.new
      nameless.new
    }.to allocate_at_most({ nameless => 1, child => 1 })
    expect { Class.new(nameless).new }.to perform_allocation({ nameless => 0 })
  end

  it "wants a block" do
    matcher = allocate_at_most(1)
    expect(matcher.matches?(5)).to be(false)
    expect(matcher.does_not_match?(5)).to be(false)
    expect(matcher.failure_message).to eq("expected a block to allocate at most 1 object, but got none")
    expect(matcher.supports_value_expectations?).to be(false)
  end

  it "refuses invalid input" do
    expect { allocate_at_most(:few) }.to raise_error(ArgumentError, /:few is not a limit/)
    expect { allocate_at_most({}) }.to raise_error(ArgumentError, "no limit given")
    expect { allocate_at_most({ String => { weight: 2 } }) }.to raise_error(ArgumentError, /count and size/)
    expect { allocate_at_most(1).of(:String) }.to raise_error(ArgumentError, /not a class/)
    expect { allocate_at_most({ String => 1 }).of(String) }.to raise_error(ArgumentError, /by class already/)
    expect { allocate_at_most(1).warmup(-1) }.to raise_error(ArgumentError, /warm-up/)
  end

  it "lets the block raise" do
    expect { expect { raise "broken" }.to allocate_at_most(1) }.to raise_error("broken")
    expect { Object.new }.to allocate_at_most(1)
  end

  it "describes itself" do
    expect(allocate_at_most(2..5).bytes.of(String).description).to eq("allocate 2 to 5 bytes of String")
  end

  it "does not see what runs beside it" do
    stop = false
    noise = Thread.new { Object.new until stop }
    4.times { expect { 3.times { Object.new }; Thread.pass }.to allocate_at_most(3..3) }
  ensure
    stop = true
    noise.join
  end
end
