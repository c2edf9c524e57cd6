# frozen_string_literal: true

# What does tracking cost, per object that a program allocates?

require "objspace"
require_relative "support"

# Programs that mostly allocate objects.
module Programs
  module_function

  def objects(count)
    Bench.objects(count)
  end

  # The worst case: nothing is cheaper to allocate than a copy of a literal. Here, literals are only unfrozen
  # in evaluated code.
  module_eval(<<~RUBY, __FILE__, __LINE__ + 1)
    def self.strings(count)
      index = 0
      while index < count
        _copy = "a literal"
        index += 1
      end
    end
  RUBY

  # Six objects per step, through methods and blocks as in typical programs.
  def mixed(count)
    (count / 6).times do |index|
      order = build(index, "item #{index}")
      order[:total] = order[:lines].sum { |line| line[:price] }
    end
  end

  def build(index, name)
    { id: index, lines: [{ name: name, price: index }, { name: name.upcase, price: 2 }] }
  end
end

# Ways to run a program.
module Tracking
  module_function

  def none
    yield
  end

  def start(**options)
    Memprof.start(**options)
    yield
  ensure
    Memprof.stop
  end

  def sampled(&block)
    start(sample: 1000, &block)
  end

  def objspace
    ObjectSpace.trace_object_allocations_start
    yield
  ensure
    ObjectSpace.trace_object_allocations_stop
    ObjectSpace.trace_object_allocations_clear
  end
end

COUNT = Bench.size(1_000_000, 20_000)
ROUNDS = Bench.size(15, 2)
WAYS = %i[none start sampled objspace].freeze

def per_object(program, way)
  Tracking.public_send(way) { Bench.cpu { Programs.public_send(program, COUNT) } } / COUNT
end

def measure(program)
  variants = WAYS.to_h { |way| [way, -> { per_object(program, way) }] }
  Bench.in_turn(ROUNDS, variants)
end

Bench.title("What does tracking cost, per object that a program allocates?")
samples = %i[objects strings mixed].to_h { |program| [program, measure(program)] }
medians = samples.transform_values { |ways| ways.transform_values(&:median) }

title = ["nanoseconds per object", "untracked", "`start`", "`sample: 1000`", "objspace"]
title.push("`start` / untracked", "spread of `start`")
names = { objects: "`Object.new`", strings: "a string literal", mixed: "hashes, arrays, strings in methods" }
rows = medians.map do |program, times|
  figures = WAYS.map { |way| Bench.nanoseconds(times[way]) }
  [names.fetch(program), *figures, format("%.2f", times[:start] / times[:none]),
    samples[program][:start].spread]
end
Bench.table(title, rows)

loop_times = medians.fetch(:objects)
added = loop_times.transform_values { |time| time - loop_times[:none] }
Bench.table(Bench::LIMITS, [
  Bench.limit("`Object.new` under `start` / untracked", loop_times[:start] / loop_times[:none], 2.0, 1.6),
  Bench.limit("under `sample: 1000` / untracked", loop_times[:sampled] / loop_times[:none], 1.55, 1.47),
  Bench.limit("time added / by trace_object_allocations", added[:start] / added[:objspace], 1 / 4.0, 1 / 6.0)
])
