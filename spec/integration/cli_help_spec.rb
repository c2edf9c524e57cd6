# frozen_string_literal: true

require "memprof/cli"
require "stringio"
require "tmpdir"

# What the help of a verb lists, the verb takes.
RSpec.describe "Every option in the help of" do
  include HeapDumps

  # The usual arguments of verbs that read dumps.
  arguments = {
    "stats" => %w[DUMP], "leaks" => %w[DUMP], "top" => %w[DUMP], "histogram" => %w[DUMP],
    "query" => ["DUMP", "class = Session"], "show" => %w[DUMP ADDRESS], "path" => %w[DUMP ADDRESS],
    "tree" => %w[DUMP], "dups" => %w[DUMP], "slots" => %w[DUMP], "diff" => %w[DUMP DUMP],
    "subset" => %w[DUMP], "export" => %w[DUMP out.json], "convert" => %w[DUMP out.json]
  }
  # Values of options that take any text or number.
  values = {
    "--where" => "class = Session", "--output" => "out", "--own" => "app", "--min-size" => "1",
    "--min-copies" => "1", "--min-references" => "1",
    "--threshold" => "10", "--limit" => "2", "--offset" => "1", "--depth" => "2", "--then-limit" => "2",
    "--nearly-empty" => "10", "--class" => "Session", "--type" => "string", "--small" => "10",
    "--random" => "0.5", "--diff" => "DUMP"
  }
  %w[--roots-of --parents-of --common-ancestors --reachable-from --without --collapse].each do |name|
    values[name] = "class = Session"
  end
  # Options that their help says need another one, or stand in for an argument.
  lines = {
    %w[stats --pid] => nil, # of a process
    %w[path --where] => ["DUMP"], %w[dups --sort] => ["DUMP", "--collections"],
    %w[diff --max-increase] => nil, %w[diff --internal] => nil, # of reports
    %w[leaks --fail] => %w[DUMP DUMP], %w[export --show-contents] => %w[DUMP report.html]
  }

  of_processes = %w[--for --attach --contents --force-copy]
  [*of_processes, "--pid"].each { |name| lines[["leaks", name]] = nil }
  arguments.each_key { |verb| lines[[verb, "--blocks"]] = nil } # of core files: core_blocks_spec

  let(:address) { run("top", ["--json", cache_dump])[/0x\h+/] }

  def run(verb, words)
    out = StringIO.new
    terminal = Memprof::CLI::Terminal.new(out: out, err: StringIO.new)
    Dir.mktmpdir do |directory|
      Dir.chdir(directory) { Memprof::CLI.command(verb, terminal).start(words) }
    end
    out.string
  rescue Memprof::CLI::UsageError => e
    e
  end

  formatted = arguments.keys.select do |verb|
    Memprof::CLI::Flags.of(verb).any? { |flag| flag.key == :format && flag.words.include?(:csv) }
  end

  it "memprof #{formatted.join(", ")} --format csv prints rows" do
    places = { "DUMP" => cache_dump, "ADDRESS" => address }
    printed = formatted.to_h do |verb|
      [verb, run(verb, ["--format", "csv", *arguments[verb].map { |word| places.fetch(word, word) }])]
    end
    expect(printed.reject { |_, text| text.to_s.lines.size > 1 }).to eq({})
  end

  it "memprof leaks PID is taken" do
    skip "needs root, or the permission to trace any process" unless Process.euid.zero?
    plain_program("puts :ready; sleep") do |pid, _|
      taken = of_processes.to_h do |name|
        value = { "--for" => "1s", "--contents" => "full" }[name]
        result = Dir.mktmpdir do |library|
          run_memprof("leaks", "--for", "1s", name, *value, pid, env: { "MEMPROF_LIBRARY" => library })
        end
        [name, result.status.exitstatus]
      end
      expect(taken.values).to all(eq(0)), taken.inspect
    end
  end

  arguments.each do |verb, usual|
    it "memprof #{verb} is taken" do
      refused = Memprof::CLI::Flags.of(verb).filter_map do |flag|
        name = flag.long
        words = lines.fetch([verb, name], usual) or next
        places = { "DUMP" => cache_dump, "ADDRESS" => address }
        value = flag.words&.first&.name || values.fetch(name, "ADDRESS")
        taken = [name, *(value if flag.value)]
        outcome = run(verb, [*taken, *words].map { |word| places.fetch(word, word) })
        "#{taken.join(" ")}: #{outcome.message}" if outcome.is_a?(Memprof::CLI::UsageError)
      end
      expect(refused).to eq([])
    end
  end
end
