# frozen_string_literal: true

require "tmpdir"

# Dumping when the VM and the system are at their worst. Each in a process of its own: a failure is a crash.
RSpec.describe "Dumping" do
  heaps = File.expand_path("../../fixtures/heaps", __dir__)

  define_method(:expect_output) do |code, expected, env: {}|
    Dir.mktmpdir do |directory|
      program = <<~RUBY
        require "dumping"
        path = File.join(ENV.fetch("DIRECTORY"), "dump.json")
        #{code}
      RUBY
      result = run_ruby(program, timeout: 300, env: { "DIRECTORY" => directory, **env },
        ruby_args: ["-I#{heaps}"])
      expect([result.stderr.lines.first(5).join, result.status.exitstatus]).to eq(["", 0])
      expect(result.stdout.lines(chomp: true)).to match(expected)
    end
  end

  # Reads the child's report, and the dump it wrote.
  fork_helper = <<~'RUBY'
    def fork_dump(path, **options)
      File.open(path, "wb") do |file|
        options = { format: "memprof", values: "full", compression: "none", header: Dumping::HEADER, **options }
        Dumping::NATIVE.fork_dump(file.fileno, options, made = [])
        pid, descriptor = made
        report = IO.open(descriptor, &:read)
        _, status = Process.wait2(pid)
        [JSON.parse(report), status.exitstatus]
      end
    end
  RUBY

  it "works at every allocation's collection, in each format" do
    expect_output(<<~'RUBY', ["memprof true", "objspace true", "binary true"])
      require "hostile"
      %w[memprof objspace binary].each do |format|
        GC.stress = true
        written = Dumping.write(path, format: format)
        GC.stress = false
        puts "#{format} #{written["objects"] > 10_000 && File.size(path) == written["bytes"]}"
      end
    RUBY
  end

  it "works between compactions that happen by themselves", if: GC.respond_to?(:auto_compact=) do
    expect_output(<<~RUBY, ["true"])
      require "hostile"
      Memprof.start
      kept = Array.new(20_000) { |index| [index.to_s] }
      puts(Array.new(3) do
        GC.auto_compact = true
        GC.start
        Array.new(50_000) { [] }
        Dumping.write(path)
        record = Dumping.record(path, Dumping.address(kept))
        record["references"].size == 20_000 && record["line"] == 5
      end.all?)
    RUBY
  end

  it "leaves the collector as it was" do
    expect_output(<<~RUBY, %w[true false true])
      GC.disable
      Dumping.write(path)
      puts GC.enable
      Dumping.write(path)
      puts GC.enable
      before = GC.count
      20.times { Array.new(100_000) { Object.new } }
      puts GC.count > before
    RUBY
  end

  it "continues while other threads allocate, in the process and in a child" do
    expect_output(<<~RUBY, ["true", "true"])
      require "hostile"
      #{fork_helper}
      stop = false
      threads = Array.new(4) { |n| Thread.new { Array.new(500) { |i| "thread \#{n} \#{i}" * 3 } until stop } }
      puts(Array.new(3) { Dumping.write(path); Dumping.whole?(path) }.all?)
      puts(Array.new(4) { fork_dump(path)[0].key?("objects") && Dumping.whole?(path) }.all?)
      stop = true
      threads.each(&:join)
    RUBY
  end

  it "continues while Ractors run" do
    expect_output(<<~RUBY, ["true"], env: { "RUBYOPT" => "-W:no-experimental" })
      #{fork_helper}
      ractors = Array.new(2) { Ractor.new { 20.times { Array.new(2000) { |i| "ractor \#{i}" } }; :done } }
      puts(Array.new(3) { Dumping.write(path); Dumping.whole?(path) }.all?)
      ractors.each { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take }
    RUBY
  end

  it "writes in a child what the parent had when it forked, and allocates nothing there" do
    expect_output(<<~RUBY, ["true", "0", "true", "true"])
      require "hostile"
      #{fork_helper}
      marked = "written by the child".dup
      report, status = fork_dump(path)
      objects = Dumping.objects(path)
      puts objects[Dumping.address(marked)]["data"] == marked, status
      puts report.values_at("objects", "references") == objects["footer"].values_at("objects", "references")
      # The walk meets no object that the parent had not, but for none: the child made none of its own.
      counts = ObjectSpace.count_objects
      puts report["objects"] <= counts[:TOTAL] - counts[:FREE]
    RUBY
  end

  it "does not hold the program's connections open in the child" do
    expect_output(<<~RUBY, ["true"])
      require "socket"
      one, other = UNIXSocket.pair
      reader, writer = IO.pipe
      options = { format: "memprof", values: "full", compression: "none", header: Dumping::HEADER }
      Dumping::NATIVE.fork_dump(writer.fileno, options, made = [])
      pid, descriptor = made
      one.close
      # Ends if the child has closed its copy: the child itself does not end, as its pipe has no reader.
      other.read
      puts IO.for_fd(descriptor).wait_readable(0).nil?
      Process.kill(:KILL, pid)
      Process.wait(pid)
    RUBY
  end

  it "lets the program go first: the child is nice, with all its threads" do
    expect_output(<<~'RUBY', ["true"])
      reader, writer = IO.pipe
      options = { format: "memprof", values: "full", compression: "zstd", header: Dumping::HEADER }
      Dumping::NATIVE.fork_dump(writer.fileno, options, made = [])
      pid = made.first
      # Its output shows that it is at work; it waits as soon as the pipe is full.
      reader.readpartial(1)
      threads = Dir.glob("/proc/#{pid}/task/*").map { |path| File.basename(path).to_i }
      own, *theirs = [0, pid, *threads].map { |id| Process.getpriority(Process::PRIO_PROCESS, id) }
      puts theirs.all?([own + 10, 19].min)
      Process.kill(:KILL, pid)
      Process.wait(pid)
    RUBY
  end

  it "reports what is wrong with the file, and continues" do
    full = /\A\{"error"\s?=>\s?"No space left on device"\}\z/
    expect_output(<<~RUBY, [/No space left on device\z/, full, /closed|Bad file/, "true"])
      #{fork_helper}
      options = { format: "memprof", values: "full", compression: "none", header: Dumping::HEADER }
      full = File.open("/dev/full", "wb")
      begin
        Dumping::NATIVE.dump_heap(full.fileno, options)
      rescue Memprof::Error => e
        puts e.message
      end
      Dumping::NATIVE.fork_dump(full.fileno, options, made = [])
      pid, descriptor = made
      puts JSON.parse(IO.open(descriptor, &:read))
      Process.wait(pid)
      begin
        Dumping::NATIVE.dump_heap(1000, options)
      rescue Memprof::Error => e
        puts e.message
      end
      Dumping.write(path)
      puts Dumping.whole?(path)
    RUBY
  end

  it "refuses options that it does not know" do
    known = [/unknown format "xml".*memprof.*objspace.*binary/, /unknown values "some".*full.*none/]
    expect_output(<<~RUBY, known)
      { format: "xml", values: "some" }.each do |name, value|
        Dumping.write(path, name => value)
      rescue ArgumentError => e
        puts e.message
      end
    RUBY
  end

  it "writes no contents of strings, symbols, regexps and keys when values are withheld" do
    expect_output(<<~'RUBY', ["hash [] true", "length [] true", "none [] false"])
      $secret = ["topsecret string".dup, { "topsecret key" => 1, "topsecret sym": 2 }, :"topsecret symbol", /topsecret regexp/,
        File.open(File::NULL), "topsecret string".dup]
      variable = "topsecret captured"
      $closure = proc { variable }
      $array = [:topsecret_symbol_in_an_array]
      %w[hash length none].each do |values|
        %w[memprof objspace].each do |format|
          Dumping.write(path, format: format, values: values)
          # Names of constants, methods and the like are the program's, not its data.
          found = File.read(path).scan(/topsecret[^"\\]*/)
          puts "#{format} #{found}" if format == "objspace" && found.any?
          next unless format == "memprof"
          record = Dumping.record(path, Dumping.address($secret[0]))
          puts "#{values} #{found} #{record["length"] == 16}"
        end
      end
    RUBY
  end
end
