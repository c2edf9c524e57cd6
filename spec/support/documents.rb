# frozen_string_literal: true

# The code in the documents: blocks of README.md and docs/, examples in the comments of lib/.
module Documents
  ROOT = File.expand_path("../..", __dir__)
  PAGES = Dir[File.join(ROOT, "{README,ARCHITECTURE,CHANGELOG,CONTRIBUTING,SECURITY}.md"),
    File.join(ROOT, "docs/*.md")].sort.freeze
  BLOCK = /^```ruby(?: (?<kind>[\w-]+))?\n(?<code>.*?)^```$/m
  # The example's title, then all lines that are indented deeper, or empty.
  EXAMPLE = /^(?<margin> *)# @example(?<title>.*)\n(?<code>(?:\k<margin>#(?:   .*)?\n)+)/
  # Parts of somebody's application.
  FRAGMENT = /config\.ru|Rails/
  KINDS = { "lib/memprof/rspec" => "rspec", "lib/memprof/minitest" => "minitest" }.freeze

  # A piece of code: where it is, what it is (nil, "rspec", "minitest", or "no-run").
  Snippet = Struct.new(:place, :kind, :code)

  module_function

  def snippets
    blocks + examples
  end

  def blocks
    PAGES.flat_map do |page|
      matches(File.read(page), BLOCK)
        .map { |match| Snippet.new(place(page, match), match[:kind], match[:code]) }
    end
  end

  def examples
    Dir[File.join(ROOT, "lib/**/*.rb")].sort.flat_map do |file|
      matches(File.read(file), EXAMPLE).map do |match|
        code = match[:code].gsub(/^ *#(?:   )?/, "").strip
        Snippet.new(place(file, match), match[:title].match?(FRAGMENT) ? "no-run" : kind(file), "#{code}\n")
      end
    end
  end

  def kind(file)
    KINDS.find { |directory, _| relative(file).start_with?(directory) }&.last
  end

  def place(file, match)
    "#{relative(file)}:#{match.pre_match.count("\n") + 1}"
  end

  def relative(file)
    file.delete_prefix("#{ROOT}/")
  end

  def matches(text, pattern)
    text.to_enum(:scan, pattern).map { Regexp.last_match }
  end
end
