# frozen_string_literal: true

require "fileutils"
require "tmpdir"

# The stories of docs/leaks.md, as a reader would follow them.
RSpec.describe "docs/leaks.md" do
  include HeapDumps

  page = File.read(File.join(ChildRuby::ROOT, "docs/leaks.md"))
  commands = page.scan(/<!-- output.*? of: (.+?) -->/).flatten

  # What the page says that they show.
  facts = {
    "leaks cache-1.memprof" => [
      /^1\. 4,000 more Session instances retain/, /^Retained by +Sessions::STORE -> Hash\[\*\]$/,
      /^Allocated at +heap_cache\.rb:27 in fetch/
    ],
    # Since Ruby 4.0 a table of the VM grows by more.
    "diff --limit 4 cache-1" => [RUBY_VERSION < "4" ? /\+2,000 +2,000 +0 .* Session$/ : /\+2,000 .* Array$/],
    "leaks callbacks.memprof" => [
      /2,000 Array instances retain/, /^Retained by +\$driver -> Driver@waiting -> Array\[\*\]$/,
      /^Allocated at +heap_callbacks\.rb:21 /
    ],
    "leaks --ignore-stack-roots" => [/10,000 methods retain/, /^Retained by +Templates#render_order_#/],
    "diff --limit 5 version-1" => [/\+5,000 .* TaggedProduct$/]
  }

  it "has a command for each of them" do
    expect(commands.map { |command| facts.keys.find { |part| command.include?(part) } }).to eq(facts.keys)
  end

  # With this Ruby as `ruby`: the one beside it of that name may be another.
  def shell(command, directory)
    bin = File.join(directory, "bin")
    FileUtils.mkdir_p(bin)
    FileUtils.ln_s(RbConfig.ruby, File.join(bin, "ruby"))
    path = [bin, File.join(ChildRuby::ROOT, "exe"), ENV.fetch("PATH")]
    environment = { "PATH" => path.join(File::PATH_SEPARATOR), "RUBYLIB" => ChildRuby::LIB }
    run_command("sh", "-c", command, env: environment, chdir: directory)
  end

  # A sentence may be wrapped anywhere.
  def flowing(text)
    text + text.gsub(/\n(?=\S)/, " ")
  end

  facts.each do |part, patterns|
    it "shows what it says: #{part}" do
      needs(part.include?("diff") || part.include?("cache-1") ? :diff : :procs)
      command = commands.find { |candidate| candidate.include?(part) }
      Dir.mktmpdir do |directory|
        FileUtils.cp(Dir[File.join(ChildRuby::ROOT, "examples/heap_*.rb")], directory)
        stdout, stderr, status = shell(command, directory)
        expect([stderr, status.exitstatus]).to eq(["", 0])
        patterns.each { |pattern| expect(flowing(stdout)).to match(pattern) }
      end
    end
  end
end
