# frozen_string_literal: true

require "json"
require "memprof/heap"
require "tmpdir"

RSpec.describe "Finalizers in a dump" do
  before { skip "the VM's table is found on Linux" unless RUBY_PLATFORM.include?("linux") }

  around do |example|
    Dir.mktmpdir do |directory|
      @directory = directory
      example.run
    end
  end

  program = <<~'RUBY'
    require "memprof"
    class Order; end
    class Exporter
      def initialize = @rows = "x" * 5000
      def finalizer = proc { @rows }
    end
    first = Exporter.new.finalizer
    second = proc { 2 }
    ORDERS = Array.new(100) { Order.new }
    ORDERS.each { |order| ObjectSpace.define_finalizer(order, second) }
    ObjectSpace.define_finalizer(ORDERS.first, first)
    first = nil
    ObjectSpace.undefine_finalizer(ORDERS.last)
    path = ->(name) { File.join(ENV.fetch("DIRECTORY"), name) }
    GC.auto_compact = true if ENV["COMPACT"] == "1" && GC.respond_to?(:auto_compact=)
    Thread.new { Memprof.dump_all(path["thread.json"]) }.join
    GC.compact if ENV["COMPACT"] == "1" && GC.respond_to?(:compact)
    Memprof.dump_all(path["fork.memprof"], format: :binary, fork: true)
  RUBY

  # The arrays of finalizers that the note has for orders.
  def arrays_of_orders(name)
    lines = File.readlines(File.join(@directory, name)).map { |line| JSON.parse(line) }
    objects = lines.to_h { |line| [line["_id"], line] }
    pairs = objects.fetch("finalizers")["data"]
    pairs.filter_map { |object, array|
      objects.fetch(array) if objects.fetch(object)["class_name"] == "Order"
    }
  end

  [{}, { "COMPACT" => "1" }].each do |env|
    it "belong to their objects, and are roots#{env.keys.map { |name| ", with #{name}" }.join}" do
      if env.any? && %w[3.1.0 3.1.1 3.1.2].include?(RUBY_VERSION)
        skip "this Ruby may crash when it compacts (Bug #19051)"
      end
      result = run_ruby(program, env: { "DIRECTORY" => @directory, **env })
      expect([result.stderr, result.status.exitstatus]).to eq(["", 0])
      arrays = arrays_of_orders("thread.json")
      # The last one's were removed.
      expect(arrays.size).to eq(99)
      expect(arrays.map { |array| array["type"] }.uniq).to eq(["array"])
      expect(arrays.map { |array| array["references"].size }.tally).to eq(1 => 98, 2 => 1)
      heap = Memprof::Heap.open(File.join(@directory, "fork.memprof"), index: false)
      path = heap.where("class = Exporter").first.path.to_s
      expect(path).to match(/ORDERS.*finalizer.*Proc.*Exporter/m)
    end
  end
end
