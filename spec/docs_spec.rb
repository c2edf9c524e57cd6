# frozen_string_literal: true

require "json"
require "memprof/cli"
require "tmpdir"
require_relative "support/documents/promised"
require_relative "support/documents/reference"
require_relative "support/documents/walk"
require_relative "support/documents/words"

# What the documents say is run by the specs as well, so that it stays true.
RSpec.describe "The documents" do
  promised = File.expand_path("support/documents/promised", __dir__)
  blocks, fragments = Documents.blocks.partition { |snippet| snippet.kind != "no-run" }

  blocks.each do |snippet|
    it "have code that runs as pasted, and gives the values that it promises: #{snippet.place}" do
      in_tmpdir { paste(snippet, snippet.code) }
      checked = Promised.checked(snippet.code)
      in_tmpdir { paste(snippet, checked, "-r#{promised}") } if checked != snippet.code
    end
  end

  # Runs it in a process of its own, which has loaded nothing.
  def paste(snippet, code, *options)
    File.write("example.rb", code)
    options.push("-S", "rspec") if snippet.kind == "rspec"
    result = run_command(RbConfig.ruby, *options, "example.rb", env: Documents.environment)
    expect(result).to be_success, "#{snippet.place}\n#{result.stdout}#{result.stderr}"
    expect(result.stdout).to match(/[1-9]\d* examples?, 0 failures/) if snippet.kind == "rspec"
  end

  def in_tmpdir(&block)
    Dir.mktmpdir { |directory| Dir.chdir(directory, &block) }
  end

  it "have a README that runs from top to bottom, as pasted" do
    places = []
    Documents::Walk.new("README.md").run { |place| places << place }
    expect(places.size).to be > 3
  end

  it "have examples in the comments of lib/ that run, and give the values that they promise" do
    examples = Documents.examples.reject { |snippet| snippet.kind == "no-run" }
    expect(examples.size).to be > 10
    runner = File.expand_path("support/documents/run_snippets.rb", __dir__)
    result = run_ruby(runner, input: JSON.generate(examples.map(&:to_a)), timeout: 300)
    expect("#{result.stdout}#{result.stderr}").to eq("")
    expect(result.status).to be_success
  end

  it "have code that prints what they say" do
    text = File.read(File.join(Documents::ROOT, "docs/trace.md"))
    printed = text.scan(/^```ruby\n([^`]+)^```\n\nprints\n\n```json\n([^`]+)^```/)
    printed.reject! { |_, json| json.include?("...") }
    expect(printed).not_to be_empty
    printed.each { |code, json| expect(JSON.parse(run_ruby(code).stdout)).to eq(JSON.parse(json)) }
  end

  it "have code that is Ruby where it cannot run" do
    fragments += Documents.examples.select { |snippet| snippet.kind == "no-run" }
    fragments.each { |snippet| RubyVM::InstructionSequence.compile(snippet.code, snippet.place) }
  end

  Documents::Reference.pages.each do |page, text|
    it "have the reference that the code has: #{page}" do
      written = File.read(File.join(Documents::ROOT, page))
      expect(written).to eq(text), "#{page} is out of date; run: rake docs:reference"
    end
  end

  Documents::PAGES.each do |page|
    name = Documents.relative(page)

    it "refer to what is there: #{name}" do
      links = File.read(page).gsub(/^```.*?^```$/m, "").scan(/\]\((?!https?:)([^)\s]+)\)/).flatten
      missing = links.reject { |link| there?(link, page) }
      expect(missing).to eq([])
    end
  end

  Dir[File.join(Documents::ROOT, "{README.md,docs/*.md}")].sort.each do |page|
    it "use short sentences and the words of the field: #{Documents.relative(page)}" do
      expect(Documents::Words.findings(page).map(&:to_s)).to eq([])
    end
  end

  it "are short enough to be read: rake docs:words counts them" do
    counts = Documents::Words.counts(Dir[File.join(Documents::ROOT, "{README.md,docs/*.md}")])
    longest = counts.max_by(5, &:last).map { |page, words| "#{page}: #{words}" }.join(", ")
    all = counts.values.sum
    expect(all).to be <= Documents::Words::MOST, "#{all} words; longest: #{longest}"
  end

  it "are read by sentence, without code and tables" do
    page = <<~MARKDOWN
      # What is it?
      Told are `all of them` at once. *memprof* reports
      [the lines](b.md) that allocate. What is born stays.

      a | b
      ---|---
      nobody | knows

      - #{"word " * 31}
      - Retained objects are those that a GC does not free.
    MARKDOWN
    sentences = Documents::Words.sentences(page)
    expect(sentences.map(&:first)).to eq([2, 2, 3, 9, 10])
    expect(sentences[1].last).to eq("MEMPROF reports the lines that allocate.")
    problems = sentences.map { |_, sentence| Documents::Words.problems(sentence).size }
    expect(problems).to eq([2, 0, 3, 1, 0])
  end

  def there?(link, page)
    file, anchor = link.split("#", 2)
    path = file.empty? ? page : File.expand_path(file, File.dirname(page))
    File.exist?(path) && (anchor.nil? || anchors(path).include?(anchor))
  end

  # As GitHub makes them of headings.
  def anchors(page)
    headings = File.read(page).gsub(/^```.*?^```$/m, "").scan(/^#+ (.+)$/).flatten
    headings.map { |heading| heading.downcase.gsub(/[^\w\- ]/, "").tr(" ", "-") }
  end

  %w[ARCHITECTURE.md CONTRIBUTING.md docs/ruby-internals.md].each do |page|
    it "name files and folders that are there: #{page}" do
      names = Documents.names(File.join(Documents::ROOT, page))
      expect(names.size).to be > 10
      expect(names.reject { |name| Documents.paths.any? { |path| path.end_with?("/#{name}") } }).to eq([])
    end
  end

  (Memprof::CLI::VERBS.keys - %w[completion help]).to_h { |verb| [verb, "options.md"] }.each do |verb, page|
    it "name every option of memprof #{verb}" do
      text = File.read(File.join(Documents::ROOT, "docs", page))
      options = run_memprof("help", verb).stdout.scan(/^ +(?:-\w, )?(--[a-z-]+)/).flatten - ["--help"]
      expect(options).not_to be_empty
      expect(options.reject { |option| text.include?(option) }).to eq([])
    end
  end

  it "name every public method of Memprof" do
    text = Dir[File.join(Documents::ROOT, "docs/*.md")].map { |page| File.read(page) }.join
    methods = Memprof.singleton_methods(false).reject { |name| text.include?(name.to_s) }
    expect(methods).to eq([])
  end
end
