# frozen_string_literal: true

require "rbconfig"

# One file in bench/ answers one question, and its first comment line says which.
BENCHES = (Dir["bench/*.rb"] - ["bench/support.rb"]).sort.freeze
BENCH = ->(file) { [RbConfig.ruby, "-Ilib", file] }

# A short look says whether a benchmark runs: the library that is there will do.
BENCH_LIBRARY = ENV.fetch("BENCH_QUICK", "").empty? ? "compile:release" : "compile"

desc "Run every benchmark with this Ruby and the optimised extension (BENCH_QUICK=1 for a short look)"
task bench: [BENCH_LIBRARY, *BENCHES.map { |file| "bench:#{File.basename(file, ".rb")}" }]

BENCHES.each do |file|
  question = File.foreach(file).grep(/\A# (?!frozen_string_literal)/).first
  desc(question ? question.delete_prefix("#").strip : "Run #{file}")
  task("bench:#{File.basename(file, ".rb")}") { sh(*BENCH.call(file), verbose: false) }
end

desc "Run every benchmark and keep what they print in bench/results/DATE-ruby-VERSION.md"
task "bench:results" => "compile:release" do
  file = "bench/results/#{Time.now.strftime("%F")}-ruby-#{RUBY_VERSION[/\A\d+\.\d+/]}.md"
  output = ["bench/support.rb", *BENCHES].map do |bench|
    IO.popen(BENCH.call(bench), &:read).tap { |text| print(text) }
  end
  File.write(file, "#{output.join.strip}\n")
  warn("written to #{file}")
end
