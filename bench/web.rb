# frozen_string_literal: true

# How long does a page of a large heap take, and how large is it?

require "fileutils"
require "net/http"
require "tmpdir"
require "uri"
require_relative "support"
require_relative "support/heaps"
require_relative "support/pages"
require "memprof/dump"
require "memprof/heap"

# Objects in the heap.
OBJECTS = Integer(ENV["BENCH_OBJECTS"] || Bench.size(1_600_000, 100_000))
# Two existing dumps of one process, used instead.
DUMP, LATER = ENV.values_at("BENCH_DUMP", "BENCH_LATER")
# Only pages whose names match.
ONLY = Regexp.new(ENV.fetch("BENCH_ONLY", ""))
# Requests of each page, each with other parameters or another object, so that no answer is cached.
ROUNDS = Integer(ENV["BENCH_ROUNDS"] || Bench.size(50, 3))
MUST = 400 # milliseconds, p99
AIM = 100
WEIGHT = [300, 100].freeze # KiB of the first load: must, aim
TO_OVERVIEW = { first: [4.0, 2.0], again: [0.7, 0.3] }.freeze # seconds: must, aim
TOKEN = "a token for this run"
# Sites in the report.
SITES = 2000

# Commands of the children.
module Make
  module_function

  # A heap, and the same later: with a tenth of new objects, and a few freed ones.
  def dumps(before, after)
    Memprof.start
    kept = Heaps.program(OBJECTS)
    Memprof.dump_all(before)
    kept.concat(Heaps.program(OBJECTS / 10))
    kept.shift(kept.size / 100)
    Memprof.dump_all(after)
    raise "the heap is gone" unless kept

    {}
  end

  # A report with many sites, and stacks.
  def report(path)
    code = Array.new(SITES) { |line| "def site#{line} = [+'', Object.new]" }.join("\n")
    maker = Class.new { class_eval(code, "maker.rb") }.new
    Memprof.report(stack: 8) { SITES.times { |line| maker.public_send("site#{line}") } }
      .write(path, format: :json)
    {}
  end
end

# A server, and the requests to it.
class Browser
  Page = Struct.new(:seconds, :bytes, :body)

  def initialize(*files)
    library = File.expand_path("../lib", __dir__)
    program = File.expand_path("../exe/memprof", __dir__)
    arguments = ["web", "--no-open", "--token", TOKEN, *files]
    @output = IO.popen([RbConfig.ruby, "-I#{library}", program, *arguments], err: File::NULL)
    uri = URI(@output.gets.to_s.chomp)
    @http = Net::HTTP.start(uri.host, uri.port, read_timeout: 600)
  end

  # A page, once it is complete.
  def get(path)
    body = nil
    seconds = Bench.wall { body = whole(path) }
    Page.new(seconds, body.bytesize, body)
  end

  def whole(path)
    loop do
      answer = @http.get(path, "Authorization" => "Bearer #{TOKEN}")
      return answer.body if answer.code == "200"
      # A search redirects to a page with its own row.
      return answer.body.to_s if answer.code == "303" || answer.code == "302"
      # A small heap has fewer pages than requested.
      return answer.body if answer.code == "404" && path.include?("page=")
      raise "#{path}: #{answer.code} #{answer.body[0, 300]}" unless answer.code == "202"

      sleep(0.01)
    end
  end

  # CPU time of the server, in seconds: independent of a busy machine.
  def processor
    fields = File.read("/proc/#{@output.pid}/stat").split(") ").last.split
    fields.values_at(11, 12).sum(&:to_i).fdiv(Etc.sysconf(Etc::SC_CLK_TCK))
  end

  def close
    @http.finish
    Process.kill(:TERM, @output.pid)
    @output.close
  end
end

def row(name, browser, path)
  before = browser.processor
  taken = Array.new(ROUNDS) { |number| browser.get(path.call(number)) }
  processor = (browser.processor - before) * 1000 / ROUNDS
  times = taken.map { |page| page.seconds * 1000 }.sort
  p99 = times[((times.size - 1) * 0.99).ceil]
  weight = taken.map(&:bytes).max / 1024
  figures = [processor, times[times.size / 2], p99].map { |time| format("%.0f ms", time) }
  [name, *figures, "#{weight} KiB", Bench.judge(p99, MUST, AIM)]
end

def to_overview(*files)
  browser = nil
  page = nil
  seconds = Bench.wall do
    browser = Browser.new(*files)
    page = browser.get("/heaps/1/")
  end
  [seconds, page, browser]
end

def first_load(browser, page)
  files = page.body.scan(%r{/assets/[\w.-]+}).uniq
  (page.bytes + files.sum { |file| browser.get(file).bytes }) / 1024.0
end

# Reports have their own file.
TRACKED = {
  "tracked" => ->(number) { "/tracked/1?page=#{number % 20 + 1}" },
  "tracked, flame graph" => ->(number) { "/tracked/1/flame?limit=#{number}" }
}.freeze

def run(before, after, report)
  FileUtils.rm_f("#{before}.memprof-index")
  first, _, browser = to_overview(before)
  browser.close
  again, page, browser = to_overview(before, after, report)
  # Opening the other heap does not count as a page's time.
  browser.get("/heaps/2/")
  heap = Memprof::Heap.open(before)
  Bench.title("How long does a page of a heap of #{Memprof::Units.count(heap.size)} objects take?")
  pages = Pages.new(heap, ROUNDS).to_h.merge(TRACKED).select { |name, _| ONLY.match?(name) }
  rows = pages.map { |name, path| row(name, browser, path) }
  Bench.table(Bench::LIMITS, [
    Bench.limit("from command to overview, first time", first, *TO_OVERVIEW[:first], " s"),
    Bench.limit("the same with an index", again, *TO_OVERVIEW[:again], " s"),
    Bench.limit("first load, all files", first_load(browser, page), *WEIGHT, " KiB")
  ])
  Bench.table(["page", "processor", "p50", "p99 (must #{MUST}, aim #{AIM} ms)", "largest", "verdict"], rows)
ensure
  browser&.close
end

Bench.answer(Make.public_send(*ARGV)) if ARGV.any?

abort("BENCH_DUMP takes BENCH_LATER, a later dump of the same process") if DUMP.nil? != LATER.nil?
Dir.mktmpdir("memprof-bench-") do |directory|
  names = %w[before.memprof after.memprof report.json]
  before, after, report = names.map { |name| File.join(directory, name) }
  Bench.child("report", report)
  Bench.child("dumps", before, after) unless DUMP
  run(DUMP || before, LATER || after, report)
end
