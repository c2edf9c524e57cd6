# frozen_string_literal: true

# Loaded before an app: derailed_benchmarks measures its requires, and its tree goes to the file BENCH_TREE as
# names with MiB, summed up by name.

require "json"
require "pathname"
require "derailed_benchmarks/core_ext/kernel_require"

at_exit do
  costs = Hash.new(0)
  open = TOP_REQUIRE.children
  until open.empty?
    file = open.pop
    costs[file.name] += file.cost
    open.concat(file.children)
  end
  File.write(ENV.fetch("BENCH_TREE"), JSON.generate(costs))
end
