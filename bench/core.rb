# frozen_string_literal: true

# How long does it take to find leaks in a core file, and what retains most?

require "tmpdir"
require_relative "support"

ROUNDS = Bench.size(5, 1)
BYTES = Bench.size(1 << 30, 1 << 24)
OBJECTS = Bench.size(5_000_000, 50_000)

# chap (github.com/vmware/chap) finds leaked blocks in a core, too: used if installed, or given in CHAP.
CHAP = ENV.fetch("CHAP", "chap")

# malloc blocks, one in twenty of them leaked.
BLOCKS = <<~'RUBY'
  require "fiddle"
  size, kept, number = Integer(ARGV[0]), [], 0
  random = Random.new(7)
  while size.positive?
    bytes = random.rand(700..2000)
    number += 1
    number % 20 == 0 ? Fiddle.malloc(bytes) : kept << ("x" * bytes)
    size -= bytes
  end
  $kept = kept
RUBY
HEAP = <<~'RUBY'
  rows = Integer(ARGV[0]) / 5
  $rows = Array.new(rows) { |number| { id: "order #{number} of a customer", lines: [number.to_s, "a" * 30] } }
RUBY
WAIT = "\nGC.start\n$stdout.sync = true\nputs 1\n$stdin.read\n"

# A core file of a Ruby that runs the program.
def core(program, size, directory)
  IO.popen([RbConfig.ruby, "-e", program + WAIT, size.to_s], "r+") do |process|
    process.gets || abort("the program failed")
    system("gdb", "-q", "-batch", "-p", process.pid.to_s, "-ex", "gcore #{directory}/core", in: File::NULL,
      out: File::NULL, err: File::NULL) || abort("gdb can't write a core file")
    process.close_write
  end
  File.join(directory, "core")
end

# Seconds, and the output.
def timed(*command, input: "")
  output = nil
  seconds = Bench.wall do
    output, status = Open3.capture2(*command, stdin_data: input, err: File::NULL)
    abort("#{command.first} failed") unless status.success?
  end
  [seconds, output]
end

def memprof(*arguments)
  root = File.expand_path("..", __dir__)
  timed(RbConfig.ruby, "-I#{root}/lib", "#{root}/exe/memprof", *arguments)
end

def chap(core) = timed(CHAP, core, input: "count leaked\n")

def chap? = system(CHAP, out: File::NULL, err: File::NULL, in: File::NULL) != nil

# The number of blocks in an answer.
def blocks(output) = output[/([\d,]+) allocations use/, 1]

def in_core(program, size)
  Dir.mktmpdir("memprof-bench-") do |directory|
    file = core(program, size, directory)
    yield file, File.size(file)
  end
end

limits = []
Bench.title("How long does it take to find what is leaked in a core file, and what retains most?")
unless system("gdb --version", out: File::NULL, err: File::NULL)
  puts("gdb is not there; nothing is measured")
  exit
end
in_core(BLOCKS, BYTES) do |file, size|
  variants = { "memprof core, count leaked" => -> { memprof("core", file, "count", "leaked") } }
  variants["chap, count leaked"] = -> { chap(file) } if chap?
  answers = variants.transform_values { |variant| blocks(variant.call.last) }
  samples = Bench.in_turn(ROUNDS, variants.transform_values { |variant| -> { variant.call.first } })
  Bench.table(["seconds, #{Bench.mebibytes(size)} MiB", "median", "spread", "blocks"],
    samples.map { |name, sample| [name, format("%.2f", sample.median), sample.spread, answers[name]] })
  ours, theirs = samples.each_value.map(&:median)
  puts("chap is not there: CHAP=its path") unless theirs
  limits << Bench.limit("leaked blocks / chap", ours / theirs, 1.0 / 3, 0.1) if theirs
end
in_core(HEAP, OBJECTS) do |file, size|
  seconds = Array.new(Bench.size(3, 1)) { memprof("leaks", file).first }.sort
  title = "what is large in a core of #{OBJECTS} objects"
  puts("#{title}, #{Bench.mebibytes(size)} MiB: #{format("%.1f", seconds[seconds.size / 2])} s", "")
  limits << Bench.limit(title, seconds[seconds.size / 2], 15, 5, " s")
end
Bench.table(Bench::LIMITS, limits)
