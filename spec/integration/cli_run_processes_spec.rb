# frozen_string_literal: true

require "json"
require "socket"

# `memprof run`, from outside: programs of several processes, and signals.
RSpec.describe "memprof run" do
  include_context "with memprof run"

  describe "a command that runs another Ruby, as rake runs rspec" do
    before do
      file("launcher.rb", 'system("ruby", "worker.rb")')
      file("worker.rb", "$kept = Array.new(9000) { Object.new }")
    end

    it "has the report of that one printed, and its own named" do
      stdout, stderr, = run("launcher.rb")

      expect(stdout).to match(/ 9,000 +100 % +Object +worker\.rb:1/)
      expect(stderr).to match(/other reports in .*launcher\.rb.*\.txt\n\z/m)
    end

    it "has its report in the file that was asked for, whose ending says the format" do
      _, stderr, = run("-o", "report.json", "launcher.rb")

      expect(JSON.parse(file("report.json")).dig("meta", "command")).to eq("worker.rb")
      expect(JSON.parse(file((reports - ["report.json"]).first)).dig("meta", "command")).to eq("launcher.rb")
      expect(stderr).to match(/launcher\.rb.* report\.\d+\.json$/).and match(/worker\.rb.* report\.json$/)
    end
  end

  describe "other processes" do
    # A tree: the program forks, and one of the forks starts a Ruby of its own.
    let(:tree) do
      <<~'RUBY'
        $own = Array.new(3) { |i| Rational(i, 7) }
        first = fork { $forked = Array.new(50) { |i| Complex(i, 7) } }
        second = fork { system("ruby", "grand.rb") }
        [first, second].each { |pid| Process.wait(pid) }
        puts "tree #{first} #{second}"
      RUBY
    end

    before do
      file("tree.rb", tree)
      file("grand.rb", "$grand = Array.new(20) { Object.new }")
    end

    it "write a report each, of their own allocations" do
      stdout, stderr, = run("--output", "report.txt", "tree.rb")
      first, second = stdout.scan(/\d+/)

      expect(reports.size).to eq(4)
      expect(stderr.lines.size).to eq(5)
      expect(stderr.lines.drop(1).map { |line| line.index(/B  report/) }.uniq.size).to eq(1), stderr
      texts = ["", ".#{first}", ".#{second}"].map { |id| file("report#{id}.txt") }
      expect(texts.map { |text| text.scan(/Rational|Complex/).uniq }).to eq([["Rational"], ["Complex"], []])
      grand = reports - ["report.txt", "report.#{first}.txt", "report.#{second}.txt"]
      expect(file(grand.first)).to match(/Object +grand\.rb:1/)
    end

    it "do not flood the terminal: the command's own report is printed, the others are named" do
      stdout, stderr, = run("tree.rb")

      expect(stdout.scan("retained of").size).to eq(1)
      expect(stdout).to include("Rational")
      expect(stderr).to start_with("memprof: other reports in ")
      expect(named(stderr).size).to eq(3)
      expect(named(stderr).map { |path| file(path) }).to all(include("allocated"))
      expect(Dir.glob("tmp/*/*", base: directory)).to match_array(named(stderr))
    end

    it "speak for a command that is no Ruby: the one that allocated most is printed" do
      stdout, stderr, = run("sh", "-c", "ruby grand.rb; ruby -e 'Array.new(9000) { Complex(1, 2) }'; true")

      expect(stdout).to include("Complex")
      expect(stderr.scan(/report\.\d+\.txt$/).size).to eq(1)
    end

    it "are missed if they cannot report" do
      _, stderr, = run("ruby", "-e", "3.times { Process.wait(fork { exit! }) }")

      expect(stderr).to match(/\Amemprof: no report \(ended by exit!.*:( \d+ \(-e\),?){3}\n\z/)
    end

    it "may be numerous" do
      code = "30.times { Process.wait(fork {}) }; 9.times { Process.wait(fork { exit! }) }"
      _, stderr, = run("ruby", "-e", code)

      expect(stderr.lines.size).to eq(23)
      expect(stderr).to include("  and 10 more\n", ", 5 more\n")
    end

    it "may be left behind" do
      stdout, stderr, = run("ruby", "-e", <<~RUBY)
        fork do
          [$stdout, $stderr].each { |io| io.reopen(File::NULL) }
          sleep 0.05 until File.exist?("go")
          $kept = Complex(1, 2)
        end
      RUBY
      directory_of_run = Dir.children(temporary).first

      expect(stdout).to include("retained of")
      expect(stderr).to match(/\Amemprof: still running, will report at its end: \d+ \(-e\)\n\z/)
      file("go", "")
      late = File.join(temporary, directory_of_run, "report.#{stderr[/\d+/]}.txt")
      eventually("its report") { File.exist?(late) }
      expect(File.read(late)).to include("Complex")
    end

    it "may be the program itself, gone into the background" do
      code = "$kept = Complex(1, 2); Process.daemon(true); sleep 0.05 until File.exist?('go')"
      _, stderr, status = run("--output", "report.txt", "ruby", "-e", code)

      expect(stderr).to match(/\Amemprof: (continues in the background|still running), .*: \d+ \(-e\)\n\z/)
      expect(status.exitstatus).to eq(0)
      file("go", "")
      eventually("its report") { reports.any? }
      expect(file(reports.first)).to include("Complex")
      eventually("the end") { Dir.children(temporary).empty? }
    end
  end

  describe "--signal" do
    it "has a report written each time, while the program continues" do
      file("app.rb", <<~RUBY)
        $kept = Rational(1, 7)
        2.times do |i|
          Process.kill("URG", i.zero? ? Process.pid : Process.ppid) # the second goes through memprof
          sleep 0.02 until File.exist?("report-\#{i + 1}.txt")
          $more = Array.new(20) { Complex(1, 2) }
        end
        puts "went on"
      RUBY
      stdout, stderr, = run("--signal", "SIGURG", "--output", "report.txt", "app.rb")

      expect(stdout).to eq("went on\n")
      expect(stderr).to match(/^memprof: process \d+, report 1: .*report-1\.txt$/)
      expect(reports).to eq(%w[report-1.txt report-2.txt report.txt])
      expect(file("report-1.txt")).to include("Rational").and(satisfy { |text| !text.include?("Complex") })
      expect(file("report-2.txt")).to include("Rational", "Complex")
      expect(file("report-2.txt")).not_to include("lib/memprof")
    end

    it "reaches a forked process too" do
      code = <<~RUBY
        reader, writer = IO.pipe
        child = fork { writer.puts; sleep 0.02 until File.exist?("go") }
        reader.gets # the child is there, and knows that it is one
        Process.kill("USR2", child)
        sleep 0.02 until File.exist?("report.\#{child}-1.txt")
        File.write("go", "")
        Process.wait(child)
      RUBY
      run("--signal", "usr2", "--output", "report.txt", "ruby", "-e", code)

      expect(reports).to match([/\Areport\.\d+-1\.txt\z/, /\Areport\.\d+\.txt\z/, "report.txt"])
    end

    it "does not take a child that has just been forked for its parent" do
      code = <<~RUBY
        plain = Process.method(:_fork).super_method
        Process.define_singleton_method(:_fork) do
          plain.call.tap do |pid|
            next unless pid.zero? # below memprof, which does not know yet
            Process.kill("USR2", Process.pid)
            sleep 0.3
          end
        end
        child = fork { 500.times { File.exist?("report.\#{Process.pid}-1.txt") ? break : sleep(0.02) } }
        Process.wait(child)
      RUBY
      run("--signal", "usr2", "--output", "report.txt", "ruby", "-e", code)

      expect(reports).to match([/\Areport\.\d+-1\.txt\z/, /\Areport\.\d+\.txt\z/, "report.txt"])
    end

    it "names the file where no --output does" do
      stdout, stderr, = run("--signal", "USR2", "ruby", "-e", <<~RUBY)
        Process.kill("USR2", Process.pid)
        sleep 0.02 until Dir[File.join(ENV.fetch("TMPDIR"), "*", "report.*-1.txt")].any?
      RUBY

      expect(stdout.scan("retained of").size).to eq(1)
      expect(File.read(stderr[%r{report 1: (/\S+)}, 1])).to include("retained of")
    end
  end

  describe "signals sent to memprof" do
    it "stay ignored where they were, as under nohup" do
      code = 'p trap("HUP", "DEFAULT")'
      stdout, = shell("trap '' HUP; $MEMPROF ruby -e '#{code}'")

      expect(stdout).to start_with("\"IGNORE\"\n")
    end

    %w[TERM INT HUP USR1].each do |signal|
      it "#{signal} goes to the program, whose report is still printed" do
        code = "trap(ARGV[0]) { puts 'caught'; exit 9 }; Process.kill(ARGV[0], Process.ppid); sleep"
        stdout, stderr, status = run("ruby", "-e", code, signal)

        expect(stdout).to match(/\Acaught\n.*retained of/)
        expect([stderr, status.exitstatus]).to eq(["", 9])
      end
    end
  end

  describe "with puma" do
    # At a socket of its own: a port that was free may be somebody else's by the time that puma is there.
    let(:place) { File.join(directory, "puma.sock") }

    def get
      UNIXSocket.open(place) do |socket|
        socket.write("GET / HTTP/1.0\r\n\r\n")
        socket.read
      end
    end

    def serve(options, puma = [])
      file("config.ru", <<~RUBY)
        KEPT = []
        run ->(env) { KEPT << Complex(KEPT.size, 7); [200, { "content-type" => "text/plain" }, ["hello"]] }
      RUBY
      requests = Thread.new do
        eventually("puma") { listened_to?(place) }
        answers = Array.new(5) { get }
        Process.kill("TERM", File.read(File.join(directory, "pid")).to_i)
        answers
      end
      result = run("--allow-files", "config.ru", *options, "--", "puma", "--bind", "unix://#{place}",
        "--pidfile", "pid", *puma)
      [result, requests.value]
    end

    before { skip "no puma for this Ruby" unless run_ruby('require "puma"').success? }

    it "serves, and reports after SIGTERM" do
      result, answers = serve([])

      expect(answers).to all(start_with("HTTP/1.0 200").and(end_with("hello")))
      expect(result.stdout).to match(/ 5 +100 % +Complex +config\.ru:2/)
      expect(result.stderr).not_to include("memprof:")
    end

    it "has each worker report what it served" do
      result, answers = serve(%w[--output report.txt --no-internal], %w[--workers 1])
      expect(answers).to all(end_with("hello"))
      # Since puma 6 a worker ends with exit! once its master is gone, which may be before its report is
      # written.
      next expect(result.stderr).to match(/no report \(ended by exit!.*puma/) if reports == ["report.txt"]

      worker = file((reports - ["report.txt"]).first)
      expect(reports.size).to eq(2)
      expect(worker).to match(/ 5 +100 % +Complex +config\.ru:2/)
      expect(worker).not_to include("<iseq>")
    end
  end
end
