# frozen_string_literal: true

require "rbconfig"

# One file in bench/ answers one question, and its first comment line says which.
BENCHES = Dir["bench/*.rb"].sort.freeze

desc "Run every benchmark with this Ruby and the optimised extension (BENCH_QUICK=1 for a short look)"
task bench: ["compile:release", *BENCHES.map { |file| "bench:#{File.basename(file, ".rb")}" }]

BENCHES.each do |file|
  question = File.foreach(file).grep(/\A# (?!frozen_string_literal)/).first
  desc(question ? question.delete_prefix("#").strip : "Run #{file}")
  task("bench:#{File.basename(file, ".rb")}") { sh(RbConfig.ruby, "-Ilib", file) }
end
