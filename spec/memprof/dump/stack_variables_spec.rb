# frozen_string_literal: true

# In processes of their own, whose threads are known.
RSpec.describe Memprof::Dump, "of the stacks of threads and fibers" do
  let(:program) { <<~'RUBY' }
    require "memprof"
    require "memprof/heap"
    class Checkout
      def run(order, *rest, rate: 1.5)
        basket = ["bread"]
        rest.each { |item| inner = [item]; wait(inner, 41) }
        basket
      end

      def wait(thing, number) = sleep
      def descend(depth, text = "at #{depth}") = depth.zero? ? sleep : descend(depth - 1)
      def forward(...) = (late = "late"; target(...); late)
      def target(first, second) = sleep
    end
    CHECKOUT = Checkout.new
    def variables(heap, of)
      references = heap.object(of).references.to_a.select { |to| to.label&.start_with?("local ") }
      references.map { |to| "#{to.label}: #{to.value || to.type}" }
    end
    GC.stress = true if ENV["STRESS"]
    threads = [["run", "order", "item"], ["descend", 20], ["forward", "one", "two"]].map do |call|
      Thread.new(call) { CHECKOUT.public_send(*_1) }
    end
    fiber = Fiber.new { |given| held = "held"; Fiber.yield; held + given }
    fiber.resume("given")
    Thread.pass until threads.all?(&:stop?)
    if ENV["STRESS"]
      GC.stress = false
      GC.verify_compaction_references(toward: :empty) rescue nil
    end
    heap = Memprof::Heap.capture
    [*threads, fiber].each { |one| puts variables(heap, one).grep_v(/_1| in forward/).sort.join(", ") }
    puts heap.object(threads[0]).references.to_a.count { |to| to.label == "self" && to.class_name == "Checkout" }
    puts variables(heap, Thread.current).grep(/ in (take|capture)/).size
  RUBY

  let(:expected) do
    [
      "local inner in run: array, local item in run: item, local order in run: order, " \
      "local rest in run: array, local thing in wait: array, local basket in run: array",
      "local text in descend: at 0",
      "local first in target: one, local second in target: two",
      "local given in <main>: given, local held in <main>: held",
      "3", "0"
    ].map { |line| line.split(", ").sort.join(", ") }
  end

  [{}, { "STRESS" => "1" }].each do |environment|
    it "names local variables and receivers#{" where objects move" unless environment.empty?}" do
      result = run_ruby(program, env: environment, timeout: 300)
      expect(result.stderr).to eq("")
      expect(result.stdout.lines(chomp: true)).to eq(expected)
    end
  end
end
