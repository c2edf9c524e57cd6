# frozen_string_literal: true

RSpec.describe "memprof core" do
  include_context "with memprof core"

  it "knows the stacks of threads that run, too" do
    threads = "3.times { Thread.new { loop { Array.new(20) { _1.to_s }.sort } } }"
    plain_program("#{threads}\nputs :ready\n$stdin.read") do |pid|
      3.times do
        stacks = json(pid, "list", "stacks")["regions"]
        expect(stacks.map { |stack| stack["thread"].to_s }).to match_array(Dir.children("/proc/#{pid}/task"))
      end
      expect(File.read("/proc/#{pid}/status")).to include("TracerPid:\t0")
    end
  end

  it "shows where the memory of a running process went" do
    plain_program(planted) do |pid|
      text = core(pid)
      name = Regexp.escape(File.read("/proc/#{pid}/comm").chomp)
      expect(text).to match(/\A#{name}, process #{pid}, paused for [\d.]+ ms\n/)
      expect(text).to match(/^Allocator +glibc, \d+ arenas?, /)
      expect(text).to match(/^Ruby's heap +\d+ pages of \d+\.0 KiB$/)
      expect(text).to match(/^ +[\d.]+ [KM]iB +[\d.]+ % +[\d,]+  blocks of Ruby objects$/)
      expect(text).to match(/[\d,]+  STRING$/)
      expect(text.lines.map { |line| line.chomp.length }.max).to be <= 100
      expect(File.read("/proc/#{pid}/task/#{pid}/children")).to eq("")
    end
  end

  it "writes answers to a file" do
    plain_program(planted) do |pid|
      expect(core("--output", "summary.json", "--json", pid)).to eq("")
      expect(JSON.parse(File.read("summary.json"))).to include("allocator" => "glibc")
      expect(core(pid, "-o", "count", "count", "used")).to eq("")
      expect(File.read("count")).to match(/\A\d+ allocations use .* bytes\.\n\z/)
    end
  end

  it "reads a core file of gcore" do
    skip "gcore is not installed (the package gdb)" unless system("which gcore > /dev/null")

    plain_program(planted) do |pid|
      live = json(pid)
      written = system("gcore", "-o", "core", pid.to_s, out: File::NULL, err: File::NULL)
      skip "gcore may not trace" unless written
      dumped = json("core.#{pid}")
      expect(dumped.values_at("pid", "missing", "corruptions")).to eq([pid, 0, []])
      expect(dumped["threads"]).to eq(live["threads"]).and be >= 4 # the VM may have one of its own
      same = %w[used free ruby_pages]
      expect(dumped.values_at(*same)).to eq(live.values_at(*same))
      expect(dumped["leaked"]["count"]).to be_between(0, live["leaked"]["count"] + 20)
      expect(core("core.#{pid}")).to match(/\Acore\.#{pid}: \S+, process #{pid}\n/)
      leaked = dumped["leaked"]["count"]
      said = "Nothing references #{Memprof::Units.plural(leaked, "block")} of malloc \\([\\d.]+ \\w+"
      expect(run_memprof("leaks", "core.#{pid}").stdout.gsub(/\s+/, " "))
        .to match(leaked.zero? ? /No block of malloc is leaked\./ : /#{said}/)
      File.truncate("core.#{pid}", File.size("core.#{pid}") / 2)
      cut = run_memprof("core", "core.#{pid}")
      expect([cut.status.exitstatus, cut.stdout.lines[1]])
        .to match([2, /^Note: .* of the file are missing; answers are incomplete\.$/])
    end
  end

  it "says that a process belongs to another user" do
    skip "needs root and setpriv" unless Process.euid.zero? && system("which setpriv", out: File::NULL)
    nobody = %w[setpriv --reuid=65534 --regid=65534 --clear-groups]
    command = [RbConfig.ruby, "-I#{ChildRuby::LIB}", File.join(ChildRuby::ROOT, "exe/memprof"), "core"]
    skip "nobody may not read memprof" unless run_command(*nobody, *command, "--help").success?

    expect(run_command(*nobody, *command, Process.pid.to_s).stderr).to eq(
      "memprof: process #{Process.pid}: it belongs to another user; run memprof as that user, or as root\n"
    )
  end

  {
    [] => "FILE or PID is missing; see `memprof help core`",
    %w[/no/such/file] => "cannot read /no/such/file: no such file",
    %w[FILE] => "cannot read FILE: this is not an ELF core file",
    %w[999999999] => "no such process: 999999999"
  }.each do |words, message|
    it "says what is wrong: memprof core #{words.join(" ")}" do
      expect_refusal(words, message)
    end
  end
end
