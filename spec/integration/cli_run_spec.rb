# frozen_string_literal: true

require "fileutils"
require "json"
require "socket"
require "tmpdir"

# `memprof run`, from outside.
RSpec.describe "memprof run" do
  let(:directory) { Dir.mktmpdir("memprof-spec-") }
  # Where the runs put what nobody asked to keep.
  let(:temporary) { File.join(directory, "tmp").tap { |path| Dir.mkdir(path) } }

  after { FileUtils.rm_rf(directory) }

  def run(*arguments, env: {}, **options)
    run_memprof("run", *arguments, env: { "TMPDIR" => temporary }.merge(env), chdir: directory, **options)
  end

  def file(name, text = nil)
    path = File.join(directory, name)
    File.write(path, text) if text
    File.read(path)
  end

  # The files that the command's last words name.
  def named(stderr)
    place = stderr[/reports in (\S+),/, 1]
    names = stderr.scan(/\S+\.txt$/).map { |name| File.join(place, name) }
    names.map { |path| path.delete_prefix("#{File.realpath(directory)}/") }
  end

  # The files that are there now, without those of the example itself.
  def reports
    Dir.children(directory).grep(/report/).sort
  end

  # A shell command line with `memprof run` as $MEMPROF.
  def shell(command, **options)
    memprof = "#{RbConfig.ruby} -I#{ChildRuby::LIB} #{File.join(ChildRuby::ROOT, "exe/memprof")} run"
    run_command("sh", "-c", command, env: { "TMPDIR" => temporary, "MEMPROF" => memprof }, chdir: directory,
      **options)
  end

  describe "the report" do
    it "comes on stdout after what the program prints, its at_exit handlers included" do
      file("app.rb", <<~RUBY)
        at_exit { $late = Array.new(7) { Object.new }; puts "bye" }
        $kept = Array.new(500) { |i| Rational(i, 7) }
        puts "hello"
      RUBY
      stdout, stderr, status = run("app.rb")

      expect(stdout).to match(/\Ahello\nbye\n[\d,]+ objects? .* retained of .* allocated; .* freed\n/)
      expect(stdout).to match(/Rational +app\.rb:2/)
      expect(stdout).to match(/ 7 +100 % +Object +app\.rb:1/)
      expect([stderr, status.exitstatus]).to eq(["", 0])
      expect(Dir.children(temporary)).to be_empty
    end

    {
      "text" => /retained of/, "markdown" => /^\| Retained \|/, "json" => /"totals"/,
      "memory_profiler" => /^Total allocated: \d+ bytes/, "collapsed" => /app\.rb.*;.* \d+$/,
      "speedscope" => /"\$schema": ?"https:..www\.speedscope/, "firefox" => /"stackTable"/
    }.each do |format, expected|
      it "is #{format} if so asked" do
        file("app.rb", "def keep = $kept = Array.new(50) { Object.new }\nkeep\n")
        stdout, stderr, = run("--format", format, "app.rb")

        expect(stdout).to match(expected)
        expect(stdout).not_to include("\e[")
        expect(stderr).to be_empty
        JSON.parse(stdout) if %w[json speedscope firefox].include?(format)
      end
    end

    it "may be a binary file" do
      run("--format", "pprof", "--output", "report.pb.gz", "ruby", "-e", "Process.wait(fork {})")

      expect(reports).to match([/\Areport\.\d+\.pb\.gz\z/, "report.pb.gz"])
      expect(File.binread(File.join(directory, "report.pb.gz"), 2)).to eq("\x1F\x8B".b)
    end

    it "keeps stacks for the formats that show them" do
      file("app.rb", "def inner = $kept = Object.new\ndef outer = inner\nouter\n")

      expect(run("--format", "collapsed", "app.rb").stdout).to match(/outer.*;.*inner/)
      expect(run("--format", "collapsed", "--stack", "1", "app.rb").stdout).not_to match(/outer.*;.*inner/)
      run("--format", "json", "--output", "report.json", "--stack", "8", "app.rb")
      expect(JSON.parse(file("report.json")).fetch("meta")).to include("stack" => 8)
    end

    it "draws what is wanted" do
      file("app.rb", "$kept = Array.new(6) { Object.new }\n40.times { Object.new }\n")
      options = %w[--format collapsed --trace Object --allow-files app --value retained_objects]

      # The machine's stack may still hold the last of the forty.
      expect(run(*options, "app.rb").stdout.scan(/ (\d+)$/).flatten - ["1"]).to eq(%w[6])
    end

    it "leaves out what is not wanted" do
      file("wanted.rb", "$strings = Array.new(3) { 'a'.dup }; $numbers = Array.new(4) { |i| Rational(i, 7) }")
      file("other.rb", "$others = Array.new(5) { |i| Rational(i, 7) }; require_relative 'wanted'")
      sites = ->(*options) do
        run("--format", "json", "--output", "report.json", *options, "other.rb")
        JSON.parse(file("report.json")).fetch("sites").map { |site| site.values_at("file", "class") }.uniq
      end

      expect(sites.call("--allow-files", "wanted")).to all(match([/wanted\.rb/, String]))
      expect(sites.call("--ignore-files", "wanted").map(&:first)).not_to include(/wanted\.rb/)
      expect(sites.call("--no-internal").map(&:last)).to include("Rational")
      expect(sites.call("--no-internal").map(&:last)).not_to include(/</)
      expect(sites.call("--trace", "Rational").map(&:last).uniq).to eq(%w[Rational])
      expect(sites.call("--trace", "Rational", "--ignore-files", "wanted|gems"))
        .to contain_exactly([/other\.rb/, "Rational"])
    end

    it "is short if so asked" do
      full, short = [[], %w[--limit 1]].map { |limit| run(*limit, "ruby", "-rset", "-e", "1").stdout.size }

      expect(short).to be < full
    end

    it "samples" do
      options = %w[--sample 10 --format json --output report.json]
      run(*options, "ruby", "-e", "1000.times { Object.new }")

      expect(JSON.parse(file("report.json")).fetch("meta")).to include("sample" => 10)
    end

    it "is coloured if so asked" do
      expect(run("--color", "always", "ruby", "-e", "1").stdout).to include("\e[1m")
    end
  end

  describe "the command" do
    it "may be a script with a shebang, a Ruby file that is not executable, a tool, or a shell script" do
      file("tool", "#!#{RbConfig.ruby}\nputs ARGV.inspect\n")
      File.chmod(0o755, File.join(directory, "tool"))
      file("plain.rb", "puts ARGV.inspect\n")
      file("Rakefile", "task(:default) { puts %w[--a b].inspect }\n")
      commands = [%w[./tool --a b], %w[plain.rb --a b], %w[-- plain.rb --a b], %w[rake],
        ["sh", "-c", "exec #{RbConfig.ruby} plain.rb --a b"],
        ["sh", "-c", "#{RbConfig.ruby} plain.rb --a b; true"]]

      expect(commands.map { |command| run(*command).stdout })
        .to all(match(/\A\["--a", "b"\]\n[\d,]+ objects? .* retained of/))
    end

    it "reads what we are given" do
      expect(run("ruby", "-e", "puts gets", input: "one\ntwo\n").stdout).to start_with("one\n")
    end

    it "may have a name beyond ASCII in a locale that has none" do
      file("é.rb", "$kept = Rational(1, 7)")
      stdout, stderr, = run("é.rb", env: { "LC_ALL" => "C" })

      expect(stdout).to match(/Rational +é\.rb:1/)
      expect(stderr).to be_empty
    end

    it "may be run by Bundler, without us in its Gemfile" do
      skip "no Bundler here" unless run_command("sh", "-c", "command -v bundle").success?
      file("Gemfile", "")
      stdout, stderr, = run("bundle", "exec", "ruby", "-e", "$kept = Rational(1, 7)")

      expect(stdout).to match(/Rational +-e:1/)
      expect(stderr).not_to include("memprof:")
    end

    it "hears no warning of ours" do
      expect(run("--signal", "URG", "ruby", "-w", "-e", "puts 1").stderr).to be_empty
    end

    it "keeps the user's RUBYOPT and libraries" do
      file("extra.rb", "EXTRA = 1")
      stdout, = run("ruby", "-e", "p [EXTRA, $VERBOSE]", env: { "RUBYOPT" => "-W0 -r./extra" })

      expect(stdout).to start_with("[1, nil]\n")
    end

    it "may run memprof itself" do
      stdout, stderr, = run("--limit", "1", RbConfig.ruby, File.join(ChildRuby::ROOT, "exe/memprof"), "run",
        "--limit", "1", "ruby", "-e", "1")

      expect(stdout.scan("retained of").size).to eq(2)
      expect(stderr).to be_empty
    end

    it "need not run Ruby" do
      stdout, stderr, status = run("sh", "-c", "echo hello; exit 4")

      expect(stdout).to eq("hello\n")
      expect(stderr).to match(/\Amemprof: nothing to report: the command ran no Ruby.*\n\z/)
      expect(status.exitstatus).to eq(4)
    end

    it "must exist" do
      _, stderr, status = run("no-such-tool")

      expect(stderr).to eq("memprof: no such command: no-such-tool\n")
      expect(status.exitstatus).to eq(127)
      expect(Dir.children(temporary)).to be_empty
    end

    it "must be executable" do
      file("text", "hello\n")
      _, stderr, status = run("./text")

      expect(stderr).to match(%r{\Amemprof: cannot start \./text: Permission denied.*\n\z})
      expect(status.exitstatus).to eq(126)
    end

    it "finds us under a path with a space" do
      home = File.join(directory, "my gems")
      FileUtils.mkdir_p(home)
      %w[lib exe].each { |name| FileUtils.cp_r(File.join(ChildRuby::ROOT, name), home) }
      stdout, stderr, = run_command(RbConfig.ruby, File.join(home, "exe/memprof"), "run", "ruby", "-e", "1")

      expect(stdout).to include("retained of")
      expect(stderr).to be_empty
    end
  end

  describe "the end of the program" do
    {
      "exit 3" => 3, "abort" => 1, "raise 'boom'" => 1, "throw :x" => 1,
      "Process.kill(:TERM, $$); sleep" => 143, "Process.kill(:HUP, $$); sleep" => 129,
      "Process.kill(:INT, $$); sleep" => 130,
      "Thread.new { exit 4 }.join" => 4, "at_exit { exit 5 }" => 5, "at_exit { raise 'late' }" => 1,
      "def exit(*) = puts('no'); exit; Kernel.exit(6)" => 6
    }.each do |ending, expected|
      it "is passed on and reported after #{ending}" do
        stdout, stderr, status = run("ruby", "-e", ending)

        expect(stdout).to include("retained of")
        expect(stderr).not_to include("memprof:")
        expect(status.exitstatus).to eq(expected)
      end
    end

    { "exit!(7)" => 7, "Process.kill(:KILL, $$); sleep" => 137, "exec('sh', '-c', 'exit 8')" => 8 }
      .each do |ending, expected|
        it "is passed on, and the lack of a report explained, after #{ending}" do
          stdout, stderr, status = run("ruby", "-e", ending)

          expect(stdout).to be_empty
          expect(stderr).to match(/\Amemprof: no report, ended by exit!, exec or a signal .*: \d+ \(-e\)\n\z/)
          expect(status.exitstatus).to eq(expected)
          expect(Dir.children(temporary)).to be_empty
        end
      end

    it "is that of a Ruby program in its place after exec" do
      file("second.rb", "$kept = Rational(1, 7); puts 'second'")
      stdout, stderr, = run("ruby", "-e", "exec 'ruby', 'second.rb'")

      expect(stdout).to match(/\Asecond\n.*retained of/)
      expect(stderr).to be_empty
    end

    it "does not need the program's streams" do
      code = <<~RUBY
        require "stringio"
        $stdout.close; STDERR.close; $stderr = StringIO.new; $stdout = StringIO.new; STDIN.close
        $kept = Object.new
        exit 2
      RUBY
      stdout, stderr, status = run("ruby", "-e", code)

      expect(stdout).to include("retained of")
      expect([stderr, status.exitstatus]).to eq(["", 2])
    end
  end

  describe "--output" do
    it "keeps stdout for the program" do
      stdout, stderr, = run("--output", "report.txt", "ruby", "-e", "puts 1")

      expect(stdout).to eq("1\n")
      expect(stderr).to match(/\Amemprof: reports, .*:\n +\d+ +-e +\d.* [KM]?i?B +report\.txt\n\z/)
      expect(file("report.txt")).to include("retained of")
      expect(File.stat(File.join(directory, "report.txt")).mode.to_s(8)).to end_with("600")
      expect(Dir.children(temporary)).to be_empty
    end

    it "is where memprof was started, wherever the program goes" do
      run("--output", "report.txt", "ruby", "-e", "Dir.chdir('/')")

      expect(reports).to eq(["report.txt"])
    end

    it "names the process with %p" do
      code = "$stdout.sync = true; puts $$; Process.wait(fork { puts $$ })"
      stdout, = run("--output", "%p-report", "ruby", "-e", code)

      expect(reports).to match_array(stdout.split.map { |pid| "#{pid}-report" })
    end

    it "warns if it cannot be written in the end, and leaves the exit status" do
      run("--output", "gone/report.txt", "ruby", "-e", "1")
      Dir.mkdir(File.join(directory, "gone"))
      stdout, stderr, status = run("--output", "gone/report.txt", "ruby", "-e", "Dir.rmdir('gone'); exit 3")

      expect(stdout).to be_empty
      expect(stderr).to match(%r{\Amemprof: no report of process \d+: can't write .*/gone.*\n\z})
      expect(status.exitstatus).to eq(3)
    end

    it "warns about a full disk, and leaves the exit status" do
      skip "no /dev/full here" unless File.exist?("/dev/full")
      stdout, stderr, status = run("--output", "/dev/full", "ruby", "-e", "exit 3")

      expect(stdout).to be_empty
      expect(stderr).to match(/\Amemprof: no report of process \d+: .*No space left on device.*\n\z/)
      expect(status.exitstatus).to eq(3)
      expect(File.stat("/dev/full")).to be_chardev
    end

    it "is refused before the program runs if its directory cannot be written" do
      skip "root may write anywhere" if Process.uid.zero?
      Dir.mkdir(File.join(directory, "shut"), 0o500)
      stdout, stderr, status = run("--output", "shut/report.txt", "ruby", "-e", "puts 1")

      expect(stdout).to be_empty
      expect(stderr).to match(%r{\Amemprof: cannot write --output shut/report.txt: not writable: .*\n\z})
      expect(status.exitstatus).to eq(2)
    end
  end

  describe "a stdout" do
    it "whose reader leaves is no error" do
      stdout, stderr, status = shell("($MEMPROF ruby -e 'puts 1'; echo status $? >&2) | head -1")

      expect(stdout).to eq("1\n")
      expect(stderr).to eq("status 0\n")
      expect(status).to be_success
    end

    it "that is closed is no error" do
      _, stderr, status = shell("$MEMPROF ruby -e 'exit 3' >&-")

      expect(stderr).to eq("")
      expect(status.exitstatus).to eq(3)
    end

    it "that is full costs the report its place, not the program its exit status" do
      skip "no /dev/full here" unless File.exist?("/dev/full")
      _, stderr, status = shell("$MEMPROF ruby -e 'exit 3' >/dev/full")

      expect(stderr).to match(/\Amemprof: cannot print the result: No space left on device/)
      expect(file(named(stderr).first)).to include("retained of")
      expect(status.exitstatus).to eq(3)
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

    it "write a report each, of what they made themselves" do
      stdout, stderr, = run("--output", "report.txt", "tree.rb")
      first, second = stdout.scan(/\d+/)

      expect(reports.size).to eq(4)
      expect(stderr.lines.size).to eq(5)
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

      expect(stderr).to match(/\Amemprof: no report, ended by exit!.*:( \d+ \(-e\),?){3}\n\z/)
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
      expect(stderr).to match(/\Amemprof: still running, will report at the end: \d+ \(-e\)\n\z/)
      file("go", "")
      late = File.join(temporary, directory_of_run, "report.#{stderr[/\d+/]}.txt")
      sleep 0.05 until File.exist?(late)
      expect(File.read(late)).to include("Complex")
    end

    it "may be the program itself, gone into the background" do
      code = "$kept = Complex(1, 2); Process.daemon(true); sleep 0.05 until File.exist?('go')"
      _, stderr, status = run("--output", "report.txt", "ruby", "-e", code)

      expect(stderr).to match(/\Amemprof: (went on in the background|still running), .*: \d+ \(-e\)\n\z/)
      expect(status.exitstatus).to eq(0)
      file("go", "")
      sleep 0.05 while reports.empty?
      expect(file(reports.first)).to include("Complex")
      sleep 0.05 until Dir.children(temporary).empty?
    end
  end

  describe "--signal" do
    it "has a report written each time, while the program goes on" do
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
        child = fork { sleep 0.02 until File.exist?("go") }
        sleep 0.05 # the child is there, its handler inherited
        Process.kill("USR2", child)
        sleep 0.02 until File.exist?("report.\#{child}-1.txt")
        File.write("go", "")
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
    def free_port
      TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    end

    def get(port, tries: 400)
      TCPSocket.open("127.0.0.1", port) do |socket|
        socket.write("GET / HTTP/1.0\r\n\r\n")
        socket.read
      end
    rescue Errno::ECONNREFUSED, Errno::ECONNRESET
      raise if tries.zero?

      sleep 0.05
      get(port, tries: tries - 1)
    end

    def serve(options, puma = [])
      file("config.ru", <<~RUBY)
        KEPT = []
        run ->(env) { KEPT << Complex(KEPT.size, 7); [200, { "content-type" => "text/plain" }, ["hello"]] }
      RUBY
      port = free_port
      requests = Thread.new do
        answers = Array.new(5) { get(port) }
        Process.kill("TERM", File.read(File.join(directory, "pid")).to_i)
        answers
      end
      result = run("--allow-files", "config.ru", *options, "--", "puma", "--bind", "tcp://127.0.0.1:#{port}",
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
      next expect(result.stderr).to match(/no report, ended by exit!.*puma/) if reports == ["report.txt"]

      worker = file((reports - ["report.txt"]).first)
      expect(reports.size).to eq(2)
      expect(worker).to match(/ 5 +100 % +Complex +config\.ru:2/)
      expect(worker).not_to include("<iseq>")
    end
  end
end
