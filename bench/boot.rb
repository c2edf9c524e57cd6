# frozen_string_literal: true

# What does `memprof boot` cost for the boot of a Rails app, and do its numbers repeat?

require "tmpdir"
require_relative "support"

ROUNDS = Bench.size(5, 2)
BOOT = File.join(__dir__, "support/rails_boot.rb")
MEMPROF = File.expand_path("../exe/memprof", __dir__)
LIBRARY = File.expand_path("../lib", __dir__)
LARGEST = 20 # files whose numbers are compared from run to run

# derailed_benchmarks measures the RSS around each require: the gem, or a checkout in DERAILED.
module Derailed
  DIRECTORY = ENV["DERAILED"].to_s
  LIBRARY = (["-I#{File.join(DIRECTORY, "lib")}"] unless DIRECTORY.empty?)
  SUPPORT = File.join(__dir__, "support/derailed.rb")

  def self.there?
    gems = ["get_process_mem", *("derailed_benchmarks" unless LIBRARY)]
    gems.all? { |name| Gem::Specification.find_all_by_name(name).any? }
  end

  def self.command = [*LIBRARY, "-r#{SUPPORT}"]
end

# The cost of one boot, and the bytes of each file including its requires, by name; none for the app alone.
Boot = Struct.new(:seconds, :peak, :files)

def boot(directory, command)
  costs = File.join(directory, "costs")
  tree = File.join(directory, "tree.json")
  environment = { "BENCH_COSTS" => costs, "BENCH_TREE" => tree, "RAILS_ENV" => "production",
                  "RUBYLIB" => [LIBRARY, ENV.fetch("RUBYLIB", nil)].compact.join(File::PATH_SEPARATOR) }
  output, status = Open3.capture2e(environment, *command)
  abort("#{command.join(" ")} failed:\n#{output}") unless status.success?
  Boot.new(*File.read(costs).split.map(&:to_f), File.file?(tree) ? yield(JSON.parse(File.read(tree))) : {})
end

def alone(directory) = boot(directory, [RbConfig.ruby, BOOT])

def memprof(directory)
  tree = File.join(directory, "tree.json")
  command = [RbConfig.ruby, MEMPROF, "boot", "--json", "-o", tree, "--", RbConfig.ruby, BOOT]
  boot(directory, command) do |answer|
    files = answer["boot"]["requires"] + answer["after_boot"]
    open = files.dup
    while (file = open.pop)
      files.concat(file["requires"])
      open.concat(file["requires"])
    end
    files.to_h { |row| [row["path"] || row["name"], row["total"]["retained_bytes"]] }
  end
end

def derailed(directory)
  boot(directory, [RbConfig.ruby, *Derailed.command, BOOT]) do |costs|
    costs.transform_values { |mebibytes| mebibytes * 1024 * 1024 }
  end
end

# The spread of the runs for the largest files, in percent of their medians: the median file.
def apart(runs)
  files = runs.map(&:files)
  medians = files.first.keys.select { |name| files.all? { |costs| costs.key?(name) } }
    .to_h { |name| [name, Bench::Sample.new(files.map { |costs| costs[name] }).median] }
  shares = medians.max_by(LARGEST) { |_, bytes| bytes }.filter_map do |name, median|
    low, high = files.map { |costs| costs[name] }.minmax
    (high - low) * 100.0 / median if median.positive?
  end
  Bench::Sample.new(shares).median unless shares.empty?
end

# How many of memprof's largest files are among the other's: by path, and by the argument of `require`.
def shared(ours, theirs)
  names = theirs.max_by(LARGEST) { |_, bytes| bytes }
    .map { |name, _| "/#{name.delete_prefix("/").delete_suffix(".rb")}.rb" }
  ours.max_by(LARGEST) { |_, bytes| bytes }.count { |path, _| names.any? { |name| path.end_with?(name) } }
end

begin
  require "rails"
rescue LoadError
  abort("boot.rb: Rails is not installed; nothing is measured")
end

variants = { "the app alone" => method(:alone), "memprof boot" => method(:memprof) }
variants["derailed_benchmarks"] = method(:derailed) if Derailed.there?
runs = Hash.new { |hash, name| hash[name] = [] }
ROUNDS.times do |round|
  order = round.even? ? variants : variants.to_a.reverse
  order.each { |name, variant| Dir.mktmpdir { |directory| runs[name] << variant.call(directory) } }
end

Bench.title("What does `memprof boot` cost for the boot of a Rails app, and do its numbers repeat?")
rows = variants.keys.map do |name|
  boots = runs[name]
  seconds, peak = %i[seconds peak].map { |figure| Bench::Sample.new(boots.map(&figure)).median }
  between = apart(boots)
  both = shared(runs["memprof boot"].first.files, boots.first.files) if between
  [name, format("%.2f", seconds), Bench.mebibytes(peak), boots.first.files.size,
    (format("%.2f %%", between) if between), both]
end
Bench.table(["", "CPU seconds", "peak RSS, MiB", "files", "largest #{LARGEST}: between runs",
  "among memprof's"], rows)
advice = "gem install derailed_benchmarks, or DERAILED=its checkout with the gem get_process_mem"
puts("derailed_benchmarks is not there (#{advice}).", "") unless Derailed.there?
