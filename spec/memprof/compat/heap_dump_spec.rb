# frozen_string_literal: true

require "json"
require "tmpdir"

# The gem heap_dump's interface. In processes of their own: what they dump and count is the whole process.
RSpec.describe "heap_dump" do
  def in_child(code, **options)
    result = run_ruby("require \"heap_dump\"\nrequire \"json\"\n#{code}", timeout: 300, **options)
    expect(result.stderr).to eq ""
    expect(result).to be_success
    result.stdout.lines(chomp: true)
  end

  # Runs code that makes dump.json, in a directory of its own; yields the records and what the code printed.
  def dumped(code)
    Dir.mktmpdir do |directory|
      printed = in_child(code, chdir: directory)
      yield JSON.parse(File.read(File.join(directory, "dump.json"))), printed
    end
  end

  describe "dump" do
    it "writes one array, an object a line, roots first, whatever there is" do
      code = <<~'RUBY'
        class Test
          def items; Fiber.yield(Enumerator.new { |yielder| 3.times { |n| yielder << n } }); end
        end
        fiber = Fiber.new { Thread.current[:local] = :kept; Test.new.items }
        fiber.instance_variable_set(:@data, "ivar of a fiber")
        enumerator = fiber.resume
        $some_global = "value_global"
        broken = ["\xff\xfe", { nil => 1, :a => 2, 1 => 3, 1.5 => 4, Object.new => 5 }]
        HeapDump.verbose = true
        p HeapDump.dump
        puts File.stat("dump.json").mode.to_s(8)
      RUBY
      dumped(code) do |records, printed|
        expect(records.first["id"]).to eq "_ROOTS_"
        expect(records.size).to be > 5000
        expect(printed.first(2)).to eq ["heap_dump: collecting garbage", "heap_dump: writing dump.json"]
        expect(printed[2]).to match(/\Aheap_dump: wrote \d+ objects, \d+ bytes\z/)
        expect(printed.last(2)).to eq %w[nil 100600]
      end
    end

    it "is one line for each record, each of them with a comma in front" do
      Dir.mktmpdir do |directory|
        path = File.join(directory, "heap.json")
        in_child("require \"pathname\"; HeapDump.dump(Pathname.new(#{path.dump}), false)")
        first, *rest, last = File.readlines(path, chomp: true)
        expect([first[0, 16], last]).to eq ['[{"id":"_ROOTS_"', "]"]
        expect(rest.grep_v(/\A,\{.*\}\z/)).to eq []
        expect(JSON.parse(rest.first.delete_prefix(","))).to include("id", "bt")
      end
    end

    it "has the values of global variables" do
      dumped('$some_global = "value_global"; $number = 42; HeapDump.dump') do |records, _|
        globals = records.first["global_tbl"]
        expect(globals["$number"]).to eq("data" => 42)
        string = records.find { |record| record["id"] == globals.dig("$some_global", "data") }
        expect(string).to include("bt" => "T_STRING", "class_name" => "String", "val" => "value_global")
      end
    end

    it "reports where a closure is and what it captures" do
      code = <<~'RUBY'
        Held = Class.new
        def closure(captured) = lambda { |argument| [captured, argument] }
        $closure = closure(Held.new)
        HeapDump.dump
      RUBY
      dumped(code) do |records, _|
        id = records.first.dig("global_tbl", "$closure", "data")
        closure = records.find { |record| record["id"] == id }
        expect(closure).to include("bt" => "T_DATA", "type_name" => "proc", "lambda" => true)
        expect(closure).to include("source_file" => "-e", "source_line" => 4)
        held = records.find { |record| record["id"] == closure["captured"]["captured"] }
        expect(held).to include("bt" => "T_OBJECT", "class_name" => "Held")
      end
    end

    it "reports where a thread is" do
      code = <<~'RUBY'
        def wait_here = sleep
        thread = Thread.new { wait_here }
        Thread.pass until thread.status == "sleep"
        HeapDump.dump
      RUBY
      dumped(code) do |records, _|
        threads = records.select { |record| record["type_name"] == "VM/thread" }
        expect(threads.map { |thread| thread["status"] }).to contain_exactly("run", "sleep")
        expect(threads.flat_map { |thread| thread["backtrace"] }.join(" ")).to match(/wait_here'/)
      end
    end

    it "is written by a forked child on a signal" do
      code = <<~'RUBY'
        trap("USR2") { fork { HeapDump.dump("dump.json", false); exit!(true) } }
        Process.kill(:USR2, Process.pid)
        Process.wait
        puts $?.success?
      RUBY
      dumped(code) do |records, printed|
        expect(printed).to eq ["true"]
        expect(records.size).to be > 5000
      end
    end

    it "refuses what is no file's name, and says where it can't write" do
      expect(in_child(<<~'RUBY')).to eq ["TypeError", "TypeError", "Memprof::Error"]
        [nil, 1, "/nowhere/dump.json"].each do |name|
          HeapDump.dump(name, false)
        rescue => error
          puts error.class
        end
      RUBY
    end
  end

  describe "count_objects" do
    it "is JSON, indented, with the classes that were asked for" do
      lines = in_child(<<~'RUBY')
        class A; end
        class A::B; end
        class AB; end
        kept = [A.new, A.new, A::B.new, AB.new]
        puts HeapDump.count_objects([A])
      RUBY
      expect(lines.first(2)).to match ["{", /\A    "total_slots": \d+,\z/]
      counts = JSON.parse(lines.join("\n"))
      expect(counts.keys).to eq %w[total_slots free_slots basic_types user_types]
      expect(counts["user_types"]).to eq("A" => 2, "A::B" => 1)
      expect(counts["basic_types"].keys.first(2)).to eq %w[T_OBJECT T_CLASS]
    end

    it "says first that it collected, if it was asked to" do
      lines = in_child("puts HeapDump.count_objects([], true)")
      expect(lines[1]).to eq '    "gc_ran": true,'
      expect(JSON.parse(lines.join)["user_types"]).to eq({})
    end

    it "takes one name or many, as Symbols, Strings and modules" do
      expected = ["Shelf Store::Till"] * 2 + ["Shelf"] * 4 + [""] * 2
      expect(in_child(<<~'RUBY')).to eq expected
        Shelf = Class.new
        module Store; class Till; end; end
        kept = [Shelf.new, Store::Till.new]
        [[:Shelf, Store], ["Store", [Shelf]], Shelf, "Shelf", :Shelf, ["Shelf"], [], nil].each do |names|
          puts JSON.parse(HeapDump.count_objects(names))["user_types"].keys.sort.join(" ")
        end
      RUBY
    end

    it "has the extension's functions, which take names alone" do
      expect(in_child(<<~'RUBY')).to eq ["true", "TypeError", "TypeError", "TypeError"]
        puts HeapDump.count_objects_ext(["A"], true).include?("gc_ran")
        [-> { HeapDump.count_objects_ext("A", true) }, -> { HeapDump.count_objects_ext([:A], true) },
         -> { HeapDump.dump_ext(:file) }].each do |call|
          call.call
        rescue => error
          puts error.class
        end
      RUBY
    end
  end

  it "is silent until it is asked not to be" do
    expect(in_child("p HeapDump.verbose; HeapDump.verbose = true; p HeapDump.verbose")).to eq %w[false true]
  end

  it "has a breakpoint" do
    result = run_ruby("require \"heap_dump\"; trap(:TRAP) { puts \"stopped\" }; HeapDump.int3; sleep 0.1")
    expect(result.stdout).to eq "stopped\n"
    expect(run_ruby("require \"heap_dump\"; HeapDump.int3; sleep").status.termsig).to eq Signal.list["TRAP"]
  end
end
