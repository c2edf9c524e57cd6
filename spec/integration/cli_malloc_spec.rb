# frozen_string_literal: true

require "tmpdir"

RSpec.describe "memprof malloc" do
  before { skip "malloc is recorded on Linux" unless RUBY_PLATFORM.include?("linux") }

  it "shows what the Ruby processes of a command allocated, and exits as it does" do
    code = "kept = Array.new(50) { \"x\" * 20_000 }; exit 3"
    stdout, stderr, status = run_memprof("malloc", "--limit", "2", "--", RbConfig.ruby, "-e", code)
    expect([stdout, status.exitstatus]).to eq(["", 3])
    expect(stderr).to match(/\Amalloc of -e, process \d+: [\d.]+ [KM]iB live in \d+ blocks of /)
    expect(stderr).to match(/^ *[\d.]+ [KM]iB +\d\d +[\d.]+ [KM]iB +\d\d  -e:1$/)
    sampled = run_memprof("malloc", "--sample-bytes", "4KiB", "--", RbConfig.ruby, "-e", code).stderr
    expect(sampled).to include(" calls of malloc, sampled every 4.0 KiB on average: estimates")
    Dir.mktmpdir do |directory|
      run_memprof("malloc", "--output", "#{directory}/malloc.txt", "--min-size", "900000", "--", "sh", "-c",
        "#{RbConfig.ruby} -e '#{code}'")
      expect(File.read("#{directory}/malloc.txt")).to match(/\A +1\d{6} +\d\d -e:1\n\z/)
    end
  end

  it "counts none of its own lines" do
    code = "kept = Array.new(50) { \"x\" * 20_000 }; require \"json\""
    all = run_memprof("malloc", "--limit", "1000", "--", RbConfig.ruby, "--disable=gems", "-e", code).stderr
    expect(all).to match(/ -e:1$/)
    expect(all).not_to include("memprof/")
    rows = all.scan(/^ *[\d.]+ \w+ +([\d,]+) +[\d.]+ \w+ +[\d,]+  /)
    listed = rows.sum { |(blocks)| blocks.delete(",").to_i }
    expect(all[/live in ([\d,]+) blocks/, 1].delete(",").to_i).to eq(listed)
  end

  it "records programs that are no Ruby, and leaves them and what they start as they are" do
    skip "this Ruby has no libruby" unless File.read("/proc/self/maps").include?("/libruby")
    Dir.mktmpdir do |directory|
      path = "#{directory}/malloc.txt"
      stdout, stderr, status = run_memprof("malloc", "--output", path, "--", "sh", "-c",
        "echo HELLO_WORLD; env; exit 4")
      # dash ends by _exit.
      expect(stderr).to eq("").or eq("memprof: no report: sh ended by exec, _exit or a signal\n")
      expect(status.exitstatus).to eq(4)
      expect(stdout).to start_with("HELLO_WORLD\n")
      expect(stdout).not_to include("LD_PRELOAD", "MEMPROF_PRELOAD")
      expect(File.readlines(path)).to all(match(/\A *\d+ +\d+ \S+\(.*\) \[0x\h+\]( \S+:\d+)?\n\z/))
      expect(File.stat(path).mode & 0o777).to eq(0o600)
    end
    stdout, stderr, = run_memprof("malloc", "--limit", "1", "--", "sort", "--help")
    expect(stdout).to include("sort [OPTION]")
    expect(run_memprof("malloc", "--sample-bytes", "64", "--", "sort", "--version").stderr)
      .to match(/\Amalloc of sort, process \d+, in bytes \(sampled every 64 bytes on average: estimates\):\n/)
    expect(stderr)
      .to match(/\Amalloc of sort, process \d+, in bytes:\n +Live +Blocks .*\n.+\[0x\h+\]( \S+:\d+)?\n\z/)
  end

  it "says why there is no report" do
    no_report = ->(*command) { run_memprof("malloc", "--", *command).stderr }
    expect(no_report.call(RbConfig.ruby, "-e", "exit!"))
      .to eq("memprof: no report: #{RbConfig.ruby} ended by exec, exit! or a signal\n")
    expect(no_report.call(RbConfig.ruby, "--disable-rubyopt", "-e", "1"))
      .to eq("memprof: no report: #{RbConfig.ruby} is linked statically, or ran no Ruby\n")
    skip "this Ruby has no libruby" unless File.read("/proc/self/maps").include?("/libruby")
    ["exec true", "kill -9 $$"].each do |code|
      expect(no_report.call("sh", "-c", code))
        .to eq("memprof: no report: sh ended by exec, _exit or a signal\n")
    end
    full = "/dev/full"
    skip "there is no #{full}" unless File.chardev?(full)
    expect(run_memprof("malloc", "--output", full, "--", "sort", "--version").stderr)
      .to eq("memprof: no report: sort cannot write it\n")
    ruby = run_memprof("malloc", "--output", full, "--", RbConfig.ruby, "-e", "1").stderr
    expect(ruby).to eq("memprof: no dump of malloc: cannot write #{full}: No space left on device\n")
  end

  it "names what is wrong" do
    expect(run_memprof("malloc").stderr).to eq("memprof: no command given; see `memprof help malloc`\n")
    wrong = run_memprof("malloc", "--output", "/a,b", "true")
    expect([wrong.stderr, wrong.status.exitstatus]).to eq(
      ["memprof: invalid --output \"/a,b\"; expected a path without a comma\n", 2]
    )
    expect(run_memprof("malloc", "--sample-bytes", "0", "true").stderr)
      .to eq("memprof: invalid --sample-bytes \"0\"; expected a size between 1 B and 4 GiB, such as 512KiB\n")
    expect(run_memprof("malloc", "--", "no-such-program").status.exitstatus).to eq(127)
    Dir.mktmpdir do |directory|
      old = File.join(directory, "old.json")
      File.write(old, "{}")
      refused = run_memprof("malloc", old)
      expect([refused.stderr, refused.status.exitstatus])
        .to eq(["memprof: #{old} is neither a command nor a malloc recording\n", 2])
    end
    expect(run_memprof("malloc", "no-such.malloc").stderr)
      .to end_with("memprof: no such recording either: no-such.malloc\n")
  end
end
