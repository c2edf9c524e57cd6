# frozen_string_literal: true

require "json"
require "rexml/document"
require "yaml"
require_relative "../support/documents"

# Reports compared: `memprof check`, and `memprof diff` of reports.
RSpec.describe "memprof check" do
  include_context "with memprof run"

  before = <<~RUBY
    class Import
      def row(number) = (@rows ||= []) << "row %d" % number
    end
    import = Import.new
    300.times { |number| import.row(number) }
  RUBY
  # 500 more objects, three lines further down.
  after = "# 1\n# 2\n# 3\n#{before.sub("300", "800")}"

  def memprof(*arguments, **options)
    run_memprof(*arguments, env: { "TMPDIR" => temporary }, chdir: directory, **options)
  end

  # Writes base.json and head.json.
  def measure(before, after)
    { "base" => before, "head" => after }.each do |name, code|
      Dir.mkdir(File.join(directory, name))
      file("#{name}/import.rb", code)
      run_memprof("run", "-o", "../#{name}.json", "import.rb", env: { "TMPDIR" => temporary },
        chdir: File.join(directory, name))
    end
  end

  # A program on the PATH of the workflow.
  def program(name, script)
    FileUtils.mkdir_p(File.join(directory, "bin"))
    file("bin/#{name}", "#!/bin/sh\n#{script}\n")
    File.chmod(0o755, File.join(directory, "bin", name))
  end

  it "takes names of any bytes, in any locale" do
    measure(before, after)
    ["h\u00e9ad.json", "h\xE9ad.json".b].each do |name|
      FileUtils.cp(File.join(directory, "head.json"), File.join(directory.b, name.b))
      result = run_memprof("diff", "base.json", name, env: { "LC_ALL" => "C" }, chdir: directory)
      expect([result.stderr, result.status.exitstatus]).to eq(["", 0])
      expect(result.stdout).to include("+500 objects")
    end
  end

  it "compares the reports of two checkouts, whose lines moved" do
    measure(before, after)
    json = JSON.parse(memprof("diff", "--json", "base.json", "head.json").stdout)
    expect(JSONSchema.of("check").faults(json)).to eq([])

    line = json["lines"].find { |row| row["line"] == 5 && row["class"] == "String" }
    expect(line).to include("file" => "import.rb", "method" => "Import#row", "match" => "moved",
      "was" => "import.rb:2", "own" => true, "gem" => "application",
      "source" => 'def row(number) = (@rows ||= []) << "row %d" % number')
    expect(line["retained_objects"]["change"]).to be_within(2).of(500)
    expect(json["classes"].find { |row| row["name"] == "String" }["retained_objects"]["change"])
      .to be_within(5).of(500)
    expect(json["failed"]).to be(false)

    text, _, status = memprof("diff", "base.json", "head.json")
    expect(text).to match(/\A\+[\d,]+ objects? \(.*\) allocated, \+50\d objects/)
    expect(text).to match(/String +import\.rb:5 in Import#row +moved from import\.rb:2$/)
    expect(status.exitstatus).to eq(0)

    xml, _, status = memprof("diff", "--format", "junit", "--max-increase", "2%", "base.json", "head.json")
    failure = REXML::Document.new(xml).elements["//testcase[@name='retained objects']/failure"]
    expect(failure.text).to include("import.rb:5: ")
    expect(status.exitstatus).to eq(1)

    expect(memprof("diff", "--format", "markdown", "base.json", "head.json").stdout)
      .to match(/^\| .*`import\.rb:5 in Import#row` \| `moved from import\.rb:2` \|$/)
  end

  it "fails if more is allocated than in the baseline, and says by which line" do
    file("import.rb", "warn 'on stderr'; puts 'of the program'\n#{before}")
    updated = memprof("check", "--baseline", "memory.json", "--update", "--", "ruby", "import.rb")
    expect([updated.stdout, updated.status.exitstatus]).to eq(["", 0])
    expect(updated.stderr).to end_with("of the program\nmemprof: wrote memory.json: 2 runs\n")
    expect(JSON.parse(file("memory.json"))["runs"].size).to eq(1)

    kept = memprof("check", "--baseline", "memory.json", "--", "ruby", "import.rb")
    expect(kept.stdout).to match(/\A(?:Nothing|Totals)/)
    expect(kept.status.exitstatus).to eq(0)

    file("import.rb", "warn 'on stderr'; puts 'of the program'\n#{after}")
    failed = memprof("check", "--baseline", "memory.json", "--format", "github", "--max-retained", "100",
      "--", "ruby", "import.rb")
    expect(failed.stdout).to match(/^::error title=memprof::retained objects: from .* to .*at most \+2 %25/)
    expect(failed.stdout).to match(/^::error title=memprof::8\d\d objects retained; at most 100 objects/)
    expect(failed.stdout)
      .to match(/^::warning file=import\.rb,line=6,title=memprof::\+[\d,]+ objects .*String in/)
    expect(failed.status.exitstatus).to eq(1)
  end

  it "compares nothing if the command fails" do
    file("import.rb", "exit 3")
    result = memprof("check", "--baseline", "memory.json", "--update", "--", "ruby", "import.rb")

    expect(result.stderr).to eq("memprof: the command failed with exit status 3; nothing compared\n")
    expect(result.status.exitstatus).to eq(3)
    expect(File.exist?(File.join(directory, "memory.json"))).to be(false)
  end

  it "distinguishes reports from dumps" do
    file("report.json", '{"format":"memprof-report","version":1,"sites":[]}')
    file("broken.json", '{"format":"memprof-report","version":1,"si')
    file("dump.json", "{}")
    file("empty.json", "")
    {
      %w[diff report.json empty.json] => "report.json is a report and empty.json is not; compare two",
      %w[diff report.json dump.json] => "report.json is a report and dump.json is not; compare two",
      %w[check --baseline none.json -- ruby] =>
        /no baseline none\.json; write it with `memprof check --baseline none\.json --update -- COMMAND`/,
      %w[diff report.json broken.json] => /cannot read broken.json: EOF while parsing/,
      %w[diff --where size>1 report.json report.json] => "--where is only for dumps",
      %w[diff --by site report.json report.json] => 'invalid --by "site"; expected one of: line, class, gem',
      %w[diff --by line dump.json dump.json] =>
        'invalid --by "line"; expected one of: class, type, site, file',
      %w[check --baseline dump.json ruby] => /dump.json is not a report; write one with/,
      %w[check --baseline report.json --max-increase much ruby] => /invalid --max-increase "much"/,
      %w[check --baseline report.json --max-retained much ruby] => /invalid --max-retained "much"/
    }.each do |arguments, message|
      result = memprof(*arguments)
      expect(result.stderr).to match(/\Amemprof: .*#{Regexp.union(message)}/)
      expect(result.status.exitstatus).to eq(2)
    end
  end

  it "does what the workflow in the documents says" do
    page = File.read(File.join(ChildRuby::ROOT, "docs/pull-requests.md"))
    steps = YAML.safe_load(page[/^```yaml\n(.*?)^```/m, 1])["jobs"]["memory"]["steps"]
    steps = steps.select { |step| step["run"] }
    file("import-base.rb", before)
    file("import-head.rb", after.sub("800", "20_000"))
    Dir.mkdir(File.join(directory, "spec"))
    file("spec/import_spec.rb", "RSpec.describe('it') { it('runs') { load 'import.rb' } }")
    program("git", "[ $1 = checkout ] && cp import-$3.rb import.rb")
    program("memprof", "exec #{RbConfig.ruby} #{ChildRuby::ROOT}/exe/memprof \"$@\"")
    program("rspec", "exec #{RbConfig.ruby} -e \"load Gem.bin_path('rspec-core', 'rspec')\" spec")
    summary = File.join(temporary, "summary.md")
    env = Documents.environment.merge("RUNNER_TEMP" => temporary, "GITHUB_STEP_SUMMARY" => summary,
      "GITHUB_WORKSPACE" => directory)
    env["PATH"] = "#{directory}/bin:#{env["PATH"]}"
    results = steps.map do |step|
      variables = step["env"].to_h.transform_values { |text| text[/pull_request\.(\w+)\.sha/, 1] }
      run_command("sh", "-c", step["run"], env: env.merge(variables), chdir: directory)
    end

    expect(results.map { |result| result.status.exitstatus }).to eq([0, 0, 0, 0, 0, 1]), results.join("\n")
    expect(File.read(summary)).to match(/`import\.rb:5 in Import#row` \| `moved from import\.rb:2`/)
    expect(results.last.stdout).to match(/^::warning file=import\.rb,line=5,title=memprof::/)
  end
end
