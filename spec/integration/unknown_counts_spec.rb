# frozen_string_literal: true

require "json"
require "memprof"
require "tmpdir"

# Zero is an answer only when it is known: else a check that compares it with zero always passes.
RSpec.describe "What cannot be counted" do
  include HeapDumps

  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  program = <<~'RUBY'
    module Shop
      class Session
        def initialize(number) = (@user = "user #{number} " * 8)
      end
    end
    STORE = {}
    3000.times { |number| STORE[number] = Shop::Session.new(number) }
    GC.start
    puts "ready"
    $stdin.read
  RUBY

  # Everything `memprof core` counts of blocks; and what memprof answers of a heap.
  of_blocks = [
    %w[count leaked], %w[count used], %w[count owned], %w[count incoming 7f0000001000], %w[summarize leaked],
    %w[list free], %w[enumerate used], %w[show leaked], %w[describe leaked], %w[explain unreferenced],
    %w[count arenas], %w[list arenas], %w[--json count leaked], %w[--json list arenas]
  ]
  of_heaps = [
    %w[stats], %w[leaks], %w[top], %w[top --procs], %w[histogram], %w[dups], %w[dups --collections],
    ["path", "--where", "type = string"], ["query", nil, "type = string"]
  ]

  def refused(*words)
    result = run_memprof(*words.map(&:to_s))
    expect(result.status.exitstatus).to eq(2), "#{words.join(" ")}: #{result.stdout}#{result.stderr}"
    result
  end

  def write_dump(path)
    written = run_memprof("convert", cache_dump(3), path)
    expect(written.status.exitstatus).to eq(0), written.stderr
  end

  # A question with the file in its place: behind the verb, or where it has a gap.
  def about(question, file)
    question.include?(nil) ? question.map { |word| word || file } : [*question, file]
  end

  def core_of(pid)
    written = system("gcore", "-o", "core", pid.to_s, out: File::NULL, err: File::NULL)
    skip "gcore (of gdb) is not installed, or may not trace" unless written
    "core.#{pid}"
  end

  def library(pattern)
    found = Dir["/usr/lib/{,*/}#{pattern}"].first
    found || skip("#{pattern} is not installed")
  end

  describe "with another allocator" do
    before { skip "needs root, or the permission to trace any process" unless Process.euid.zero? }

    { "jemalloc" => "libjemalloc.so.2", "tcmalloc" => "libtcmalloc.so.4" }.each do |name, file|
      it "refuses to count the blocks of #{name}" do
        preloaded = { "LD_PRELOAD" => library(file) }
        reason = "the process uses #{name}, whose blocks memprof cannot read"
        plain_program(program, env: preloaded) do |pid|
          core = core_of(pid)
          of_blocks.each do |question|
            result = refused("core", *question.grep(/^--/), core, *question.grep_v(/^--/))
            expect([result.stdout, result.stderr]).to eq(["", "memprof: #{reason}\n"]), question.join(" ")
          end
          expect(refused("core", pid, "count", "leaked").stderr).to eq("memprof: #{reason}\n")

          summary = refused("core", core).stdout
          expect(summary).to match(/^Note: #{reason}\.$/).and match(/^Allocator +#{name}$/)
          expect(summary).not_to match(/leaked|blocks of/)
          json = JSON.parse(refused("core", "--json", core).stdout)
          expect(json.values_at("used", "free", "leaked", "garbage", "leaks").uniq).to eq([nil])
          owned = json["objects"]["rows"].flat_map { |row| row.values_at("garbage", "blocks") }
          expect(owned.uniq).to eq([nil])

          objects = run_memprof("core", core, "count", "objects")
          expect(objects.status.exitstatus).to eq(0)
          expect(objects.stdout).to match(/^STRING has \d+ instances/)
            .and end_with("Their blocks are not known: #{reason}.\n")
          expect(objects.stdout).not_to match(/ own | garbage/)
          expect(run_memprof("core", core, "count", "stacks").stdout).to match(/\A\d+ stacks use/)
          opened = Memprof::Core.open(core)
          expect { opened.count(:leaked) }.to raise_error(Memprof::Unsupported, reason)
          expect(opened.overview).to include(unknown: reason, leaked: nil, arenas: { count: 0, bytes: 0 })
        end
      end
    end

    # On glibc 2.42 and newer the loader's first calls leave one in every program.
    it "does not count an arena of glibc's malloc that is there, too" do
      both = <<~'RUBY'
        require "fiddle"
        malloc = Fiddle::Function.new(Fiddle::Handle::DEFAULT["__libc_malloc"], [Fiddle::TYPE_SIZE_T],
          Fiddle::TYPE_VOIDP)
        10_000.times { malloc.call(100) }
      RUBY
      plain_program(both + program, env: { "LD_PRELOAD" => library("libjemalloc.so.2") }) do |pid|
        [core_of(pid), pid].each do |target|
          expect(refused("core", target, "count", "leaked").stderr)
            .to eq("memprof: the process uses jemalloc, whose blocks memprof cannot read\n")
        end
      end
    end

    it "counts the blocks of glibc's malloc if another library is loaded, but not used" do
      copy = File.expand_path("libjemalloc.so.2")
      # Any library may have that name; not each jemalloc can be loaded late.
      FileUtils.cp(Dir["/{usr/,}lib/*/libm.so.6"].first || skip("libm is not found"), copy)
      loaded = <<~RUBY
        require "fiddle"
        Fiddle::Handle.new(#{copy.inspect}, Fiddle::RTLD_LAZY)
      RUBY
      plain_program(loaded + program) do |pid|
        counted = run_memprof("core", core_of(pid), "count", "used")
        expect(counted.stderr)
          .to eq("memprof: the process uses jemalloc, too, whose blocks memprof cannot read\n")
        expect(counted.stdout.lines.last[/\d[\d,]*/].delete(",").to_i).to be > 3000
      end
    end

    it "names classes all the same, and says what is missing" do
      plain_program(program, env: { "LD_PRELOAD" => library("libjemalloc.so.2") }) do |pid|
        core = core_of(pid)
        leaks = run_memprof("leaks", core)
        expect(leaks.status.exitstatus).to eq(0), leaks.stderr
        # What STORE has varies: words on stacks and in other mappings look like references.
        expect(leaks.stdout).to match(/^Note: Unknown for this Ruby: /)
          .and match(/^Whether C code leaks is not known: .*jemalloc/)
        expect(leaks.stdout).not_to include("#<Class")
        histogram = run_memprof("histogram", "--json", "--by", "class", core).stdout
        session = JSON.parse(histogram)["rows"].find { |row| row["key"] == "Shop::Session" }
        expect(session["count"]).to eq(3000)
        strings = Memprof::Heap.open(core).where("class = String and value ~ \"user 7 user 7\"")
        expect(strings.first.size).to be_between(40 + 56, 40 + 100).or be_between(56 + 8, 160)
      end
    end
  end

  describe "in a file that was cut" do
    it "says so first, and shows what is left of a core file" do
      skip "needs root, or the permission to trace any process" unless Process.euid.zero?

      plain_program(program) do |pid|
        core = core_of(pid)
        File.truncate(core, File.size(core) * 9 / 10)
        cut = /\Amemprof: .* of the file are missing; answers are incomplete$/
        of_blocks.each do |question|
          result = refused("core", *question.grep(/^--/), core, *question.grep_v(/^--/))
          expect(result.stderr).to match(cut), question.join(" ")
        end
        expect(refused("core", core, "count", "objects").stderr).to match(cut)
        expect(refused("core", core).stdout.lines[1]).to match(/^Note: .* of the file are missing/)
        expect(refused("core", "--json", core).stderr).to match(cut)
        of_heaps.each do |question|
          result = refused(*about(question, core))
          expect(result.stderr).to match(/is truncated: objects of its missing part |no pages of a Ruby/)
        end
      end
    end

    %w[cut.json cut.memprof].each do |file|
      it "says so of a dump: #{file}" do
        write_dump(file)
        File.truncate(file, File.size(file) * 9 / 10)
        of_heaps.each do |question|
          result = refused(*about(question, file))
          expect(result.stderr).to include("memprof: #{file} is truncated: objects of its missing part ")
        end
      end
    end

    it "says so of a dump with broken lines" do
      write_dump("broken.json")
      lines = File.binread("broken.json").lines
      lines[500] = "{\"_id\":\"0x\n"
      File.binwrite("broken.json", lines.join)
      expect(refused("top", "broken.json").stderr)
        .to start_with("memprof: broken.json: skipped 1 invalid line, the first is line 501\n")
    end
  end

  describe "in a file of another kind" do
    def files
      write_dump("heap.memprof")
      Memprof::Malloc.record("app.malloc") { Array.new(10) { "x" * 10_000 } }
      Memprof.trace("requests.json") { Object.new }
      File.write("notes.txt", "no dump at all\n")
      FileUtils.cp(RbConfig.ruby, "program")
      File.chmod(0o644, "program")
    end

    it "names the file, and the verb that reads it" do
      files
      heap = "it is a heap dump: `memprof stats heap.memprof`"
      recording = "it is a malloc recording: `memprof malloc app.malloc`"
      log = "it is a log of traced requests: `memprof trace requests.json`"
      {
        %w[malloc heap.memprof] => "heap.memprof is not a malloc recording (#{heap})",
        %w[core heap.memprof count leaked] => "heap.memprof is not a core file (#{heap})",
        %w[trace heap.memprof] => "heap.memprof is not a log of traced requests (#{heap})",
        %w[leaks app.malloc] => "app.malloc is not a heap dump (#{recording})",
        %w[core app.malloc] => "app.malloc is not a core file (#{recording})",
        %w[stats requests.json] => "requests.json is not a heap dump (#{log})",
        %w[malloc requests.json] => "requests.json is not a malloc recording (#{log})",
        %w[malloc notes.txt] => "notes.txt is neither a command nor a malloc recording"
      }.each do |words, message|
        result = refused(*words)
        expect([result.stdout, result.stderr]).to eq(["", "memprof: #{message}\n"])
      end
      of_heaps.each do |question|
        expect(refused(*about(question, "notes.txt")).stderr).to start_with("memprof: cannot read notes.txt:")
        expect(refused(*about(question, "program")).stderr).to match(/\Amemprof: .*program/)
      end
      of_blocks.each do |question|
        words = [*question.grep(/^--/), "program", *question.grep_v(/^--/)]
        expect(refused("core", *words).stderr).to end_with("program: this is an ELF file, but no core file\n")
      end
    end

    it "reads a dump from a pipe, and says when it waits for one" do
      write_dump("heap.json")
      memprof = [RbConfig.ruby, "-I#{ChildRuby::LIB}", File.join(ChildRuby::ROOT, "exe/memprof")]
      piped = run_command("bash", "-c", "#{memprof.join(" ")} stats <(cat heap.json)")
      expect([piped.status.exitstatus, piped.stderr]).to eq([0, ""]) # nor are there commands to read it again
      expect(piped.stdout).to match(/ objects, .*[KM]iB$/)
      File.mkfifo("pipe")
      %w[stats trace].each do |verb|
        error, output = IO.pipe
        pid = spawn(*memprof, verb, "pipe", out: File::NULL, err: output)
        output.close
        expect(error.gets).to eq("memprof: waiting for input from pipe\n")
        Process.kill(:INT, pid)
        Process.wait(pid)
      ensure
        error&.close
      end
      %w[core malloc web].each do |verb|
        error = refused(verb, "pipe").stderr
        expect(error).to eq("memprof: cannot read pipe: a file is required, not a pipe\n")
      end
    end
  end

  it "refuses sets, signatures and patterns that are misspelled" do
    skip "needs root, or the permission to trace any process" unless Process.euid.zero?

    plain_program(program) do |pid|
      {
        %w[count zzz] => /\Amemprof: unknown set "zzz"; expected one of: allocations, /,
        %w[count used zzz] => /\Amemprof: invalid signature "zzz"; expected an address of constant data /,
        %w[count used %RubyStrng] => /\Amemprof: unknown pattern "%RubyStrng"; expected one of: %Ruby/,
        %w[list leaked %VectorBodies] => /\Amemprof: unknown pattern "%VectorBodies"; .*%VectorBody/,
        ["count", "used", "/minsize", "1", "KiB"] => /\Amemprof: invalid signature "KiB"; /,
        %w[count used 1000] => /\Amemprof: invalid signature "1000"; /,
        %w[count used libruby.so+0x] => /\Amemprof: invalid signature "libruby.so\+0x"; /,
        %w[count used /minincoming %RubyArry=1] => /\Amemprof: unknown pattern "%RubyArry"; /,
        %w[summarize used /extend %RubyArray->%RubyStrng] => /\Amemprof: unknown pattern "%RubyStrng"; /,
        %w[summarize used /extend %RubyArry->] => /\Amemprof: unknown pattern "%RubyArry"; /,
        %w[count objects %RubyString] => /\Amemprof: objects takes no restrictions$/,
        %w[count arenas /minsize 1] => /\Amemprof: arenas takes no restrictions$/
      }.each do |words, message|
        result = refused("core", pid, *words)
        expect(result.stdout).to eq("")
        expect(result.stderr).to match(message)
      end
      signed = run_memprof("core", "--json", pid.to_s, "summarize", "used").stdout
      row = JSON.parse(signed)["rows"].find { |one| one["kind"] == "signature" && one["place"] }
      [row["name"], "0x#{row["name"]}", "-", "?", "%RubyComplex"].each do |signature|
        result = run_memprof("core", pid.to_s, "count", "used", signature)
        expect([result.status.exitstatus, result.stderr]).to eq([0, ""]), signature
      end
      stated = %w[summarize used %RubyArray /extend %RubyArray->%RubyString=>text /extend text->]
      expect(run_memprof("core", pid.to_s, *stated).status.exitstatus).to eq(0)
    end
  end
end
