# frozen_string_literal: true

require "json"
require "stringio"

RSpec.describe Memprof::Tracers do
  after { %i[mine broken other].each { |name| described_class.unregister(name) } }

  def trace(*tracers)
    io = StringIO.new
    Memprof.trace(io, tracers: (tracers unless tracers.empty?)) { yield if block_given? }
    JSON.parse(io.string)
  end

  it "lists what there is" do
    expect(described_class.names).to include(:objects, :gc, :threads, :redis, :memcache, :mysql, :http)
  end

  it "takes one of the program's: the body of a class" do
    calls = []
    described_class.register(:mine) do
      define_method(:start) { calls << :start }
      define_method(:finish) { calls << :finish }
      define_method(:report) { { calls: calls.size, "ratio" => 1r / 2, nan: Float::NAN, name: :a } }
    end

    expect(trace { calls << :block }["mine"]).to eq("calls" => 3, "ratio" => 0.5, "nan" => nil, "name" => "a")
    expect(calls).to eq(%i[start block finish])
    expect(trace(:mine).keys).to eq(["mine"])
    expect(described_class.unregister(:mine)).to be(true)
    expect(described_class.names).not_to include(:mine)
  end

  it "takes a class, and creates an instance for each trace" do
    counter = Class.new do
      def start = @count = 0
      def finish = @count += 1
      def report = { count: @count }
    end
    described_class.register("other", counter)
    expect([trace(:other), trace(:other)]).to eq([{ "other" => { "count" => 1 } }] * 2)
  end

  it "reports what one raised in its place, and all the rest" do
    described_class.register(:broken) do
      def start = nil
      def finish = raise(IOError, "no\nmore")
      def report = {}
    end
    described_class.register(:other) do
      def start = nil
      def finish = nil
      def report = raise(KeyError, "which")
    end
    expect(trace(:gc, :broken, :other)).to include("gc" => include("calls"),
      "broken" => { "error" => "no (IOError)" }, "other" => { "error" => "which (KeyError)" })
  end

  it "runs the block if one can't be created or started, and reports that" do
    described_class.register(:other) do
      def start = @count = 1
      def finish = @count += 1
      def report = { count: @count }
    end
    described_class.register(:broken) do
      def start = raise(IOError, "no")
      def finish = raise(KeyError, "not begun")
      def report = {}
    end
    described_class.register(:mine) do
      def initialize = raise(NotImplementedError, "not here")
      def start = nil
      def finish = nil
      def report = {}
    end
    value = nil
    report = trace(:gc, :other, :broken, :mine) { value = :run }
    expect(value).to eq(:run)
    expect(report).to include("gc" => include("calls"), "other" => { "count" => 2 },
      "broken" => { "error" => "no (IOError)" }, "mine" => { "error" => "not here (NotImplementedError)" })
    expect { trace(:broken) { raise ArgumentError, "of the program" } }
      .to raise_error(ArgumentError, "of the program")
  end

  it "refuses what is no tracer" do
    expect {
      described_class.register(:gc) {
        def start; end
      }
    }.to raise_error(ArgumentError, "tracer gc lacks finish, report")
    expect { described_class.register(:mine) }.to raise_error(ArgumentError, /needs a class or a block/)
    expect {
      described_class.register(:mine, 7)
    }.to raise_error(ArgumentError, "tracer mine: 7 has no method new")
    expect { described_class.register(:mine, String) { nil } }.to raise_error(ArgumentError, /not both/)
    complete = proc { %i[start finish report].each { |name| define_method(name) { {} } } }
    expect {
      described_class.register(:gc, &complete)
    }.to raise_error(ArgumentError, "tracer gc exists already")
  end
end
