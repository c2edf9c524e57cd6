# frozen_string_literal: true

require "etc"
require "json"
require "memprof"
require "open3"
require "rbconfig"

# Shared by the benchmarks. Each of them answers one question; see README.md.
#
# A slow program and a busy machine look alike. So variants run in turn, round after round, and a disturbance
# affects all of them; time is CPU time; and figures are medians, with their spread if there is room.
module Bench
  # A quick run, for CI: does it run at all?
  QUICK = !ENV["BENCH_QUICK"].to_s.empty? || !ENV["CI"].to_s.empty?

  # The figures of one variant, round by round.
  Sample = Struct.new(:rounds) do
    def median
      sorted = rounds.sort
      (sorted[(sorted.size - 1) / 2] + sorted[sorted.size / 2]) / 2.0
    end

    # The interquartile range of the rounds, in percent: a large one means a busy machine.
    def spread
      sorted = rounds.sort
      apart = (sorted[sorted.size * 3 / 4] - sorted[sorted.size / 4]) / median * 100
      format("%.0f %%", apart)
    end
  end

  module_function

  # A number that may be smaller in a quick run.
  def size(full, quick)
    QUICK ? quick : full
  end

  # CPU time of a block, after a full GC.
  def cpu(&block)
    GC.start
    processor(&block)
  end

  # CPU time of a block, over all threads.
  def processor(&block)
    elapsed(Process::CLOCK_PROCESS_CPUTIME_ID, &block)
  end

  # Wall time of a block, in seconds.
  def wall(&block)
    elapsed(Process::CLOCK_MONOTONIC, &block)
  end

  def elapsed(clock)
    before = Process.clock_gettime(clock)
    yield
    Process.clock_gettime(clock) - before
  end

  # Allocates objects, with minimal other work.
  def objects(count)
    index = 0
    while index < count
      Object.new
      index += 1
    end
  end

  # Runs the variants in turn, `rounds` times.
  #
  # @param variants [Hash{Symbol => #call}] each returns a number
  # @return [Hash{Symbol => Sample}]
  def in_turn(rounds, variants)
    samples = variants.transform_values { Sample.new([]) }
    rounds.times do |round|
      # Alternates the direction, so that no variant always follows the same one.
      order = round.even? ? variants : variants.to_a.reverse
      order.each { |name, variant| samples[name].rounds << variant.call }
    end
    samples
  end

  # Runs this file again, in a separate process, for one variant; the child responds with {.answer}.
  #
  # @return [Object] its answer
  def child(*arguments)
    library = File.expand_path("../lib", __dir__)
    command = [RbConfig.ruby, "-I#{library}", File.expand_path($PROGRAM_NAME), *arguments.map(&:to_s)]
    output, status = Open3.capture2(*command)
    abort("#{command.join(" ")} failed: #{status}") unless status.success?
    JSON.parse(output.lines.last)
  end

  # Prints the answer of a child, and exits.
  def answer(value)
    puts(JSON.generate(value))
    exit
  end

  # The memory of this process in bytes: current, and peak.
  def rss
    status("VmRSS")
  end

  def peak_rss
    status("VmHWM")
  end

  def status(key)
    File.foreach("/proc/self/status").grep(/\A#{key}:/).first[/\d+/].to_i * 1024
  rescue Errno::ENOENT
    abort("memory is read from /proc, which this system has not")
  end

  # The heading of a file's output: its question, and the file.
  def title(question)
    puts("## #{question} (#{File.basename($PROGRAM_NAME)})", "")
  end

  # Prints an aligned Markdown table, readable as plain text.
  def table(header, rows)
    cells = [header, *rows].map { |row| row.map(&:to_s) }
    widths = cells.transpose.map { |column| column.map(&:size).max }
    lines = cells.map do |row|
      "| #{row.each_with_index.map { |cell, at| pad(cell, widths[at], at) }.join(" | ")} |"
    end
    rule = widths.each_with_index.map { |width, at| "#{"-" * (width + 1)}#{at.zero? ? "-" : ":"}" }
    puts(lines.first, "|#{rule.join("|")}|", *lines.drop(1), "")
  end

  def pad(cell, width, column)
    column.zero? ? cell.ljust(width) : cell.rjust(width)
  end

  # The verdict on a figure: `must` is a limit, `aim` a goal. Quick runs have no verdicts.
  def judge(value, must, aim)
    return "" if QUICK
    return "misses" if value > must

    value > aim ? "keeps" : "reaches the aim"
  end

  # A row for a figure with a limit.
  def limit(name, value, must, aim, unit = "")
    shown = ->(number) { "#{number.is_a?(Float) ? format("%.3g", number) : number}#{unit}" }
    [name, shown.call(value), shown.call(must), shown.call(aim), judge(value, must, aim)]
  end

  LIMITS = ["", "measured", "must", "aim", "verdict"].freeze

  def nanoseconds(seconds)
    format("%.1f", seconds * 1e9)
  end

  def mebibytes(bytes)
    format("%.1f", bytes / 1024.0 / 1024)
  end

  # The machine and the programs that figures depend on.
  def facts
    model = File.foreach("/proc/cpuinfo").grep(/\Amodel name/).first.to_s[/: (.*)/, 1]
    memory = File.foreach("/proc/meminfo").first[/\d+/].to_i / 1024 / 1024
    system = File.foreach("/etc/os-release").grep(/\APRETTY_NAME/).first.to_s[/"(.*)"/, 1]
    table(["", "of this run"], [
      ["Ruby", RUBY_DESCRIPTION],
      ["memprof", Memprof::VERSION],
      ["Rust", version_of("rustc")],
      ["memory_profiler", Gem::Specification.find_all_by_name("memory_profiler").map(&:version).max],
      ["system", system],
      ["processor", "#{Etc.nprocessors} of #{model}"],
      ["memory", "#{memory} GiB"],
      ["load when it began", File.read("/proc/loadavg").split.first]
    ])
  end

  def version_of(command)
    Open3.capture2(command, "--version").first[/\d[\d.]*/]
  rescue Errno::ENOENT
    "not at hand"
  end
end

# Run by itself, this file prints the environment of the figures.
if $PROGRAM_NAME == __FILE__
  puts("# Benchmarks of #{Time.now.strftime("%F")} on Ruby #{RUBY_VERSION}", "")
  Bench.facts
end
