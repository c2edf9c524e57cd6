# frozen_string_literal: true

require "rbconfig"

# Code in the documents: blocks of README.md and docs/, examples in the comments of lib/.
module Documents
  ROOT = File.expand_path("../..", __dir__)
  PAGES = Dir[File.join(ROOT, "{README,ARCHITECTURE,CHANGELOG,CONTRIBUTING,SECURITY}.md"),
    File.join(ROOT, "docs/*.md")].sort.freeze
  BLOCK = /^```ruby(?: (?<kind>[\w-]+))?\n(?<code>.*?)^```$/m
  # The example's title, then all lines that are indented further, or empty.
  EXAMPLE = /^(?<margin> *)# @example(?<title>.*)\n(?<code>(?:\k<margin>#(?:   .*)?\n)+)/
  # Parts of a user's application.
  FRAGMENT = /config\.ru|Rails/
  KINDS = { "lib/memprof/rspec" => "rspec", "lib/memprof/minitest" => "minitest" }.freeze

  FOLDERS = %w[bench bin crates docs examples exe ext fuzz lib rakelib sig spec web].freeze
  # Names that are meant as paths: with a slash at the end, or an extension used in the repository.
  NAMED = %r{\A[\w.-][\w./-]*(?:/|\.(?:rb|rs|rake|md|rbs|js|erb|yml|toml))\z}

  # A snippet of code: its place, its kind (nil, "rspec", "minitest", or "no-run"), its text.
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

  # Stands in for an installed gem: `memprof` and `require "memprof"` find this checkout.
  def environment
    path = [File.join(ROOT, "exe"), RbConfig::CONFIG["bindir"], ENV.fetch("PATH")]
    {
      "PATH" => path.join(File::PATH_SEPARATOR), "RUBYLIB" => File.join(ROOT, "lib"), "RUBYOPT" => nil,
      "NO_COLOR" => "1", "LC_ALL" => "C.UTF-8"
    }
  end

  # The files and folders of the repository, folders with a slash at the end.
  def paths
    @paths ||= Dir[File.join(ROOT, "{*,.ci,.github,{#{FOLDERS.join(",")}}/**/*}")].map do |path|
      File.directory?(path) ? "#{path}/" : path
    end
  end

  # The names of files and folders of the repository that appear in backticks on a page.
  def names(page)
    text = File.read(page).gsub(/^```.*?^```$/m, "")
    text.scan(/`([^`\s]+)`/).flatten.uniq.grep(NAMED)
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
