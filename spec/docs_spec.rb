# frozen_string_literal: true

require "json"
require "memprof/cli"

# What the documents say is done by the specs as well, so that it stays true.
RSpec.describe "The documents" do
  runner = File.expand_path("support/documents/run_snippets.rb", __dir__)
  runnable, fragments = Documents.snippets.partition { |snippet| snippet.kind != "no-run" }

  { "README.md and docs/" => /\A(?:README|docs)/, "the comments of lib/" => /\Alib/ }.each do |where, pattern|
    it "have code that runs, and gives the values that they promise, in #{where}" do
      chosen = runnable.select { |snippet| snippet.place.match?(pattern) }
      expect(chosen.size).to be > 10
      result = run_ruby(runner, input: JSON.generate(chosen.map(&:to_a)), timeout: 300)
      expect("#{result.stdout}#{result.stderr}").to eq("")
      expect(result.status).to be_success
    end
  end

  it "have code that prints what they say" do
    text = File.read(File.join(Documents::ROOT, "docs/trace.md"))
    printed = text.scan(/^```ruby\n([^`]+)^```\n\nprints\n\n```json\n([^`]+)^```/)
    printed.reject! { |_, json| json.include?("...") }
    expect(printed).not_to be_empty
    printed.each { |code, json| expect(JSON.parse(run_ruby(code).stdout)).to eq(JSON.parse(json)) }
  end

  it "have code that is Ruby where it cannot run" do
    fragments.each { |snippet| RubyVM::InstructionSequence.compile(snippet.code, snippet.place) }
  end

  Documents::PAGES.each do |page|
    name = Documents.relative(page)

    it "refer to what is there: #{name}" do
      links = File.read(page).gsub(/^```.*?^```$/m, "").scan(/\]\((?!https?:)([^)\s]+)\)/).flatten
      missing = links.reject { |link| there?(link, page) }
      expect(missing).to eq([])
    end
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

  (Memprof::CLI::VERBS.keys - %w[help]).to_h { |verb| [verb, "cli.md"] }.each do |verb, page|
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
