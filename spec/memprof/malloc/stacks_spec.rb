# frozen_string_literal: true

require "json"
require "stringio"
require "tmpdir"

RSpec.describe "Stacks of Memprof::Malloc.record" do
  before { skip "malloc is recorded on Linux" unless RUBY_PLATFORM.include?("linux") }

  around { |example| Dir.mktmpdir { |directory| (@directory = directory) && example.run } }

  let(:path) { File.join(@directory, "app.malloc") }

  # Recording is global: each example has a process of its own.
  def in_child(code)
    result = run_ruby(%(require "memprof/malloc"; PATH = #{path.inspect}\n#{code}))
    expect([result.stderr, result.status.exitstatus]).to eq(["", 0])
    result.stdout
  end

  def recording = Memprof::Malloc::Recording.new(path)

  # Stacks as Arrays of frames, outermost first, without native frames that have no name, with their bytes.
  def stacks(value: :leaked)
    lines = StringIO.new
    recording.write(lines, format: :collapsed, value: value)
    lines.string.lines(chomp: true).to_h do |line|
      frames, bytes = line.match(/\A(.*) (\d+)\z/).captures
      [frames.split(";").grep_v(/\+0x/), Integer(bytes)]
    end
  end

  # The stacks in which these frames follow each other, with others between, and their bytes.
  def through(*frames, value: :leaked)
    stacks(value: value).select do |stack, _|
      rest = stack.dup
      frames.all? { |frame| (at = rest.index { |one| frame === one }) && rest.shift(at + 1) }
    end
  end

  def ending(frames) = stacks.select { |stack, _| stack.last(frames.size) == frames }

  program = <<~'RUBY'
    class Parser
      def rows(count) = Array.new(count) { |index| row(index) }
      def row(index) = "x" * (10_000 + index)
    end

    def import = $rows = Parser.new.rows(30)
    def export = $text = Parser.new.row(50_000)
    def run(options = {})
      Memprof::Malloc.record(PATH, **options) do
        import
        eval("export", binding, "template.erb", 7)
      end
    end
  RUBY

  it "have the lines that led to an allocation, with their methods" do
    in_child("#{program}\nrun")
    import = ["import (-e:7)", "rows (-e:3)", "block in rows (-e:3)", "row (-e:4)"]
    expect(ending(import).values.sum).to be_between(30 * 10_000, 30 * 10_000 + 20_000)
    # A block that runs evaluated code has a name of its own from 3.4 on.
    block = RUBY_VERSION < "3.4" ? "block in run" : "<compiled>"
    export = ["#{block} (template.erb:7)", "export (-e:8)", "row (-e:4)"]
    expect(ending(export).values.sum).to be_between(60_000, 70_000)
    # During a collection no frame of Ruby is read.
    expect(stacks.keys.filter_map(&:first).uniq).to eq ["<main> (-e:16)"]
    expect(recording.to_h[:callers]).to be true
    row = recording.to_h[:locations].find { |one| one[:location] == "-e:4" }
    expect(row[:leaked_bytes]).to be_between(360_000, 390_000)
    rows = recording.tree(:bottom_up, value: :leaked)
    expect(rows.first(2)).to match([
      a_hash_including(location: "-e:4", method: "row", depth: 0),
      a_hash_including(location: "-e:3", method: "block in rows", depth: 1)
    ])
    expect(recording.tree_text(:top_down, value: :leaked)).to match(
      /\ALive at the end: [\d.]+ KiB, from the outermost frames down\n +[\d.]+ KiB +\d+ %  <main> \(-e:16\)\n/
    )
    expect { recording.tree(:sideways) }
      .to raise_error(ArgumentError, "unknown direction :sideways; expected one of: top_down, bottom_up")
  end

  it "are as long as wanted" do
    in_child("#{program}\nrun(stack: 2)")
    expect(stacks.keys.map(&:size).max).to eq 2
    expect(through("block in rows (-e:3)", "row (-e:4)")).not_to be_empty
    in_child("#{program}\nrun(stack: 1)")
    expect(stacks.keys.map(&:size).uniq).to eq [1]
    expect(recording.to_h[:callers]).to be false
    expect(recording.tree_text).to include("it has one frame of each stack.\n")
    expect(in_child("begin; Memprof::Malloc.record(PATH, stack: 513); rescue => e; puts e.message; end"))
      .to eq "stack must be 1 to 512, not 513\n"
  end

  it "are right while code is compiled, moved and freed" do
    in_child(<<~'RUBY')
      GC.auto_compact = true if GC.respond_to?(:auto_compact=)
      Memprof::Malloc.record(PATH) do
        60.times do |number|
          eval("def made_#{number}(count) = $kept = 'x' * count\ndef calls_#{number} = made_#{number}(20_000)", nil, "made.rb", number * 10 + 1)
          20.times { send("calls_#{number}") }
          Object.undef_method("calls_#{number}")
          Object.undef_method("made_#{number}")
          GC.start if number % 7 == 0
          GC.compact if number % 20 == 0 && GC.respond_to?(:compact)
        end
      end
    RUBY
    seen = stacks(value: :allocated).select do |stack, bytes|
      stack.last.to_s.start_with?("made_") && bytes >= 20 * 20_000
    end
    expected = Array.new(60) do |number|
      ["calls_#{number} (made.rb:#{number * 10 + 2})", "made_#{number} (made.rb:#{number * 10 + 1})"]
    end
    expect(seen.keys.map { |stack| stack.last(2) }).to match_array(expected)
  end

  native = <<~'RUBY'
    def in_c = [3].each { |count| $kept = "y" * (count * 100_000) }
    def compare = [2, 1].sort_by { |one| ($sorted ||= []) << ("z" * 40_000); one }
    def fiber = Fiber.new { in_c }.resume
    def thread = Thread.new { $thread = "t" * 90_000 }.join
  RUBY

  it "have native frames, with Ruby's where the VM runs them" do
    in_child("#{native}\nMemprof::Malloc.record(PATH, native: true) { in_c; compare; thread; fiber; fiber }")
    libruby = ->(name) { /\A#{name} \(libruby/ }
    # Array#each is written in Ruby from 3.4 on.
    each = libruby.("rb_ary_each") if RUBY_VERSION < "3.4"
    in_c = ["in_c (-e:2)", *each, "block in in_c (-e:2)", libruby.("rb_str_times")]
    expect(through("<main> (-e:7)", *in_c, value: :allocated).values.sum).to be_between(300_000, 310_000)
    expect(through("block in fiber (-e:4)", *in_c, value: :allocated).values.sum)
      .to be_between(600_000, 610_000)
    expect(through("<main> (-e:7)", "block in fiber (-e:4)")).to be_empty
    expect(through("compare (-e:3)", libruby.("rb_block_call"), "block in compare (-e:3)").values.sum)
      .to be_between(80_000, 90_000)
    threads = through("block in thread (-e:5)", libruby.("rb_str_times"))
    expect(threads.values.sum).to be_between(90_000, 91_000)
    expect(threads.keys.flatten).not_to include("<main> (-e:7)")
    row = recording.to_h[:locations].find { |one| one[:location] == "-e:3" }
    expect(row[:leaked_bytes]).to be_between(80_000, 90_000)
  end

  it "name functions of a library that is loaded meanwhile" do
    in_child(<<~'RUBY')
      def load_late
        require "zlib"
        $zip = Zlib::Deflate.new.tap { |zip| zip << "x" }
      end
      Memprof::Malloc.record(PATH, native: true) { load_late }
    RUBY
    frames = StringIO.new.tap { |lines| recording.write(lines, format: :collapsed, value: :leaked) }.string
    expect(frames.lines.grep(/;load_late \(-e:4\);.*zlib\.so.*libz\.so/)).not_to be_empty
  end

  it "survive forks, signals, exceptions and GC.stress beside native frames" do
    out = in_child(<<~'RUBY')
      trap("USR1") { $signal = "s" * 30_000 }
      def deep(levels, &block) = levels.zero? ? block.call : deep(levels - 1, &block)
      Memprof::Malloc.record(PATH, native: true) do
        threads = Array.new(3) { |number| Thread.new { 300.times { deep(number * 20) { "x" * 5_000 } } } }
        20.times do |number|
          Process.kill(:USR1, Process.pid)
          deep(number) { raise "away" } rescue nil
          Process.wait(fork { deep(30) { "y" * 10_000 }; exit! }) if number % 5 == 0
          GC.start
        end
        GC.stress = true
        deep(60) { "z" * 3_000 }
        GC.stress = false
        threads.each(&:join)
      end
      p Memprof::Malloc.missed
    RUBY
    expect(out).to eq "0\n"
    expect(recording).to be_complete
    expect(recording.to_h[:total][:allocations]).to be > 900
  end

  # A function that calls the one at an address with the argument 50000, in anonymous memory.
  jit = <<~'RUBY'
    require "fiddle"
    POINTER = Fiddle::TYPE_VOIDP
    def function(name, arguments, result = POINTER)
      Fiddle::Function.new(Fiddle::Handle::DEFAULT[name], arguments, result)
    end
    def jit(callee)
      code = if RUBY_PLATFORM.start_with?("x86_64")
        ["4883ec08" "bf50c30000" "48b8"].pack("H*") + [callee].pack("Q") + ["ffd0" "4883c408" "c3"].pack("H*")
      else
        words = [0xa9bf7bfd, 0x910003fd, 0x52986a00, 0x58000088, 0xd63f0100, 0xa8c17bfd, 0xd65f03c0, 0xd503201f]
        words.pack("V*") + [callee].pack("Q")
      end
      page = function("mmap", [POINTER, Fiddle::TYPE_LONG, *[Fiddle::TYPE_INT] * 3, Fiddle::TYPE_LONG])
        .call(nil, 4096, 7, 0x22, -1, 0)
      page[0, code.bytesize] = code
      Fiddle::Function.new(page, [], POINTER, need_gvl: true)
    end
    def run(function) = function.call
  RUBY

  it "go from the code of a JIT over to Ruby's frames" do
    in_child(<<~RUBY)
      #{jit}
      Memprof::Malloc.record(PATH, native: true) do
        function = jit(Fiddle::Handle::DEFAULT["rb_str_buf_new"])
        2.times { run(function) }
      end
    RUBY
    stack, bytes = stacks(value: :allocated).max_by(&:last)
    names = stack.map { |frame| frame.sub(/ \((?:-e|lib).*/, "") }
    # Some Rubies call ruby_xmalloc2 there.
    expect([names.slice_after("rb_str_buf_new").first.last(3), bytes])
      .to eq([["run", "<jit>", "rb_str_buf_new"], 100_002])
    expect(recording.tree_text(value: :allocated)).to match(/^ .* {2}<jit>$/)
    row = recording.tree(value: :allocated).find { |one| one[:location] == "<jit>" }
    expect(row.keys).to contain_exactly(:depth, :level, :location, :bytes)
    expect(recording.functions("<jit>", value: :allocated).first).to include(bytes: 100_002)
  end

  it "go over to Ruby's frames in memory, too" do
    out = in_child(<<~RUBY)
      #{jit}
      Memprof::Malloc.start(native: true, stack: 64)
      run(jit(Fiddle::Handle::DEFAULT["rb_str_buf_new"]))
      Memprof::Malloc.stop
      p Memprof::Malloc.tree.find { |row| row[:location] == "<jit>" }[:bytes]
      p Memprof::Malloc["<jit>"]
    RUBY
    expect(out).to eq "50001\nnil\n"
  end

  it "go over to Ruby's frames with YJIT" do
    yjit = run_ruby("exit(defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled?)", ruby_args: ["--yjit"])
    skip "this Ruby has no YJIT" unless yjit.status.success?

    code = <<~RUBY
      require "memprof/malloc"
      def leaf(count) = "x" * count
      def middle(count) = leaf(count)
      def record(path) = Memprof::Malloc.record(path, native: true) { 200.times { middle(10_000) } }
      def run(path) = record(path)
      2_000.times { middle(10) }
      50.times { run(File::NULL) }
      run(#{path.inspect})
    RUBY
    result = run_ruby(code, ruby_args: ["--yjit"])
    expect([result.stderr, result.status.exitstatus]).to eq(["", 0])
    jitted = stacks(value: :allocated).select { |stack, bytes| stack.include?("<jit>") && bytes >= 100_000 }
    expect(jitted.keys).not_to be_empty
    expect(jitted.keys.map { |stack| stack.take_while { |frame| frame != "<jit>" }.last(2) })
      .to all(match([/\Amiddle \(/, /\Aleaf \(/]))
  end

  it "are recorded in memory, too, and as samples" do
    out = in_child(<<~RUBY)
      #{native}
      def sampled = 20_000.times { ($strings ||= []) << ("s" * 1_000) }
      Memprof::Malloc.start(stack: 64, native: true)
      in_c
      Memprof::Malloc.stop
      tree = Memprof::Malloc.tree(:bottom_up)
      puts tree.find { |row| row[:method] == "block in in_c" }[:bytes] >= 300_000
      puts Memprof::Malloc.tree_text.lines.first, Memprof::Malloc.tree_text[/in_c.*/]
      Memprof::Malloc.write(PATH, format: :collapsed)
      Memprof::Malloc.write($stdout, format: :speedscope)
      puts
      Memprof::Malloc.start(sample: 65_536, stack: 64, native: true)
      sampled
      Memprof::Malloc.stop
      puts Memprof::Malloc.tree(:top_down, value: :allocated).find { |row| row[:method] == "sampled" }[:bytes]
    RUBY
    found, title, line, speedscope, sampled = out.lines(chomp: true)
    expect([found, line]).to eq ["true", "in_c (-e:2)"]
    expect(title).to match(/\ALive: [\d.]+ KiB, from the outermost frames down\z/)
    expect(JSON.parse(speedscope)).to include("name" => "-e")
    expect(File.read(path)).to match(/;in_c \(-e:2\);.*block in in_c \(-e:2\);.* \d+$/)
    # 20 MB in samples of 64 KiB on average: a standard deviation of 6 %.
    expect(Integer(sampled)).to be_between(13_000_000, 28_000_000)
    expect(in_child("begin; Memprof::Malloc.tree(value: :peak); rescue => e; puts e.message; end"))
      .to eq "unknown value :peak; expected one of: live, allocated\n"
  end

  it "are recorded and shown by the command" do
    ran = run_memprof("run", "--malloc", "--native", "--stack", "20", "-o", path, "--", RbConfig.ruby, "-e",
      "#{native}\nin_c")
    expect(ran.stderr).to eq "Next: memprof malloc #{path}\n"
    callers = run_memprof("malloc", "--callers", "--value", "leaked", path)
    expect(callers.stdout).to match(/rb_str_times \(libruby.*\n +block in in_c \(-e:1\)$/)
    tree = JSON.parse(run_memprof("malloc", "--tree", "--json", path).stdout)
    expect(tree.find { |row| row["method"] == "in_c" }).to include("location" => "-e:1")
    %w[speedscope firefox].each do |format|
      expect(JSON.parse(run_memprof("malloc", "-f", format, path).stdout)).to be_a(Hash)
    end
    expect(run_memprof("malloc", "--tree", "--", "true").stderr)
      .to eq "memprof: --tree is for recordings; see `memprof help malloc`\n"
  end
end
