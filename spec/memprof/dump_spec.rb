# frozen_string_literal: true

require "json"
require "pathname"
require "socket"
require "stringio"
require "tmpdir"

RSpec.describe Memprof do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  def lines(path = "heap.json")
    File.readlines(path, chomp: true, encoding: Encoding::UTF_8)
  end

  def line_of(text, path = "heap.json")
    lines(path).find { |line| line.include?("\"data\":#{JSON.generate(text)}") }
  end

  describe ".dump" do
    it "writes the objects tracked so far, with place, type and value" do
      described_class.start
      generation = nil
      x = without_gc { (generation = GC.count) && 1e200 * 1.5 }
      described_class.dump("heap.json")
      line = lines.find { |text| text.include?('"type":"float"') }
      expect(line).to include("\"file\":#{JSON.generate(__FILE__)}", "\"line\":#{__LINE__ - 3}",
        '"data":1.5e+200')
      expect(JSON.parse(line)).to include("class_name" => "Float", "data" => x, "generation" => generation)
      expect(described_class).to be_running
    end

    it "writes the objects that a block allocated, stops, and returns the block's value" do
      expect(described_class.dump("heap.json") { 1e200 * 2 }).to eq(2e200)
      expect(lines.grep(/"type":"float"/).map { |line| JSON.parse(line)["data"] }).to eq([2e200])
      expect(described_class).not_to be_running
    end

    it "writes no object that was allocated before, or freed" do
      before = "made before".dup
      described_class.dump("heap.json") { @kept = "made in the block".dup }
      expect(line_of("made in the block")).not_to be_nil
      expect(line_of(before)).to be_nil
      expect(records("heap.json").map { |record| record["type"] }.uniq.first).to eq("header")
      expect(lines.grep(/"type":"(?:root|shape)"/)).to be_empty
    end

    it "needs Memprof.start or a block" do
      expect { described_class.dump("heap.json") }.to raise_error(Memprof::NotRunning, /Memprof\.start/)
      expect { described_class.dump("heap.json") }.to raise_error(RuntimeError)
      expect(Dir.children(".")).to be_empty
    end

    it "writes nothing, and stops, if the block raises or is left" do
      expect { described_class.dump("heap.json") { raise "no" } }.to raise_error("no")
      catch(:out) { described_class.dump("heap.json") { throw :out } }
      expect(described_class.dump("heap.json") { described_class.stop }).to be(true)
      expect(Dir.children(".")).to be_empty
      expect(described_class).not_to be_running
    end

    it "leaves the tracking around it as it was" do
      described_class.start
      kept = Object.new
      described_class.dump("heap.json") { @kept = "inner".dup }
      expect(described_class).to be_running
      described_class.dump("outer.json")
      expect(line_of("inner", "outer.json")).not_to be_nil
      expect(lines("outer.json").grep(/"class_name":"Object"/).size).to be >= 1
      expect(kept).not_to be_nil
    end

    it "is for people on standard output, indented, without the lines about the dump" do
      expect { described_class.dump { @kept = "abc".dup } }
        .to output(/\A\{\n  "_id": "0x\h+",\n.*^  "data": "abc",$.*^\}\n\z/m).to_stdout
      expect { described_class.dump { @kept = "abc".dup } }.not_to output(/"(?:header|footer)"/).to_stdout
    end

    it "is for people on standard output in every format that is text" do
      objspace = /\A\{\n  "address": "0x\h+",\n.*^  "value": "abc",$.*^\}\n\z/m
      expect { described_class.dump(format: :objspace) { @kept = "abc".dup } }.to output(objspace).to_stdout
      output = StringIO.new
      $stdout = output
      described_class.dump(format: :heap_dump) { @kept = "abc".dup }
      expect(output.string).to match(/\A\[\n  \{\n    "id": "0x\h+",\n.*^    "val": "abc".*^  \}\n\]\n\z/m)
      objects = JSON.parse(output.string)
      expect(objects.map { |object| object["id"] }).to all(match(/\A0x\h+\z/))
    ensure
      $stdout = STDOUT
    end

    it "is no object on standard output where the block allocated none" do
      array = described_class.method(:dump)
      expect { array.call(format: :heap_dump, scope: :thread) { nil } }.to output("[]\n").to_stdout
    end

    it "is written as it is to a pipe on standard output, if it is no text" do
      { { format: :binary } => "memprof\x89".b, { compression: :gzip } => "\x1F\x8B".b,
        { compression: :zstd } => "\x28\xB5\x2F\xFD".b }.each do |options, magic|
        code = "require 'memprof'; Memprof.dump(**#{options.inspect}) { $kept = 'abc'.dup }"
        stdout, stderr, = run_ruby("$stdout.binmode; #{code}")
        expect([stderr, stdout.b[0, magic.size]]).to eq(["", magic])
      end
    end

    it "is not written to a terminal, if it is no text" do
      require "pty"
      ran = false
      PTY.open do |_, terminal|
        { { format: :binary } => /binary dump to a terminal/, { compression: :gzip } => /compressed dump/ }
          .each do |options, message|
            expect { described_class.dump(terminal, **options) { ran = true } }
              .to raise_error(ArgumentError, message)
            expect { described_class.dump_all(terminal, **options) }.to raise_error(ArgumentError, message)
            $stdout = terminal
            expect { described_class.dump(**options) { ran = true } }.to raise_error(ArgumentError, message)
            expect { described_class.dump_all(**options) }.to raise_error(ArgumentError, message)
          ensure
            $stdout = STDOUT
          end
      end
      expect(ran).to be(false)
    end

    it "refuses impossible options before the block runs" do
      ran = false
      block = -> { ran = true }
      expect { described_class.dump("heap.json", values: :some, &block) }.to raise_error(ArgumentError)
      expect { described_class.dump("heap.json", format: :xml, &block) }.to raise_error(ArgumentError)
      expect { described_class.dump("heap.memprof.gz", &block) }.to raise_error(ArgumentError)
      expect { described_class.dump("heap.json", sample: 0, &block) }.to raise_error(ArgumentError)
      expect { described_class.dump("", &block) }.to raise_error(ArgumentError)
      expect { described_class.dump(12, &block) }.to raise_error(ArgumentError)
      expect(ran).to be(false)
    end
  end

  # In a process of its own: its heap is small, and what the examples before this one left is not in it.
  describe ".dump_all" do
    def child(code, prints: "")
      stdout, stderr, status = run_ruby("require \"memprof\"\n#{code}", chdir: Dir.pwd)
      expect([stderr, stdout]).to eq(["", prints])
      expect(status).to be_success
    end

    it "writes the whole heap, one object a line" do
      child('x = "dump out the entire heap"; Memprof.dump_all("heap.json")')
      line = line_of("dump out the entire heap")
      expect(line).to include('"length":24', '"type":"string"').and match(/"_id":"0x\w+"/)
    end

    it "says where objects were allocated, if they were tracked, and never starts or stops" do
      child(<<~'RUBY', prints: "false\ntrue\n")
        Memprof.dump_all("off.json")
        p Memprof.running?
        Memprof.start
        @str = "some random" + " string"
        Memprof.dump_all("heap.json")
        p Memprof.running?
      RUBY
      expect(JSON.parse(line_of("some random string"))).to include("type" => "string", "file" => "-e",
        "line" => 5,
        "time" => a_kind_of(Integer), "generation" => a_kind_of(Integer))
      expect(records("off.json").drop(1).select { |record| record.key?("generation") }).to be_empty
    end

    it "has a first and a last line about itself, and only lines that are JSON" do
      child(<<~'RUBY')
        $bad = ["\xFF\xFE bad", "line\u2028separator \u0000 \e[31m", "caf\xE9".b, "\u3042".encode("UTF-16LE")]
        $symbols = ["\xFF".b.to_sym, :"a b"]
        result = Memprof.dump_all("heap.json")
        counts = [result.objects, result.references, result.memsize]
        File.write("counts", counts.join(" "))
      RUBY
      all = expect_whole("heap.json")
      counts = File.read("counts").split.map(&:to_i)
      expect(all.last.values_at("objects", "references", "memsize")).to eq(counts)
      objects = all.select { |record| record["_id"].start_with?("0x") }
      expect(objects.size).to eq(counts[0])
      expect(objects.sum { |record| record["references"].to_a.size }).to eq(counts[1])
    end

    it "labels what leads to an object" do
      child('$label = { user: ["deep %s" % "inside"] }; Memprof.dump_all("heap.json")')
      all = expect_whole("heap.json").select { |record| record["labels"] }
      text = JSON.parse(line_of("deep inside"))["_id"]
      path = []
      while text && (holder = all.find { |record|
                       record["type"] != "data" && record["references"].include?(text)
                     })
        path << holder["labels"][holder["references"].index(text)]
        text = holder["type"] == "root" ? nil : holder["_id"]
      end
      expect(path.first(2)).to eq(["[0]", "[:user]"])
      expect(path.last).to eq("$label")
    end

    it "returns what it wrote" do
      child(<<~'RUBY', prints: "true\n")
        result = Memprof.dump_all("heap.json")
        abort("not frozen") unless result.frozen?
        expected = { path: File.expand_path("heap.json"), format: :memprof, bytes: File.size("heap.json") }
        p expected <= result.to_h && result.objects > 10_000 && result.references > 10_000 && result.seconds < 60
      RUBY
    end

    it "collects garbage only if it is asked to" do
      child(<<~'RUBY', prints: "0\ntrue\n")
        GC.disable
        before = GC.count
        Memprof.dump_all("heap.json")
        p GC.count - before
        GC.enable
        Memprof.dump_all("heap.json", gc: true)
        p GC.count > before
      RUBY
    end

    it "is written by a child, if asked, with the same in it" do
      child(<<~'RUBY', prints: "Errno::ECHILD\n")
        $text = "in parent and child".dup
        Thread.new { Thread.current[:mine] = 1; sleep }
        Memprof.dump_all("heap.json", fork: true)
        begin
          Process.wait
        rescue SystemCallError => e
          p e.class
        end
        File.write("pid", $$)
      RUBY
      all = expect_whole("heap.json")
      expect(all.first["pid"]).to eq(File.read("pid").to_i)
      expect(line_of("in parent and child")).not_to be_nil
      expect(all.map { |record| record["variables"] }).to include({ ":mine" => 1 })
    end

    it "leaves no contents in the dump, if asked" do
      child(<<~'RUBY')
        secret = "swordfish-#{rand(1 << 64)}"
        $secret = { secret.dup => secret.to_sym }
        Thread.current[:secret] = :"symbol-#{secret}"
        Thread.current.thread_variable_set(:secret, secret.to_sym)
        ARGV << secret
        $0 = secret
        %i[hash length none].each { |values| Memprof.dump_all("#{values}.json", values: values) }
        found = %w[hash length none].select { |name| File.read("#{name}.json").include?(secret) }
        abort("in #{found}") unless found.empty?
      RUBY
      %w[hash length none].each { |values| expect_whole("#{values}.json") }
    end

    it "compresses by the ending, and writes the binary format" do
      child(<<~'RUBY', prints: ":binary\n")
        Memprof.dump_all("heap.json.gz")
        Memprof.dump_all("heap.json.zst", fork: true)
        p Memprof.dump_all("heap.memprof").format
      RUBY
      expect(File.binread("heap.json.gz", 2)).to eq("\x1F\x8B".b)
      expect(File.binread("heap.json.zst", 4)).to eq("\x28\xB5\x2F\xFD".b)
      expect(File.size("heap.memprof")).to be < 2_000_000
    end

    it "contains addresses that do not move while it is written" do
      skip "this Ruby can't compact" unless GC.respond_to?(:auto_compact=) && GC.respond_to?(:compact)
      child(<<~'RUBY')
        GC.auto_compact = true
        $moving = "mov%s" % "ing"
        Array.new(100_000) { "garbage to be compacted away" * 2 }.each_slice(2).map(&:first)
        Memprof.dump_all("heap.json")
      RUBY
      globals = expect_whole("heap.json").find { |record| record["type"] == "globals" }["variables"]
      expect(JSON.parse(line_of("moving"))["_id"]).to eq(globals[":$moving"])
    end

    it "does not follow a link, and leaves no half file" do
      File.write("victim", "mine")
      File.symlink("victim", "heap.json")
      child('Memprof.dump_all("heap.json")')
      expect(File.read("victim")).to eq("mine")
      expect(File.stat("heap.json").mode & 0o777).to eq(0o600)
      expect(Dir.children(".").sort).to eq(%w[heap.json victim])
    end
  end

  describe "where a dump goes" do
    it "may be anything with a path, or that can be written to" do
      described_class.dump_all(Pathname("heap.json"))
      expect(JSON.parse(lines.last)).to include("type" => "footer")
      io = StringIO.new
      result = described_class.dump_all(io)
      expect(result.path).to be_nil
      expect(JSON.parse(io.string.lines.last)).to include("type" => "footer")
      File.open("other.json", "w") { |file|
        file.write("before\n") && described_class.dump_all(file) && file.write("after\n")
      }
      all = lines("other.json")
      expect([all.first, all.last, JSON.parse(all[-2])["type"]]).to eq(%w[before after footer])
    end

    it "may be a pipe or a socket that is read in the very same process" do
      expect(run_ruby(<<~RUBY).stdout).to eq("footer\nfooter\n")
        require "json"
        require "memprof"
        require "socket"
        [IO.pipe, UNIXSocket.pair].each do |reader, writer|
          read = Thread.new { reader.read }
          Memprof.dump_all(writer)
          writer.close
          puts JSON.parse(read.value.lines.last)["type"]
        end
      RUBY
    end

    it "may be standard output, compact" do
      stdout, = run_ruby('puts "first"; require "memprof"; Memprof.dump_all; puts "last"')
      all = stdout.lines.map(&:chomp)
      expect([all.first, all.last]).to eq(%w[first last])
      expect(all[1]).to start_with('{"_id":"header",')
      expect(all[1..-2]).to all(satisfy { |line| JSON.parse(line) })
    end

    it "fails with an error that has what, where and why" do
      expect { described_class.dump_all("no/heap.json") }
        .to raise_error(Memprof::Error, %r{\Acannot write .*/no/heap.json: no such directory: .*/no\z})
      expect { described_class.dump_all(".") }.to raise_error(Memprof::Error, /is a directory/)
      expect { described_class.dump_all("/dev/full") }
        .to raise_error(Memprof::Error, "cannot write /dev/full: No space left on device")
      expect(Dir.children(".")).to be_empty
    end

    it "may be a pipe without a reader, which is an error, not an exit" do
      reader, writer = IO.pipe
      reader.close
      expect { described_class.dump_all(writer) }.to raise_error(Memprof::Error, /: Broken pipe\z/)
    end

    it "leaves no file on a full disk" do
      with_file_system("size=256k") do |directory|
        path = File.join(directory, "heap.json")
        [false, true].each do |fork|
          expect { described_class.dump_all(path, fork: fork) }
            .to raise_error(Memprof::Error,
              /\A[^\n]*#{Regexp.escape(path)}[^\n]*No space left on device\z/)
        end
        expect(Dir.children(directory)).to be_empty
      end
    end

    it "leaves no file in a directory that can't be written" do
      with_file_system("ro") do |directory|
        expect { described_class.dump_all(File.join(directory, "heap.json")) }
          .to raise_error(Memprof::Error, /heap\.json[^\n]*: Read-only file system\z/)
      end
    end
  end
end
