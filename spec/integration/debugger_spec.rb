# frozen_string_literal: true

require "json"
require "rbconfig"
require "tmpdir"

# The functions that the extension exports for debuggers, called through the dynamic linker, at good moments
# and bad ones, and from a real gdb.
RSpec.describe "The functions for a debugger" do
  preamble = <<~'RUBY'
    require "memprof"
    require "memprof/native"
    require "fiddle"
    require "json"
    LIBRARY = Fiddle.dlopen($LOADED_FEATURES.grep(%r{/memprof\.(so|bundle)\z}).first)
    C = Fiddle.dlopen(nil)
    TYPES = { pointer: Fiddle::TYPE_VOIDP, int: Fiddle::TYPE_INT, void: Fiddle::TYPE_VOID }
    # Fiddle gives up the lock (GVL) around a call, unless declared to need it.
    def function(name, arguments, result = :void, lock: true)
      Fiddle::Function.new(LIBRARY[name], TYPES.values_at(*arguments), TYPES.fetch(result), need_gvl: lock)
    end
    class Foo; class Bar; end; end
    class Foobar; end
    $kept = [Foo.new, Foo.new, Foo::Bar.new, Foobar.new]
  RUBY

  fiddle = system(RbConfig.ruby, "-W0", "-e", 'require "fiddle"', out: File::NULL, err: File::NULL)

  define_method(:in_child) do |code, &block|
    skip "needs fiddle, which is a gem since Ruby 4.0" unless fiddle

    Dir.mktmpdir do |directory|
      result = run_ruby("#{preamble}#{code}", timeout: 300, chdir: directory)
      expect(result.status.exitstatus).to eq(0), result.stderr
      block.call(result.stdout, result.stderr, directory)
    end
  end

  describe "at a good moment" do
    it "count objects on stderr" do
      in_child(<<~'RUBY') do |_, stderr, _|
        function("heapdump_count_objects_print", %i[pointer pointer pointer]).call("Foo", "Foobar", nil)
      RUBY
        expect(stderr.lines.values_at(0, -1)).to eq ["{\n", "}\n"]
        counts = JSON.parse(stderr)
        expect(counts.keys).to eq %w[total_slots free_slots basic_types user_types]
        expect(counts["user_types"]).to eq("Foo" => 2, "Foo::Bar" => 1, "Foobar" => 1)
      end
    end

    it "return the counts as a C string that the caller frees" do
      in_child(<<~'RUBY') do |stdout, stderr, _|
        count = function("heapdump_count_objects_return", %i[pointer pointer pointer], :pointer)
        [["Foo", nil, nil], ["Foo", "", "Foobar"], ["Foobar,Foo", nil, nil], [nil, nil, nil]].each do |names|
          pointer = count.call(*names)
          text = pointer.to_s
          Fiddle::Function.new(C["free"], [Fiddle::TYPE_VOIDP], Fiddle::TYPE_VOID).call(pointer)
          abort("more than one line") if text.match?(/\n| "/)
          puts JSON.parse(text)["user_types"].keys.join(" ")
        end
      RUBY
        expect(stdout.lines(chomp: true)).to eq ["Foo Foo::Bar", "Foo Foo::Bar", "Foo Foo::Bar Foobar", ""]
        expect(stderr).to eq ""
      end
    end

    it "dump the heap as heap_dump did, into dump.json if no file is named" do
      in_child(<<~'RUBY') do |stdout, stderr, directory|
        dump = function("heapdump_dump", %i[pointer])
        dump.call(nil)
        dump.call("other.json")
        puts %w[dump.json other.json].map { |file| JSON.parse(File.read(file)).first["id"] }
      RUBY
        expect([stdout, stderr]).to eq ["_ROOTS_\n_ROOTS_\n", ""]
        expect(Dir.children(directory).sort).to eq %w[dump.json other.json]
      end
    end

    it "dump the heap as Memprof.dump_all does, to a file or to stdout" do
      in_child(<<~'RUBY') do |stdout, stderr, directory|
        dump = function("memprof_dump_all", %i[pointer], :int)
        exit 2 unless dump.call("heap.json") == 0 && dump.call(nil) == 0
      RUBY
        expect(stderr).to eq ""
        [stdout, File.read(File.join(directory, "heap.json"))].each do |text|
          types = text.lines.map { |line| JSON.parse(line)["type"] }
          expect(types.values_at(0, -1)).to eq %w[header footer]
          expect(types.size).to be > 5000
        end
      end
    end

    it "say what is tracked, as Memprof.stats does" do
      in_child(<<~'RUBY') do |stdout, stderr, directory|
        stats = function("memprof_stats", %i[pointer], :int)
        puts stats.call("stats.txt")
        Memprof.start
        $more = Array.new(7) { Foo.new }
        puts stats.call("stats.txt")
        $stdout.flush
        puts stats.call(nil)
        puts stats.call("/nowhere/stats.txt")
      RUBY
        line = /^ +7 -e:\d+:Foo$/
        expect(File.read(File.join(directory, "stats.txt"))).to match(line)
        expect(stdout).to match(/\A-1\n0\n(.+:.+:.+\n)+0\n-1\n\z/).and match(line)
        expect(stderr.lines).to match [
          "memprof: memprof_stats: objects are not tracked; call Memprof.start first\n",
          "memprof: memprof_stats: cannot write /nowhere/stats.txt: No such file or directory\n"
        ]
        expect(Dir.children(directory)).to eq ["stats.txt"]
      end
    end

    it "work while all is tracked, and moved, and collected" do
      in_child(<<~'RUBY') do |stdout, stderr, _|
        Memprof.start(stack: 4)
        GC.auto_compact = true if GC.respond_to?(:auto_compact=)
        count = function("heapdump_count_objects_return", %i[pointer pointer], :pointer)
        counted = -> { JSON.parse(count.call("Foo", nil).to_s)["user_types"]["Foo"] == 2 }
        stats = function("memprof_stats", %i[pointer], :int)
        GC.stress = true
        ok = Array.new(3) { counted.call && stats.call("stats") == 0 }
        GC.stress = false
        p ok.uniq
      RUBY
        expect([stdout, stderr]).to eq ["[true]\n", ""]
      end
    end
  end

  describe "at a bad moment" do
    # Each says why in a line, and writes no file; the program goes on, and prints what it prints.
    def expect_refusal(code, prints:, why:, names: %w[heapdump_dump])
      in_child(code) do |stdout, stderr, directory|
        expect(stdout).to eq prints
        expect(stderr).to eq(names.map { |name| "memprof: #{name}: not now: #{why}\n" }.join)
        expect(Dir.children(directory)).to eq []
      end
    end

    it "refuse in a thread that has given up the lock" do
      why = "this thread waits, or runs C code, without Ruby's lock (GVL); choose another one"
      names = %w[heapdump_dump heapdump_count_objects_print heapdump_count_objects_return] +
        %w[memprof_dump_all memprof_stats]
      expect_refusal(<<~'RUBY', prints: "true\n-1\n-1\n", why: why, names: names)
        function("heapdump_dump", %i[pointer], lock: false).call(nil)
        function("heapdump_count_objects_print", %i[pointer], lock: false).call("Foo")
        puts function("heapdump_count_objects_return", %i[pointer], :pointer, lock: false).call("Foo").null?
        puts function("memprof_dump_all", %i[pointer], :int, lock: false).call("heap.json")
        puts function("memprof_stats", %i[pointer], :int, lock: false).call("stats.txt")
      RUBY
    end

    it "refuse in a thread that sleeps beside a busy one" do
      skip "the owner of the lock is looked for on Linux only" unless RUBY_PLATFORM.include?("linux")

      why = "this thread waits, or runs C code, without Ruby's lock (GVL); choose another one"
      expect_refusal(<<~'RUBY', prints: "woken\n", why: why, names: %w[heapdump_dump] * 3)
        # A signal's handler runs where a debugger would call: in a thread that does not have the lock.
        int = Fiddle::TYPE_INT
        Fiddle::Function.new(C["signal"], [int, Fiddle::TYPE_VOIDP], Fiddle::TYPE_VOIDP)
          .call(Signal.list.fetch("USR2"), LIBRARY["heapdump_dump"])
        tgkill = Fiddle::Function.new(C["tgkill"], [int] * 3, int, need_gvl: true)
        queue, mutex = Queue.new, Mutex.new.tap(&:lock)
        sleeping = [-> { sleep }, -> { queue.pop }, -> { mutex.lock }].map { |wait| Thread.new(&wait) }
        reader, writer = IO.pipe
        stderr = $stderr.dup
        $stderr.reopen(writer)
        sleeping.each do |thread|
          Thread.pass until thread.stop? && thread.native_thread_id
          tgkill.call(Process.pid, thread.native_thread_id, Signal.list.fetch("USR2"))
          line = +""
          until line.end_with?("\n") # busy, with the lock
            part = reader.read_nonblock(1000, exception: false)
            line << part if part.is_a?(String)
          end
          stderr.write(line)
        end
        puts "woken"
      RUBY
    end

    it "refuse in a thread that Ruby does not know" do
      why = "this thread is not a Ruby thread; choose another one"
      expect_refusal(<<~'RUBY', prints: "joined\n", why: why)
        thread = Fiddle::Pointer.malloc(8, Fiddle::RUBY_FREE)
        create = Fiddle::Function.new(C["pthread_create"], [Fiddle::TYPE_VOIDP] * 4, Fiddle::TYPE_INT)
        join = Fiddle::Function.new(C["pthread_join"], [Fiddle::TYPE_UINTPTR_T, Fiddle::TYPE_VOIDP], Fiddle::TYPE_INT)
        create.call(thread, nil, LIBRARY["heapdump_dump"], "dump.json")
        join.call(thread[0, 8].unpack1("J"), nil)
        puts "joined"
      RUBY
    end

    it "refuse during a garbage collection" do
      why = "a garbage collection is running"
      expect_refusal(<<~'RUBY', prints: "collected\n", why: why, names: %w[heapdump_dump] * 3)
        # A hook that runs when a collection has begun. What it is called with, the name of a file would be.
        types = [Fiddle::TYPE_UINTPTR_T, Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP, Fiddle::TYPE_VOIDP]
        make = Fiddle::Function.new(C["rb_tracepoint_new"], types, Fiddle::TYPE_UINTPTR_T, need_gvl: true)
        GC.disable # nothing refers to the hook until it is unwrapped
        hook = make.call(0, 0x400000, LIBRARY["heapdump_dump"], nil)
        $hook = Fiddle.dlunwrap(hook)
        GC.enable
        %w[rb_tracepoint_enable rb_tracepoint_disable].each do |name|
          Fiddle::Function.new(C[name], [Fiddle::TYPE_UINTPTR_T], Fiddle::TYPE_UINTPTR_T, need_gvl: true).call(hook)
          3.times { GC.start }
        end
        puts "collected"
      RUBY
    end

    it "refuse when Ruby has ended" do
      expect_refusal(<<~'RUBY', prints: "registered\n", why: "Ruby is not running")
        on_exit = Fiddle::Function.new(C["on_exit"], [Fiddle::TYPE_VOIDP] * 2, Fiddle::TYPE_INT)
        on_exit.call(LIBRARY["heapdump_dump"], nil) # is called with the status, 0, as the file's name
        puts "registered"
      RUBY
    end

    it "say why a dump can't be written" do
      in_child(<<~'RUBY') do |stdout, stderr, _|
        p function("memprof_dump_all", %i[pointer], :int).call("/nowhere/heap.json")
      RUBY
        expect(stdout).to eq "-1\n"
        expect(stderr.lines).to match [%r{\Amemprof: memprof_dump_all: .*/nowhere/heap\.json.*No such file}]
      end
    end
  end

  describe "in gdb" do
    def gdb(*commands, program: nil, pid: nil, directory: ".")
      target = program ? ["--args", RbConfig.ruby, "-I#{ChildRuby::LIB}", program] : ["-p", pid.to_s]
      options = ["-nx", "-batch", *commands.flat_map { |command| ["-ex", command] }]
      run_command("gdb", *options, *target, timeout: 300, chdir: directory)
    end

    before do
      result = gdb("call (int)getpid()", pid: child.pid)
      next if result.stdout.match?(/^\$1 = #{child.pid}$/)

      skip "gdb can't call functions here: #{result.stderr.lines.last}"
    rescue Errno::ENOENT
      skip "gdb is not installed"
    end

    after { child.close unless child.closed? }

    # Its main thread waits without the lock until asked to end, another one comes by now and then.
    let(:child) do
      program = <<~'RUBY'
        require "heap_dump"
        Shop = Class.new
        kept = { 1 => Shop.new }
        Thread.new { loop { sleep 0.05; kept[1] } }
        $stdout.sync = true
        puts "ready"
        puts gets
      RUBY
      command = [RbConfig.ruby, "-I#{ChildRuby::LIB}", "-e", program, { err: %i[child out] }]
      IO.popen(command, "r+").tap(&:gets)
    end

    def end_of_child
      child.puts("the program went on")
      output = child.read
      child.close
      expect($?).to be_success
      output.lines
    end

    it "are called in a program that runs, and the program continues" do
      Dir.mktmpdir do |directory|
        program = File.join(directory, "shop.rb")
        File.write(program, <<~RUBY)
          require "heap_dump"
          class Shelf; end
          $shelves = Array.new(5) { Shelf.new }
          Memprof.start
          $more = Array.new(3) { Shelf.new }
          HeapDump.int3
          puts "the program went on"
        RUBY
        result = gdb("run", "call (void)heapdump_dump(0)",
          'call (void)heapdump_count_objects_print("Shelf", 0)',
          'printf "%s\n", (char *)heapdump_count_objects_return("Shelf", "")',
          'call (int)memprof_dump_all("heap.json")', 'call (int)memprof_stats("stats.txt")', "signal 0",
          program: program, directory: directory)
        expect(result.stdout).to include('"user_types":{"Shelf":8}}').and include("the program went on")
        expect(result.stderr).to include("    \"user_types\": {\n        \"Shelf\": 8\n    }")
        names = %w[dump.json heap.json stats.txt]
        files = names.to_h { |name| [name, File.read(File.join(directory, name))] }
        expect(JSON.parse(files["dump.json"]).first["id"]).to eq "_ROOTS_"
        expect(JSON.parse(files["heap.json"].lines.last)["type"]).to eq "footer"
        expect(files["stats.txt"]).to match(/^ +3 #{program}:5:Shelf$/)
      end
    end

    # The commands that the document shows, one by one.
    it "are called at a breakpoint in a process that was attached to, as the document says" do
      Dir.mktmpdir do |directory|
        heap = File.join(directory, "heap.json")
        document = File.read(File.join(ChildRuby::ROOT, "docs/heap-dump.md"))
        commands = document.scan(/^\(gdb\) (.+)$/).flatten
        dump = %r{memprof_dump_all\("/tmp/heap.json"\)}
        expect(commands).to include("set scheduler-locking on", dump, "detach")
        commands.each { |command| command.sub!("/tmp/heap.json", heap) }
        result = gdb(*commands, pid: child.pid)
        expect(result.stdout).to include('"user_types":{"Shop":1}}')
        types = File.readlines(heap).values_at(0, -1).map { |line| JSON.parse(line)["type"] }
        expect(types).to eq %w[header footer]
        expect(end_of_child.last).to eq "the program went on\n"
      end
    end

    it "refuse in a thread that waits" do
      result = gdb('print (int)memprof_dump_all("/nowhere/heap.json")', pid: child.pid)
      expect(result.stdout).to match(/^\$1 = -1$/)
      refusal = /\Amemprof: memprof_dump_all: not now: this thread waits/
      expect(end_of_child).to match [refusal, "the program went on\n"]
    end
  end
end
