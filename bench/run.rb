# frozen_string_literal: true

# What does `memprof run` cost in each format, for the boot of a Rails app, compared with speedscope's?

require "tmpdir"
require_relative "support"

ROUNDS = Bench.size(5, 1)
BOOT = File.join(__dir__, "support/rails_boot.rb")
MEMPROF = File.expand_path("../exe/memprof", __dir__)

# Speedscope stores call stacks of 64 frames, and is written as it is computed.
VARIANTS = {
  "the app alone" => nil,
  "text" => %w[text],
  "text --stack 64" => %w[text --stack 64],
  "json" => %w[json],
  "json --stack 64" => %w[json --stack 64],
  "speedscope" => %w[speedscope]
}.freeze

# CPU seconds, and peak RSS.
def measure(options)
  Dir.mktmpdir do |directory|
    costs = File.join(directory, "costs")
    report = File.join(directory, "report")
    run = [MEMPROF, "run", "--output", report, "--format", *options, "--"] if options
    environment = { "BENCH_COSTS" => costs, "RAILS_ENV" => "production",
                    "RUBYLIB" => File.expand_path("../lib", __dir__) }
    command = [RbConfig.ruby, *run, *(RbConfig.ruby if run), BOOT]
    output, status = Open3.capture2e(environment, *command)
    written = run.nil? || File.size?(report)
    abort("#{command.join(" ")} failed:\n#{output}") unless status.success? && written
    File.read(costs).split.map(&:to_f)
  end
end

begin
  require "rails"
rescue LoadError
  abort("run.rb: Rails is not installed; nothing is measured")
end

runs = Hash.new { |hash, name| hash[name] = [] }
ROUNDS.times do |round|
  order = round.even? ? VARIANTS : VARIANTS.to_a.reverse
  order.each { |name, options| runs[name] << measure(options) }
end
medians = runs.transform_values { |costs| costs.transpose.map { |rounds| Bench::Sample.new(rounds).median } }

Bench.title("What does `memprof run` cost in each format, for the boot of a Rails app?")
Bench.table(["report", "CPU seconds", "peak RSS, MiB"], VARIANTS.keys.map do |name|
  seconds, peak = medians[name]
  [name, format("%.2f", seconds), Bench.mebibytes(peak)]
end)
limits = (VARIANTS.keys - ["the app alone", "speedscope"]).flat_map do |name|
  seconds, peak = medians[name].zip(medians["speedscope"]).map { |cost, least| cost / least }
  [Bench.limit("#{name}: CPU / speedscope's", seconds, 1.5, 1.0),
    Bench.limit("#{name}: peak RSS / speedscope's", peak, 1.5, 1.0)]
end
Bench.table(Bench::LIMITS, limits)
