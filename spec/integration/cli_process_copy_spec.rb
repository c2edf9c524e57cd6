# frozen_string_literal: true

require "csv"
require "json"
require "memprof"
require "tmpdir"

# Of programs that have not loaded memprof.
RSpec.describe "memprof dump and stack of a process that loaded nothing" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  before { skip "needs root, or the permission to trace any process" unless Process.euid.zero? }

  def children(pid)
    File.read("/proc/#{pid}/task/#{pid}/children").split
  end

  def planted(path)
    File.foreach(path).count { |line| line.include?('"class_name":"Order"') }
  end

  it "name the method that the program has redefined" do
    code = <<~RUBY
      File.write("program.rb", "class Array; def each = raise('no such thing'); end")
      load "./program.rb"
      puts :ready
      sleep
    RUBY
    plain_program(code) do |pid, _|
      [["stack", pid], ["dump", "--pid", pid, "-o", "heap.memprof"]].each do |line|
        _, stderr, status = run_memprof(*line)
        expect([stderr, status.exitstatus])
          .to match([%r{Ruby code raised RuntimeError in the copy: no such thing \(\S*program\.rb:1:in }, 2])
      end
    end
  end

  # What memprof evaluates in the copy must not look for constants and methods where the thread happens to be.
  it "find Ruby's classes wherever the program is" do
    code = <<~RUBY
      class Bare < BasicObject
        %i[Thread Fiber Hash Array String Kernel GC Encoding ObjectSpace Integer].each do |name|
          const_set(name, ::Module.new)
        end
        def work = loop { 1000.times { |number| number.to_s } }
        def loop = (yield while true)
      end
      $stdout.sync = true
      puts :ready
      Bare.new.work
    RUBY
    plain_program(code) do |pid, _|
      stdout, stderr, status = run_memprof("stack", pid)
      expect([status.exitstatus, stdout]).to match([0, /in [`'](?:Bare#)?work'/]), stderr
      stderr, status = run_memprof("dump", "--pid", pid, "-o", "heap.memprof").values_at(1, 2)
      expect(status.exitstatus).to eq(0), stderr
    end
  end

  it "print as CSV a row for each frame" do
    code = "thread = Thread.new { sleep }\nthread.name = 'a,b'\nputs :ready\nsleep"
    plain_program(code) do |pid, _|
      stdout, = run_memprof("stack", "--format", "csv", pid)
      rows = CSV.parse(stdout, headers: true).map(&:to_h)
      expect(rows.map { |row| row["name"] }.uniq).to eq(["main", "a,b"])
      expect(rows.first).to include("thread" => "1", "depth" => "0", "frame" => /sleep/)
      expect(rows.last).to include("thread" => "2", "status" => "sleep")
    end
  end

  it "write to a file whose name is not text" do
    plain_program("puts :ready; sleep") do |pid, _|
      names = %W[stack\xE9.txt heap\xE9.memprof].map(&:b)
      [["stack", pid, "-o", names[0]], ["dump", "--pid", pid, "--output=#{names[1]}".b],
        ["top", names[1], "-o", "top\xE9".b]].each do |line|
        result = run_memprof(*line)
        expect(result.status.exitstatus).to eq(0), result.stderr
      end
      expect(Dir.children(".").map(&:b)).to include(*names, "top\xE9".b)
    end
    _, stderr, status = run_memprof("\xE9".b)
    expect([stderr, status.exitstatus]).to match([/unknown command/, 2])
  end

  planting = <<~RUBY
    class Order; def initialize(id) = (@name = "order \#{id}"); end
    KEPT = Array.new(10_000) { |id| Order.new(id) }
  RUBY

  it "dumps every object and disturbs nothing" do
    code = <<~RUBY
      #{planting}
      trap("USR1") { $stdout.syswrite("USR1\n") }
      child = fork { sleep }
      waiter = Thread.new { Process.wait; puts "waited for \#{$?.pid == child}" }
      ready = IO.pipe
      Thread.new { puts "read \#{ready[0].gets}" }
      Thread.new { sleep 0.01 while true }
      puts "ready"
      sleep 0.01 until File.exist?("end")
      Process.kill(:KILL, child)
      waiter.join
      ready[1].puts "line"
      sleep
    RUBY
    plain_program(code) do |pid, lines|
      3.times do |number|
        Process.kill(:USR1, pid)
        result = run_memprof("dump", "--pid", pid, "--output", "heap.#{number}.json", timeout: 300)
        expect(result.stderr)
          .to match(/\Amemprof: dumped a copy of process #{pid}, .* paused for [\d.]+ ms \(.* not answer/)
        expect(planted("heap.#{number}.json")).to eq(10_000)
        expect(lines.gets).to eq("USR1\n")
        expect(children(pid).size).to eq(1)
      end
      expect(File.stat("heap.0.json").mode & 0o777).to eq(0o600)
      File.write("end", "")
      expect([lines.gets, lines.gets]).to contain_exactly("waited for true\n", "read line\n")
      header = JSON.parse(File.foreach("heap.0.json").first)
      expect(header).to include("pid" => pid, "program" => "-e", "ruby" => RUBY_DESCRIPTION)
      expect(run_memprof("stats", "heap.0.json").stdout)
        .to match(/^Dump +memprof, written #{header["time"][0, 10]} [\d:]{8} UTC$/)
    end
  end

  it "does not count what it allocates in the copy" do
    plain_program("#{planting}\nGC.start\nputs :ready\nsleep") do |pid, _|
      run_memprof("dump", "--pid", pid, "--output", "heap.memprof")
      heap = Memprof::Heap.open("heap.memprof")
      # It needs some before the moment from which on it knows what is its own, and for the walk itself.
      image = Memprof::Core.of(pid) { |core| core.objects[:rows].sum { |row| row[:count] } }
      expect(heap.ask(:overview)[:objects][:count]).to be_within(300).of(image)
      expect(heap.where("not reachable").size).to be < 30
    end
  end

  it "dumps a process whose threads allocate all the time" do
    code = "#{planting}\n4.times { Thread.new { loop { Array.new(50) { _1.to_s * 3 }.sort } } }\n" \
           "puts :ready\nsleep"
    plain_program(code) do |pid, _|
      result = run_memprof("dump", "--pid", pid, "--output", "heap.memprof", "--contents", "none",
        timeout: 300)
      expect(result.stderr).to include("paused for")
      run_memprof("convert", "heap.memprof", "heap.json", timeout: 300)
      expect(planted("heap.json")).to eq(10_000)
      expect(File.read("heap.json")).not_to include("order 77")
      expect(children(pid)).to be_empty
    end
  end

  it "leaves no copy behind when several commands ask at the same time" do
    plain_program("puts :ready\nloop { sleep 0.05 }") do |pid, _|
      results = Array.new(6) { Thread.new { run_memprof("stack", pid, timeout: 300) } }.map(&:value)
      expect(results).to all(be_success), results.map(&:stderr).join
      expect(children(pid)).to be_empty
    end
  end

  it "does no harm to a process that begins another program meanwhile" do
    code = "#{planting}\nMORE = Array.new(200_000, &:to_s)\nputs :ready\n$stdin.read(1)\nexec('sleep', '1')"
    3.times do
      pid = nil
      read, write = IO.pipe
      output, ready = IO.pipe
      pid = Process.spawn({ "RUBYOPT" => nil }, RbConfig.ruby, "-e", "$stdout.sync = true\n#{code}",
        in: read, out: ready)
      output.gets
      dump = Thread.new { run_memprof("dump", "--pid", pid, "--output", "heap.json", timeout: 300) }
      eventually("the copy") { !children(pid).empty? || !dump.alive? }
      write.write("x")
      dump.value
      status = Process.wait2(pid).last
      expect(status).to be_success, status.inspect
    ensure
      [read, write, output, ready].each(&:close)
    end
  end

  it "shows what each thread does" do
    code = <<~RUBY
      def wait_here(queue) = queue.pop
      Thread.new { Thread.current.name = "worker"; wait_here(Queue.new) }
      Thread.pass until Thread.list.last.stop?
      puts "ready"
      sleep
    RUBY
    plain_program(code) do |pid, _|
      text = run_memprof("stack", pid, timeout: 300).stdout
      expect(text).to match(/ \(#{pid}\), Ruby #{RUBY_VERSION}: 2 threads, paused for [\d.]+ ms$/)
      expect(text).to match(/^thread "worker", sleep\n.*pop'?\n-e:2:in .*wait_here/)
      answer = JSON.parse(run_memprof("stack", "--json", pid, timeout: 300).stdout)
      expect(answer["threads"].map { |thread| thread["name"] }).to include("worker")
      expect(answer).to include("ruby" => RUBY_VERSION)
    end
  end

  it "shows the fibers that do not run" do
    code = <<~RUBY
      def wait_here = Fiber.yield
      KEPT = Array.new(3) { Fiber.new { wait_here } }.each(&:resume)
      KEPT << Fiber.new { raise "never runs" } << Fiber.new { 1 }.tap(&:resume)
      def hand_over = Fiber.new { run_here }.resume
      def run_here = Thread.current[:runs] = sleep
      Thread.new { Fiber.new { hand_over }.resume }
      Thread.pass until Thread.list.last.stop?
      puts "ready"
      sleep
    RUBY
    plain_program(code) do |pid, _|
      text = run_memprof("stack", pid, timeout: 300).stdout
      expect(text).to match(/: 2 threads, \d suspended fibers, paused for /)
      expect(text)
        .to match(/^3 fibers created at -e:3, suspended\n.*yield'?\n-e:2:in .*wait_here.*\n-e:3:in /)
        .and match(/^fiber created at -e:7, suspended by resuming\n.*resume'?\n-e:5:in .*hand_over/)
      answer = JSON.parse(run_memprof("stack", "--json", pid, timeout: 300).stdout)
      suspended = answer["fibers"].select { |fiber| fiber["created_at"] == "-e:3" }
      expect(suspended.size).to eq(3)
      expect(suspended.map { |fiber| fiber["status"] }.uniq).to eq(["suspended"])
      # What runs is a thread's, and shown once.
      expect(answer["fibers"].to_s).not_to include("run_here")
      expect(answer["threads"].to_s).to include("run_here")
    end
  end

  it "says that there are threads of other Ractors" do
    code = "Warning[:experimental] = false\n2.times { Ractor.new { Ractor.receive } }\nputs :ready\nsleep"
    plain_program(code) do |pid, _|
      expect(run_memprof("stack", pid, timeout: 300).stdout)
        .to match(/^(The threads of 2 other Ractors|Other threads) are not shown[.:]/)
    end
  end

  it "dumps a process whose other Ractors wait, also while garbage is swept" do
    ["GC.start", "GC.start(immediate_sweep: false)"].each do |collection|
      code = "Warning[:experimental] = false\n#{planting}\nKEPT_RACTOR = Ractor.new { Ractor.receive }\n" \
             "#{collection}\nputs :ready\nsleep"
      plain_program(code) do |pid, _|
        result = run_memprof("dump", "--pid", pid, "--output", "heap.json", timeout: 300)
        expect(result).to be_success, result.stderr
        expect(planted("heap.json")).to eq(10_000)
        expect(children(pid)).to be_empty
      end
    end
  end

  # Half of the slots are free once they are swept, and until then the VM would wait for the other Ractor.
  it "answers for a process whose sweep is not over, and has to go on for it" do
    code = <<~RUBY
      Warning[:experimental] = false
      #{planting}
      KEPT_RACTOR = Ractor.new { Ractor.receive }
      sleep 0.1
      all = Array.new(400_000) { Object.new }
      HALF = all.each_slice(2).map(&:first)
      all = nil
      GC.start(immediate_sweep: false)
      SOME = []
      SOME << Object.new until GC.latest_gc_info(:state) == :sweeping
      puts :ready
      sleep
    RUBY
    plain_program(code) do |pid, _|
      result = run_memprof("stack", pid, timeout: 300)
      expect(result).to be_success, result.stderr
      expect(result.stdout).to match(/^main thread, sleep\n.*^-e:\d+:in .*<main>/m)
      result = run_memprof("dump", "--pid", pid, "--output", "heap.json", timeout: 300)
      expect(result).to be_success, result.stderr
      expect(planted("heap.json")).to eq(10_000)
      expect(children(pid)).to be_empty
    end
  end

  it "dumps a process whose only thread waits without the GVL" do
    plain_program("#{planting}\nputs :ready\nIO.pipe[0].read") do |pid, _|
      expect(run_memprof("stack", pid, timeout: 300).stdout).to include(": 1 thread, paused for ")
      result = run_memprof("dump", "--pid", pid, "--output", "heap.json", timeout: 300)
      expect(result.stderr).to include("paused for")
      expect(planted("heap.json")).to eq(10_000)
    end
  end

  it "takes its library along where the process does not see it" do
    skip "needs unshare" unless system("unshare", "-m", "true", err: File::NULL)
    library = File.join(ChildRuby::LIB, "memprof")
    plain_program("#{planting}\nputs :ready\nsleep", "unshare", "-m", "sh", "-c",
      "mount -t tmpfs none #{library} && mount -t tmpfs none /tmp && exec \"$@\"", "sh") do |pid, _|
      result = run_memprof("dump", "--pid", pid, "--output", "heap.json", timeout: 300)
      expect(result).to be_success
      expect(planted("heap.json")).to eq(10_000)
      expect(Dir.children("/proc/#{pid}/root/tmp")).to be_empty
    end
  end

  it "finds the files of a process in a chroot, whose maps name them as this side does" do
    skip "needs unshare" unless system("unshare", "-m", "true", err: File::NULL)
    script = <<~'SH'
      mount --make-rprivate / && mkdir root && mount --rbind / root || exit 3
      chroot root "$RUBY" -e "$CODE" > ready &
      until [ -s ready ]; do sleep 0.01; done
      $MEMPROF dump --pid $! --output heap.json && $MEMPROF stack $!
      status=$?
      kill -9 $!
      exit $status
    SH
    memprof = "#{RbConfig.ruby} -I#{ChildRuby::LIB} #{File.join(ChildRuby::ROOT, "exe/memprof")}"
    code = "#{planting}\n$stdout.sync = true\nputs :ready\nsleep"
    result = run_command("unshare", "-m", "sh", "-c", script, timeout: 300,
      env: { "RUBY" => RbConfig.ruby, "CODE" => code, "MEMPROF" => memprof })
    expect(result).to be_success, result.stderr
    expect(planted("heap.json")).to eq(10_000)
    expect(result.stdout).to match(/^-e:\d+:in .*sleep/)
  end

  it "asks all processes that one has forked" do
    forking = "pids = 2.times.map { fork { sleep } }\nputs :ready, pids.join(' ')\nsleep"
    plain_program("#{planting}\n#{forking}") do |pid, lines|
      pids = lines.gets.split
      result = run_memprof("dump", "--pid", pid, "--children", "--output", "heap.json", timeout: 300)
      expect(result).to be_success
      expect(pids.map { |child| planted("heap.#{child}.json") }).to eq([10_000, 10_000])
    end
  end

  it "says in a line why it can't" do
    pid = Process.spawn("sleep", "1000")
    %w[dump stack].zip([["--pid", pid], [pid]]).each do |verb, arguments|
      result = run_memprof(verb, *arguments)
      expect([result.stderr, result.status.exitstatus]).to eq(["memprof: process #{pid} runs no Ruby\n", 2])
    end
    invalid = "memprof: invalid PID \"none\"; expected a process id\n"
    expect(run_memprof("stack", "none").stderr).to eq(invalid)
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  it "leaves the process alone if memprof is killed meanwhile, or the disk is full" do
    plain_program("#{planting}\nputs :ready\nloop { sleep 0.01; puts :on }") do |pid, lines|
      with_file_system("size=256k") do |directory|
        [directory, "/dev"].zip(["heap.json", "full"]) do |place, name|
          result = run_memprof("dump", "--pid", pid, "--output", File.join(place, name), timeout: 300)
          expect([result.stderr, result.status.exitstatus])
            .to match([/No space left on device/, 2])
          expect(children(pid)).to be_empty
        end
        expect(Dir.children(directory)).to be_empty
      end
      memprof = [RbConfig.ruby, "-I#{ChildRuby::LIB}", File.join(ChildRuby::ROOT, "exe/memprof")]
      killed = Process.spawn(*memprof, "dump", "--pid", pid.to_s, out: File::NULL, err: File::NULL)
      eventually("the copy") { !children(pid).empty? || Process.wait(killed, Process::WNOHANG) }
      begin
        Process.kill(:KILL, killed)
        Process.wait(killed)
      rescue SystemCallError
        nil # it was faster
      end
      eventually("the end of the copy") { children(pid).empty? }
      expect(lines.gets).to eq("on\n")
    end
  end
end
