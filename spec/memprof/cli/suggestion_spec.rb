# frozen_string_literal: true

require "memprof/cli"
require "shellwords"
require "tmpdir"

RSpec.describe Memprof::CLI::Suggestion do
  include HeapDumps

  it "quotes words as bash reads them, on one line" do
    {
      "app.memprof" => "app.memprof", "my app.json" => "'my app.json'", "it's" => "it\\'s", "" => "''",
      "\xff.json" => "$'\\xff.json'", "\xffit's \\n" => "$'\\xffit\\'s \\\\n'", "a\n\eb" => "$'a\\x0a\\x1bb'",
      "Größe\xc3.json".b => "$'Größe\\xc3.json'", "a\u202eb" => "$'a\\xe2\\x80\\xaeb'"
    }.each do |text, word|
      expect(described_class.word(text)).to eq(word)
      read, = Open3.capture2("bash", "-c", "printf %s #{word}")
      expect(read.b).to eq(text.b)
    end
  end

  it "names files that are not text so that the command runs" do
    Dir.mktmpdir do |directory|
      file = File.join(directory, "\xff it's.json")
      File.binwrite(file, File.binread(cache_dump))
      suggested = run_memprof("stats", "--no-index", file).stderr[/memprof top .*?(?=  |$)/]
      command = [RbConfig.ruby, File.join(ChildRuby::ROOT, "exe/memprof")].shelljoin
      result = run_command("bash", "-c", suggested.sub("memprof", command))

      expect(suggested).to include("\\xff it\\'s.json'")
      expect([result.status.exitstatus, result.stdout]).to eq([0, run_memprof("top", cache_dump).stdout])
    end
  end
end
