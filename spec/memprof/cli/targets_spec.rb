# frozen_string_literal: true

require "memprof/cli"
require "tmpdir"

RSpec.describe Memprof::CLI::Targets do
  include HeapDumps

  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  it "finds the verb of the first answer about each kind" do
    File.write("report.json", %({"format":"memprof-report"}))
    File.binwrite("core.1", "\x7fELF")
    Memprof::Malloc.record("app.malloc") { "x" * 1000 }
    found = { cache_dump => "leaks", "core.1" => "core", "app.malloc" => "malloc", "report.json" => "web" }
    expect(found.keys.to_h { |file| [file, described_class.verb([file, "--json"])] }).to eq(found)
    expect(described_class.verb([cache_dump, cache_dump])).to eq("leaks")
    expect(described_class.verb([Process.pid.to_s, "--for", "1s"])).to eq("leaks")
    expect(described_class.verb(%w[lekas])).to be_nil
  end

  it "prefers a file to a process of that number" do
    File.binwrite("4711", "\x7fELF")
    expect(described_class.verb(%w[4711])).to eq("core")
  end

  it "refuses what it cannot answer about" do
    File.write("app.rb", "puts 1\n")
    File.write("app.txt", "puts 1\n")
    File.write("empty", "")
    File.binwrite("core.1", "\x7fELF")
    refused = {
      ["app.rb"] => "app.rb is a Ruby program; `memprof run app.rb` shows what it allocates and retains",
      ["app.txt"] => /\Aunknown kind of file: app\.txt \(it begins with "puts 1\\n"\); expected one of: a /,
      ["empty"] => /\Aunknown kind of file: empty \(it is empty\); expected one of: a heap dump, a core/,
      ["/dev/null"] => %r{\Aunknown kind of file: /dev/null \(it is not a regular file\); expected one of: },
      ["./no.json"] => "cannot read ./no.json: no such file",
      [Dir.pwd] => "cannot read #{Dir.pwd}: is a directory",
      ["core.1", cache_dump] => /\Aexpected files of one kind: core\.1 is a core file, .* is a heap dump\z/
    }
    refused.each do |arguments, message|
      expect { described_class.verb(arguments) }.to raise_error(Memprof::CLI::UsageError, message)
    end
  end

  it "may follow options, unless they are those of memprof 0.3" do
    after = run_memprof("--limit", "1", "--json", cache_dump)
    expect([after.stdout, after.status.exitstatus])
      .to eq([run_memprof("leaks", "--limit", "1", "--json", cache_dump).stdout, 0])
    json = run_memprof("leaks", "--json", cache_dump).stdout
    expect(run_memprof("-f", "json", cache_dump).stdout).to eq(json)
    old = run_memprof("--name", "app", "--pid", Process.pid, "--test", cache_dump)
    expect(old.stdout).to include("Memprof Uploader")
    without = run_memprof("--limit", "1")
    expect([without.stderr, without.status.exitstatus])
      .to eq(["memprof: TARGET, a PID or a file, is missing; see `memprof --help`\n", 2])
  end

  it "says what a command line of options lacks" do
    missing = "TARGET, a PID or a file, is missing"
    refused = {
      %w[--limit 1] => missing, %w[--limit=1] => missing, %w[--json] => missing, %w[--lim 1] => missing,
      %w[-f json] => missing, %w[-fjson] => missing,
      %w[--json no.memprof] => "cannot read no.memprof: no such file",
      %w[--json leaks] => "leaks must come before its options",
      %w[--lmit 1] => "invalid option: --lmit (did you mean --limit?)",
      %w[--after-boot] => "invalid option: --after-boot", %w[-] => "invalid option: -"
    }
    refused.each do |arguments, message|
      expect(described_class.refusal(arguments).delete_suffix("; see `memprof --help`")).to eq(message)
    end
  end

  it "names a misspelt option before what may be its value" do
    File.write("app.rb", "puts 1\n")
    [%w[--lmit 1], %w[--lmit app.rb], ["--lmit", cache_dump]].each do |arguments|
      expect(described_class.verb_behind_options(arguments)).to be_nil
    end
    expect(described_class.verb_behind_options(["--", Process.pid.to_s])).to eq("leaks")
    result = run_memprof("--lmit", "1", "app.rb")
    expect([result.stderr, result.status.exitstatus])
      .to eq(["memprof: invalid option: --lmit (did you mean --limit?); see `memprof --help`\n", 2])
  end

  it "is what the command does without a verb" do
    result = run_memprof(cache_dump)
    expect([result.stdout, result.status.exitstatus]).to eq([run_memprof("leaks", cache_dump).stdout, 0])
    result = run_memprof("lekas")
    expect([result.stderr, result.status.exitstatus])
      .to eq(["memprof: unknown command \"lekas\" (did you mean leaks?); see `memprof --help`\n", 2])
  end
end
