# frozen_string_literal: true

require "fileutils"
require "open3"
require "tmpdir"
require_relative "../spec/support/documents"

# What the documents show as output is output. A comment before such a block says what it is the output of:
#
#   <!-- output of: ruby script.rb -->                  a command, in a directory with the files of examples/
#   <!-- output, first 9 lines, of: ruby script.rb -->  the beginning of it, and a line with three dots
#   <!-- output of the code above, as app.rb -->        the last block of Ruby code, as a file of that name
#   <!-- output of the code above, as app.rb, by: memprof track app.rb -->
module DocumentedOutput
  SOURCE = /: (?<command>.+?)| the code above, as (?<file>\S+?)(?:, by: (?<by>.+?))?/
  MARK = /<!-- output(?:, first (?<lines>\d+) lines,)? of(?:#{SOURCE}) -->/
  BLOCK = /^(?<mark>#{MARK})\n(?<fence>```\w*)\n(?<old>.*?)^```$/m
  PAGES = FileList["README.md", "docs/*.md"]

  class << self
    # Runs what the page shows the output of, and replaces it by what is printed now.
    def update(page)
      text = File.read(page)
      new = text.gsub(BLOCK) do
        match = Regexp.last_match
        "#{match[:mark]}\n#{match[:fence]}\n#{output(match)}```"
      end
      File.write(page, new)
      puts("#{page}: #{new == text ? "as it was" : "updated"}")
    end

    private

    def output(match)
      in_a_shop do |directory|
        command = match[:command] || program(match, directory)
        text, errors, status = Open3.capture3(Documents.environment, command, chdir: directory)
        abort("#{command}\n#{errors}") unless status.success?
        shorten(text.gsub(/ +$/, ""), match[:lines])
      end
    end

    # Paths in the output are those of some shop, not of a home directory.
    def in_a_shop
      Dir.mktmpdir do |directory|
        shop = File.join(directory, "shop")
        FileUtils.mkdir_p(shop)
        FileUtils.cp(Dir["examples/*.rb"], shop)
        yield shop
      end
    end

    def program(match, directory)
      code = match.pre_match.scan(/^```ruby.*?\n(.*?)^```$/m).last.first
      File.write(File.join(directory, match[:file]), code)
      match[:by] || "ruby #{match[:file]}"
    end

    def shorten(text, lines)
      return text if lines.nil? || text.lines.size <= lines.to_i

      "#{text.lines.first(lines.to_i).join}...\n"
    end
  end
end

desc "Run again what README.md and docs/ show the output of (PAGE=docs/cli.md for one page)"
task "docs:update" => "compile:release" do
  pages = ENV["PAGE"] ? [ENV["PAGE"]] : DocumentedOutput::PAGES
  pages.each { |page| DocumentedOutput.update(page) }
end

desc "Write the report of a Rails request into docs/rails-request.md"
task "docs:rails" => "compile:release" do
  DocumentedOutput.update("docs/rails-request.md")
end

desc "Run README.md from top to bottom, as pasted (INSTALL=1: its install line, too)"
task "docs:readme" do
  require_relative "../spec/support/documents/walk"
  Documents::Walk.new("README.md", install: ENV.key?("INSTALL")).run { |place| puts(place) }
end

desc "Write docs/columns.md and docs/options.md from the tables of columns and of options"
task "docs:reference" do
  $LOAD_PATH.unshift(File.expand_path("../lib", __dir__))
  require_relative "../spec/support/documents/reference"
  Documents::Reference.pages.each { |page, text| File.write(page, text) }
end

desc "Count words, and list long sentences, inversions and replaced words (PAGE=docs/cli.md for one page)"
task "docs:words" do
  require_relative "../spec/support/documents/words"
  pages = (ENV["PAGE"] ? [ENV["PAGE"]] : DocumentedOutput::PAGES).map { |page| File.expand_path(page) }
  puts(pages.flat_map { |page| Documents::Words.findings(page) })
  counts = Documents::Words.counts(pages)
  counts.sort_by(&:last).each { |page, words| puts(format("%6d  %s", words, page)) }
  puts(format("%6d  in all, at most %d", counts.values.sum, Documents::Words::MOST)) unless ENV["PAGE"]
end
