# frozen_string_literal: true

require "json"

# `memprof run`, from outside.
RSpec.describe "memprof run" do
  include_context "with memprof run"

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

    describe "with --after-boot" do
      def classes(stdout)
        stdout.scan(/(?:Rational|Complex|Object) +\w+\.rb:\d+/).map { |text| text.squeeze(" ") }.uniq
      end

      it "begins with the first example, its hooks included" do
        file("app_spec.rb", <<~RUBY)
          $boot = Array.new(50) { |i| Rational(i, 7) }
          RSpec.describe "it" do
            before { $hook = Array.new(50) { |i| Complex(i, 7) } }
            it("runs") { $kept = Array.new(50) { Object.new } }
          end
        RUBY
        stdout, stderr, = run("--after-boot", "--", RbConfig.ruby, "-S", "rspec", "app_spec.rb")

        expect(stdout).to include("1 example, 0 failures")
        expect(classes(stdout)).to contain_exactly("Complex app_spec.rb:3", "Object app_spec.rb:4")
        expect(stderr).to eq("")
      end

      it "begins with the first test, or where the program says, also in a forked process" do
        file("app.rb", <<~RUBY)
          $boot = Array.new(50) { |i| Rational(i, 7) }
          child = fork
          Process.wait(child) if child
          p [Memprof.booted, Memprof.booted]
          $kept = Array.new(50) { Object.new }
        RUBY
        stdout, stderr, = run("--after-boot", "app.rb")
        expect(stdout).to start_with("[true, false]\n" * 2)
        expect(classes(stdout)).to eq(["Object app.rb:5"])
        expect(named(stderr).map { |name| classes(file(name)) }).to eq([["Object app.rb:5"]])

        file("app_test.rb", <<~RUBY)
          require "minitest/autorun"
          $boot = Array.new(50) { |i| Rational(i, 7) }
          class AppTest < Minitest::Test
            def test_it = assert($kept = Array.new(50) { Object.new })
          end
        RUBY
        expect(classes(run("--after-boot", "app_test.rb").stdout)).to eq(["Object app_test.rb:4"])
      end

      it "begins with the first task of Rake, but the one that boots Rails" do
        file("Rakefile", <<~RUBY)
          task(:environment) { $boot = Array.new(50) { |i| Rational(i, 7) } }
          task(import: :environment) { $kept = Array.new(50) { Object.new } }
        RUBY
        stdout, stderr, = run("--after-boot", "--", RbConfig.ruby, "-S", "rake", "import")
        expect(stdout.scan(/(Rational|Object) +Rakefile:(\d)/).uniq).to eq([%w[Object 2]])
        expect(stderr).to eq("")
      end

      it "says that it never began" do
        file("app.rb", "puts :done")
        stdout, stderr, status = run("--after-boot", "app.rb")

        expect([stdout, status.exitstatus]).to eq(["done\n", 0])
        expect(stderr).to match(/no report: there was no request, example, test, job or task/)
      end
    end

    it "draws what is wanted" do
      file("app.rb", "$kept = Array.new(6) { Object.new }\n40.times { Object.new }\n")
      options = %w[--format collapsed --class Object --allow-files app --value retained_objects]

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
      expect(sites.call("--class", "Rational").map(&:last).uniq).to eq(%w[Rational])
      # As --class was called.
      expect(sites.call("--trace", "Rational", "--ignore-files", "wanted|gems"))
        .to contain_exactly([/other\.rb/, "Rational"])
    end

    it "does not take for a class what can't be one" do
      _, stderr, status = run("--class", "ruby", "-e", "1")
      expect([stderr, status.exitstatus])
        .to eq(["memprof: invalid --class \"ruby\"; expected a class, such as String or <array>\n", 2])
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
      commands = [%w[./tool --a b], %w[tool --a b], %w[plain.rb --a b], %w[-- plain.rb --a b],
        [RbConfig.ruby, "-S", "rake"],
        ["sh", "-c", "exec #{RbConfig.ruby} plain.rb --a b"],
        ["sh", "-c", "#{RbConfig.ruby} plain.rb --a b; true"]]

      path = [directory, ENV.fetch("PATH")].join(File::PATH_SEPARATOR)
      expect(commands.map { |command| run(*command, env: { "PATH" => path }).stdout })
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

    it "gets no warning of memprof" do
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
      expect(stderr).to match(/\Amemprof: no report: the command ran no Ruby.*\n\z/)
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

    it "is reported if a TERM that ends it comes again, as from timeout" do
      stdout, stderr, status = run("ruby", "-e", <<~RUBY)
        Memprof::Report.prepend(Module.new { def write(*, **) = Process.kill(:TERM, $$) && super })
        Process.kill(:TERM, $$)
        sleep
      RUBY

      expect(stdout).to include("retained of")
      expect([stderr, status.exitstatus]).to eq(["", 143])
    end

    { "exit!(7)" => 7, "Process.kill(:KILL, $$); sleep" => 137, "exec('sh', '-c', 'exit 8')" => 8 }
      .each do |ending, expected|
        it "is passed on, and the lack of a report explained, after #{ending}" do
          stdout, stderr, status = run("ruby", "-e", ending)

          expect(stdout).to be_empty
          expect(stderr)
            .to match(/\Amemprof: no report \(ended by exit!, exec or .* signal\): \d+ \(-e\)\n\z/)
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
end
