# frozen_string_literal: true

require "fileutils"
require "json"
require "open3"
require "tmpdir"

# Exports of a heap are for programs of others, so those programs judge them: DevTools, Chromium, DuckDB and
# Spark. heap_check.mjs and heap_tables.py say what is compared.
RSpec.describe "exports of a heap in their viewers" do
  include CargoExamples

  before(:all) do
    @directory = Dir.mktmpdir("memprof-heap-viewers")
    @missing = no_viewer || write_exports
  end

  after(:all) { FileUtils.remove_entry(@directory) }

  before { skip(@missing) if @missing }

  let(:exports) { File.join(@directory, "exports") }

  # To write the exports takes minutes, as Parquet is compiled first.
  def no_viewer
    return if system("node", "--version", out: File::NULL, err: File::NULL)
    return if system("python3", "-c", "import duckdb", out: File::NULL, err: File::NULL)
    return if Chromium.program

    "needs node, chromium, or Python with duckdb"
  end

  # The reason why nothing can be checked here, or nil.
  def write_exports
    return "needs cargo" unless CargoExamples.cargo?

    dump = File.join(@directory, "heap.memprof")
    GC.start
    Memprof.dump_all(dump)
    exports = File.join(@directory, "exports").tap { |path| FileUtils.mkdir_p(path) }
    { "heapsnapshot" => "heap.heapsnapshot", "flamegraph" => "heap.html", "mongo" => "heap.jsonl",
      "objects-csv" => "objects.csv", "references-csv" => "references.csv" }
      .each do |format, name|
        run_example("memprof-analysis", "export_heap", dump, format, File.join(exports, name))
      end
    run_example("memprof-heap-parquet", "parquet", dump, exports, features: ["parquet"])
    nil
  end

  def install_viewers
    version, status = Open3.capture2e("node", "--version")
    return "needs node 20.19 or newer" unless status.success? && version[/\d+/].to_i >= 20

    FileUtils.cp(File.join(__dir__, "heap_check.mjs"), @directory)
    FileUtils.cp(File.join(__dir__, "heap_package.json"), File.join(@directory, "package.json"))
    output, status = Open3.capture2e("npm", "install", "--no-package-lock", "--no-audit", "--no-fund",
      "--ignore-scripts", "--loglevel=error", chdir: @directory)
    return if status.success?

    "needs the packages of spec/exports/heap_package.json from npm: #{output.lines.first}"
  rescue Errno::ENOENT => error
    "needs node and npm: #{error.message}"
  end

  # The number of objects in heap.jsonl, and their bytes.
  def totals
    documents = File.foreach(File.join(exports, "heap.jsonl")).map { |line| JSON.parse(line) }
    objects = documents.reject { |document| document["type"] == "root" }
    [objects.size, objects.sum { |object| object["memsize"] }]
  end

  it "are drawn by Chromium as they were meant" do
    skip("needs chromium") unless Chromium.program

    count, size = totals
    Chromium.open do |browser|
      tab = browser.tab
      tab.go("file://#{File.join(exports, "heap.html")}")
      expect(tab.evaluate("[root.all, root.total]")).to eq([count, size])
      expect(tab.evaluate("graph.children.length")).to be > 1
      expect(tab.evaluate("element('detail').textContent")).to include("root")
      tab.evaluate("search.value = 'String'; find()")
      expect(tab.evaluate("element('found').textContent")).to match(/ in \d+ places\z/)
      expect(tab.watch.problems).to eq([])
    end
  end

  it "are read by DevTools as they were meant" do
    missing = install_viewers
    skip(missing) if missing

    result = run_command("node", File.join(@directory, "heap_check.mjs"), exports, timeout: 300)
    expect(result.status).to be_success, "#{result.stdout}#{result.stderr[0, 3000]}"
  end

  # PYTHON is one that has duckdb and pyspark, as `python -m venv` and pip make it.
  it "are read by DuckDB and Spark as they were meant" do
    python = ENV.fetch("PYTHON", "python3")
    skip("needs python") unless system(python, "--version", out: File::NULL, err: File::NULL)

    result = run_command(python, File.join(__dir__, "heap_tables.py"), exports, timeout: 300)
    expect(result.status).to be_success, "#{result.stdout}#{result.stderr[0, 3000]}"
    skip(result.stdout) if result.stdout.scan("skipped").length == 2
  end
end
