# frozen_string_literal: true

RSpec.describe Memprof::Compat::Chap do
  include_context "with memprof core"

  it "answers in its words" do
    plain_program(planted) do |pid|
      strings = "used %RubyString /minsize 4e20 /maxsize 4f4c"
      counted = core(pid, "count", *strings.split)
      expect(counted).to match(/\A100 allocations use 0x\h+ \(2,0\d\d,\d{3}\) bytes\.\n\z/)
      listed = core(pid, "list", *strings.split, "/showUpTo", "2").lines
      expect(listed[0]).to match(/\AUsed allocation at \h+ of size 4e\h+\n\z/)
      expect(listed[1..2]).to eq(["It matches pattern %RubyString.\n", "\n"])
      address = listed.first[/at (\h+)/, 1]
      expect(core(pid, "explain", address))
        .to match(/\AAddress #{address} is at offset 0 of\nan anchored allocation at /)
        .and match(/^It belongs to the String at \h+\.$/)
        .and match(/^It appears to be (?:in)?directly \S+ anchored\.$/)
        .and match(/^The String at \h+ references the allocation at #{address} of size \h+\.$/)
      expect(core(pid, "dump", address, "20")).to match(/\A\h+:  6b6b6b6b6b6b6b6b  6b6b6b6b6b6b6b6b  k{16}\n/)
      expect(core(pid, "describe", "stacks")).to match(/thread #{pid}, stack pointer \h+$/)
      expect(core(pid, "describe", "arenas")).to match(/^Arena at 0x\h+ has size 0x\h+ \(\d+\),$/)
      expect(core(pid, "summarize", "used"))
        .to match(/^Pattern %RubyString has \d+ instances taking 0x\h+\([\d,]+\) bytes\.$/)
        .and match(/^   Unrecognized allocations of size 0x\h+ have \d+ instances/)
      owned = core(pid, "summarize", *strings.split)
      expect(owned).to match(/^Objects of String own 100 instances taking 0x\h+\(2,0\d\d,\d{3}\) bytes\.$/)
      expect(owned).to match(/^   Those of size 0x4e\h8 have \d+ instances/)
    end
  end

  it "reads a script from stdin, and answers in JSON" do
    plain_program(planted) do |pid|
      script = "count used\n# a comment\n\ncount stacks\nenumerate leaked /showUpTo 1\n"
      answers = core(pid, "-", input: script)
      expect(answers).to match(/\A\d+ allocations use .* bytes\.\n[45] stacks use /)
      expect(json(pid, "count", "used")).to include("count" => be > 10_000, "bytes" => be > 2_000_000)
      expect(json(pid, "list", "used", "/showUpTo", "3")["blocks"].size).to eq(3)
      expect(json(pid)).to include("allocator" => "glibc", "leaks" => include("total"),
        "objects" => include("rows"))
      modules = json(pid, "list", "modules")["regions"].map { |region| region["file"] }
      expect(modules).to include(match(/libc/))
    end
  end

  it "extends sets, and redirects the answers of a script" do
    plain_program(planted) do |pid|
      script = <<~CHAP
        count used %RubyString /minsize 4e20
        redirect on
        count used %RubyString /minsize 4e20 # that were kept
        count used %RubyString /minsize 4e20 /extend ->
        redirect off
        count used %RubyString /minsize 4e20 /extend <-
      CHAP
      stdout, stderr, status = run_memprof("core", pid.to_s, "-", input: script)
      expect(status.exitstatus).to eq(0), stderr
      counts = /\A(\d+) allocations use .*\n(\d+) allocations use .*\n\z/.match(stdout)
      kept, extended = counts.captures.map(&:to_i)
      expect(kept).to be >= 100
      expect(extended).to be >= kept
      files = %w[count_used_%RubyString::minsize:4e20 count_used_%RubyString::minsize:4e20::extend:->]
      files.map! { |name| "#{pid}.#{name}" }
      expect(Dir.children(".")).to match_array(files)
      expect(stderr).to eq(files.map { |file| "memprof: wrote #{file}\n" }.join)
      expect(File.read(files.first)).to eq(stdout.lines.first)
      expect(File.read(files.last)).to match(/\A\d+ allocations use .* bytes\.\n\z/)
      File.write("more.chap", "count used\n# nothing\nsource last.chap\n")
      File.write("last.chap", "count free\n")
      sourced = core(pid, "-", input: "count stacks\nsource more.chap\ncount modules\n").lines
      expect(sourced.map { |line| line[/stacks|modules|allocations/] })
        .to eq(%w[stacks allocations allocations modules])
      {
        "source none.chap" => "cannot read none.chap: No such file or directory",
        "source" => "source is missing its file"
      }.each do |line, message|
        _, stderr, status = run_memprof("core", pid.to_s, "-", input: line)
        expect([status.exitstatus, stderr]).to eq([2, "memprof: #{message}\n"])
      end
      File.write("last.chap", "source more.chap\n")
      _, stderr, = run_memprof("core", pid.to_s, "-", input: "source last.chap\n")
      expect(stderr).to match(/\Amemprof: \w+\.chap is nested more than 16 scripts deep\n\z/)
      _, stderr, status = run_memprof("core", pid.to_s, "-", input: "redirect maybe\n")
      expect([status.exitstatus, stderr]).to eq([2, "memprof: invalid redirect; expected on or off\n"])
    end
  end

  it "knows the switches of its guide" do
    plain_program(planted) do |pid|
      strings = %w[used %RubyString /minsize 4e20]
      address = core(pid, "enumerate", *strings, "/showUpTo", "1").chomp
      bytes = "6b" * 8
      dumped = core(pid, "dump", address, "10", "/showAscii", "false")
      expect(dumped).to eq("#{address}:  #{bytes}  #{bytes}\n")
      expect(core(pid, "show", *strings, "/showUpTo", "1", "/showAscii", "true")).to match(/6b6b  k{16}$/)
      expect(core(pid, "show", *strings, "/showUpTo", "1", "/showAscii", "false")).not_to include("kkk")
      all = core(pid, "count", "used", "/minincoming=1").to_i
      expect(core(pid, "count", "used", "/minincoming", "%RubyArray=1").to_i).to be < all
      most = "ffffffffffffffff"
      expect(core(pid, "enumerate", *strings, "/showUpTo", most)).to start_with("#{address}\n")
      expect(core(pid, "enumerate", *strings, "/skip", most)).to eq("")
      extended = ["allocation", address, "/extend", "<-", "/commentExtensions", "true", "/showUpTo", "2"]
      listed = core(pid, "list", *extended)
      expect(listed).to match(/\AUsed allocation at #{address} of size \h+$/)
      expect(listed).to match(/^# <- from \h+ adds \h+:\nUsed allocation at /).or match(/1 allocations use/)
      expect(json(pid, "describe", *extended)["blocks"].first)
        .to include("added" => nil, "again" => [], "state" => "anchored")
    end
  end

  {
    %w[FILE sum] => "unknown command \"sum\"; expected one of: count, summarize, list, enumerate, " \
                    "show, describe, explain, dump",
    %w[FILE count] => "count needs a set or an address, as leaked",
    %w[FILE count used /annotate x] => "memprof core has no switch /annotate",
    %w[FILE count used /minincoming Bar=x] =>
      "invalid /minincoming \"Bar=x\"; expected a decimal number, or SIGNATURE=NUMBER",
    %w[FILE show used /showAscii yes] => "invalid /showAscii \"yes\"; expected true or false",
    %w[FILE dump 1000 10 /showAscii] => "invalid /showAscii \"\"; expected true or false",
    %w[FILE dump 1000 10 11] => "unexpected: 11",
    %w[FILE count used /minsize] => "/minsize needs a value",
    %w[FILE count used /minsize many] =>
      "invalid /minsize \"many\"; expected a hexadecimal number, or a size as 64KiB",
    %w[FILE list used /showUpTo 99999999999999999999] =>
      "invalid /showUpTo \"99999999999999999999\"; expected a hexadecimal number, or a size as 64KiB",
    %w[FILE count incoming] => "incoming needs an address",
    %w[FILE count incoming xyz] => "\"xyz\" is not an address",
    %w[FILE dump 1000] => "invalid SIZE \"\"; expected a hexadecimal number, or a size as 64KiB"
  }.each do |words, message|
    it "says what is wrong: memprof core #{words.join(" ")}" do
      expect_refusal(words, message)
    end
  end
end
