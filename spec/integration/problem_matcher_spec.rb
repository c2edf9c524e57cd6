# frozen_string_literal: true

require "json"
require "memprof/cli"
require "stringio"
require "tmpdir"

# What editors and GitHub find in the text of commands.
RSpec.describe "Problem matchers" do
  include HeapDumps

  docs = File.expand_path("../../docs", __dir__)
  matcher = JSON.parse(File.read(File.join(docs, "problem-matcher.json")))
  errorformat = File.read(File.join(docs, "pull-requests.md"))[/^set errorformat=(.*)$/, 1]

  # Files and lines that a matcher finds in a text.
  define_method(:found) do |text|
    patterns = matcher["problemMatcher"].map { |one| one["pattern"].first }
    text.lines(chomp: true).flat_map do |line|
      patterns.filter_map do |pattern|
        match = line.match(pattern["regexp"])
        match&.values_at(*pattern.values_at("file", "line"))
      end
    end
  end

  # The same by Vim's errorformat, as a regular expression.
  define_method(:found_by_vim) do |text|
    patterns = errorformat.split(",").map do |one|
      source = Regexp.escape(one.gsub("\\ ", " ").gsub("\\\\", "\\"))
      source = source.gsub("%\\\\s%\\#", "\\s*").gsub("%\\.%\\#", ".*")
      Regexp.new("\\A#{source.gsub("%f", "(?<file>\\S+?)").gsub("%l", "(?<line>\\d+)").gsub("%m", ".+")}\\z")
    end
    text.lines(chomp: true).filter_map do |line|
      match = patterns.filter_map { |pattern| line.match(pattern) }.first
      match.values_at(:file, :line) if match&.names&.include?("file")
    end
  end

  def text(*command)
    out = StringIO.new
    terminal = Memprof::CLI::Terminal.new(out: out, err: StringIO.new)
    Memprof::CLI.command(command.first, terminal).start(command.drop(1))
    out.string
  end

  it "find the lines that allocate more, and no others" do
    Dir.mktmpdir do |directory|
      Dir.chdir(directory) do
        File.write("import.rb", "def work(count) = Array.new(count) { +\"x\" }\n")
        load("./import.rb")
        [10, 5000].each { |count| Memprof.report { work(count) }.write("#{count}.json", format: :json) }
        grown = text("diff", "10.json", "5000.json")
        expect(found(grown).uniq).to eq([["import.rb", "1"]]), grown
        expect(found_by_vim(grown).uniq).to eq([["import.rb", "1"]]), grown
        expect(found(text("diff", "5000.json", "10.json"))).to eq([])
      end
    end
  end

  it "find the line that leaks" do
    leaks = text("leaks", *[1, 2, 3].map { |number| cache_dump(number) })
    place = leaks[/^Allocated at +(\S+):27 /, 1]
    expect(found(leaks)).to eq([[place, "27"]])
    expect(found_by_vim(leaks)).to eq([[place, "27"]])
  end
end
