# frozen_string_literal: true

require "json"
require "tmpdir"

RSpec.describe "Objects of Ruby in an image" do
  before { skip "processes are copied on Linux" unless RUBY_PLATFORM.include?("linux") }

  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  planted = <<~'RUBY'
    require "memprof"
    require "json"
    class Account
      def initialize(number)
        @number = number
        @name = "account #{number} " * 9
        @lines = [number, :line, nil, 2.5, "line"]
      end
    end
    class Wide
      def initialize = 7.times { |index| instance_variable_set(:"@value#{index}", "value #{index}") }
    end
    # Of so many kinds that Ruby 3.3 and later have tables for most.
    class Varied
      def initialize(kind) = 3.times { |index| instance_variable_set(:"@of#{kind}_#{index}", "value #{index}") }
    end
    module Deep
      module Deeper
        class Deepest < Account; end
      end
    end
    Pair = Struct.new(:left, :right)
    Row = Struct.new(:a, :b, :c, :d, :e, :f)
    ACCOUNTS = Array.new(50) { |number| Account.new(number) }
    KEPT = [
      Wide.new, Array.new(20) { |kind| Varied.new(kind) }, Deep::Deeper::Deepest.new(1), Pair.new("left", 2), Row.new("a", 2, 3.5, nil, :e, [1]),
      { "one" => 1, two: "two", 3 => [4] }, (1..100).to_h { |number| ["key #{number}", number] }, {},
      Hash.new { |hash, key| hash[key] = key }, Hash.new("default"), [], (1..300).to_a, ["é" * 30, "\xff", "b".b, "short"],
      "long string " * 20, ("shared " * 40)[7..], "frozen".dup.freeze, Object.new, nil, 1e300, :"symbol with blanks"
    ]
    KEPT << KEPT.last(5)
    GC.start
    GC.disable
    Memprof::Core.of { |core| core.count } # loads what it needs
  RUBY

  def objects(path)
    File.foreach(path).map { |line| JSON.parse(line) }.select { |object| object["_id"].start_with?("0x") }
      .to_h { |object| [object["_id"], object] }
  end

  def ruby(code)
    result = run_ruby(code)
    expect([result.stderr, result.status.exitstatus]).to eq(["", 0])
    result.stdout
  end

  # All that is reachable from constants of the program, by their elements and variables.
  def reachable(all, constants)
    queue = constants.filter_map { |address| all[address] }
    found = {}
    while (object = queue.shift)
      next if found[object["_id"]]

      found[object["_id"]] = object
      queue.concat([object["data"], object["ivars"], object["members"]].compact
        .flat_map { |contents| contents.is_a?(Hash) ? contents.values : Array(contents).flatten }
        .grep(/\A0x\h+\z/).filter_map { |address| all[address] })
    end
    found
  end

  it "are those that a dump has" do
    ruby("#{planted}\n" + <<~RUBY)
      Memprof::Core.of do |core|
        core.dump("image.json")
        Memprof.dump_all("dump.json")
      end
    RUBY
    dump, image = %w[dump.json image.json].map { |path| objects(path) }

    names = [dump, image].map do |all|
      all.values.select { |object| %w[class module].include?(object["type"]) && object["name"] }
        .to_h { |object| [object["_id"], object.values_at("name", "super", "super_name", "frozen")] }
    end
    expect(names[1].size).to be > 300
    # A class may be named while the dump is written.
    expect(names[1].reject { |address, facts| names[0][address] == facts }).to eq({})

    constants = dump.values.find { |object| object["name"] == "Object" && object["type"] == "class" }["ivars"]
      .values_at("ACCOUNTS", "KEPT")
    kept = reachable(dump, constants)
    expect(kept.size).to be > 300
    facts = %w[type class class_name length ivars members frozen fstring shared encoding slot_size default]
    different = kept.reject do |address, object|
      other = image.fetch(address, {})
      # A dump does not repeat what another object owns.
      keys = object["shared"] ? facts : [*facts, "data"]
      keys.all? { |key| object[key] == other[key] }
    end
    expect(different.map { |address, object| [object, image[address]] }.first(2)).to eq([])
    # Some slots are used again until the dump is written.
    same = image.count { |address, object| dump.dig(address, "type") == object["type"] }
    expect(same).to be > image.size * 9 / 10
  end

  it "are not shown where contents are not wanted" do
    ruby("#{planted}\n" + <<~RUBY)
      Memprof::Core.of do |core|
        core.dump("hash.json", values: :hash)
        core.dump("none.json", values: :none)
      end
    RUBY
    %w[hash.json none.json].each do |path|
      text = File.read(path)
      expect(text.scan(/account 7|long string|symbol with blanks|key 55|"data":1e/)).to eq([])
      names = %w[ACCOUNTS Deep::Deeper::Deepest @lines Pair]
      expect(names.reject { |name| text.include?(name.to_json) }).to eq([])
    end
    strings = objects("hash.json").values.select { |object| object["type"] == "string" }
    hashed = strings.select { |string| string["length"] == 240 }
    expect(hashed.map { |object| object["hash"] }).to include(a_string_matching(/\A0x\h{1,16}\z/))
  end

  it "are retained by instance variables of strings and hashes" do
    counts = ruby(<<~'RUBY')
      require "memprof"
      Tag = Class.new
      Options = Class.new(Hash)
      TAGGED = Array.new(20) do |number|
        object = number.odd? ? "tagged #{number}".dup : Options[number, "option"]
        object.tap { |tagged| tagged.instance_variable_set(:@tag, Tag.new) }
      end
      GC.start
      GC.disable
      tagged = ->(referrers) { referrers.any? { |referrer| %i[string hash].include?(referrer.type) } }
      Memprof::Core.of do |core|
        tags = core.heap.where("class = Tag")
        puts tags.count { |tag| tagged.call(tag.referrers) }
        tags = core.heap(blocks: true).where("class = Tag")
        puts tags.count { |tag| tag.referrers.any? { |referrer| tagged.call([referrer, *referrer.referrers]) } }
      end
    RUBY
    expect(counts.split).to eq(%w[20 20])
  end

  leaking = <<~'RUBY'
    class Session
      def initialize(number) = (@user = "user #{number} " * 8)
    end
    STORE = {}
    20_000.times { |number| STORE[number] = Session.new(number) }
    GC.start
    $stdout.puts "ready"
    $stdout.flush
    $stdin.read
  RUBY

  it "answer what leaks, what is largest and what retains it, from a core file" do
    places = ENV.fetch("PATH").split(":").map { |directory| "#{directory}/gcore" }
    skip "gcore (of gdb) is not installed" unless places.any? { |path| File.executable?(path) }
    skip "needs root, or the permission to trace any process" unless Process.euid.zero?

    IO.popen({ "RUBYOPT" => nil }, [RbConfig.ruby, "-e", leaking], "r+") do |io|
      expect(io.gets).to eq("ready\n")
      system("gcore", "-o", "core", io.pid.to_s, out: File::NULL, err: File::NULL)
      io.close_write
    end
    core = Dir["core.*"].first or skip "gcore wrote no file"
    leaks = run_memprof("leaks", "--json", core)
    expect([leaks.stderr, leaks.status.exitstatus]).to eq(["", 0])
    finding = JSON.parse(leaks.stdout)["findings"].first
    # One may be on a stack, too.
    expect(finding["sentence"]).to match(/\A(?:20,000|19,99\d) Session instances retain /)
    expect(finding["retained_by"]).to eq(["STORE -> Hash[*]"])

    top = JSON.parse(run_memprof("top", "--json", "--where", "class = Hash", core).stdout)
    address = top.to_s[/0x\h+/]
    path = run_memprof("path", core, address).stdout
    expect(path).to match(/class Object.*STORE.*Hash \(20000\)/m)

    converted = run_memprof("convert", core, "core.memprof")
    expect(converted.status.exitstatus).to eq(0)
    expect(converted.stderr).to match(/\Amemprof: [\d,]+ objects, [\d.]+ \w+\n\z/)
    sessions = run_memprof("query", "--json", "core.memprof", "class = Session and type = object")
    expect(sessions.stdout).to include("20000")
  end

  it "are missing where there is no Ruby" do
    skip "this system has no sleep" unless File.exist?("/bin/sleep")
    skip "needs root, or the permission to trace any process" unless Process.euid.zero?

    child = spawn("/bin/sleep", "600")
    loop { break if File.read("/proc/#{child}/comm") == "sleep\n" }
    expect { Memprof::Core.of(child) { |core| core.dump("x.memprof") } }
      .to raise_error(Memprof::Error, /x\.memprof: no pages of a Ruby heap in it/)
    expect(Dir.children(".")).to eq([])
    counts = Memprof::Core.of(child) do |core|
      blocks = core.heap(blocks: true).where("type = BLOCK")
      counted = %i[used anchored].map { |set| core.count(set)[:count] }
      [[blocks, blocks.where("reachable")].map(&:size), counted]
    end
    expect(counts.first).to eq(counts.last)
    expect(counts.first).to all(be_positive)
  ensure
    Process.kill(:KILL, child) && Process.wait(child) if child
  end
end
