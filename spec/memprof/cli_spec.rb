# frozen_string_literal: true

require "memprof/cli"
require "tmpdir"

RSpec.describe "memprof" do
  def script(name, source)
    path = File.join(directory, name)
    File.write(path, source)
    path
  end

  let(:directory) { Dir.mktmpdir("memprof-spec-") }

  after { FileUtils.rm_rf(directory) }

  describe "wrong use" do
    {
      "without a command" => [[], /no command given; see `memprof --help`/],
      "with an unknown command" => [%w[dance], /unknown command "dance"; see `memprof --help`/],
      "with an option and no command" => [%w[--frmat=json],
        /invalid option: --frmat=json \(did you mean --format\?\); see/],
      "with a misspelled command" => [%w[leeks], /unknown command "leeks" \(did you mean leaks\?\);/],
      "with an impossible size" => [%w[malloc --min-size 5GiB x],
        /invalid --min-size "5GiB"; expected a size between/],
      "with help for a misspelled command" => [%w[help leeks], /unknown command .* \(did you mean leaks\?\)/],
      "with letters in another order" => [%w[run --pake x], /option: --pake \(did you mean --peak\?\);/],
      "with a misspelled option" => [%w[leaks --limt=3 x], /option: --limt=3 \(did you mean --limit\?\);/],
      "with an unknown option" => [%w[run --frmat x y], /invalid option: --frmat.*`memprof help run`/],
      "with a wrong number" => [%w[run --limit 0 x], /invalid --limit "0"; expected a number of at least 1/],
      "with a number too large" => [%w[run --limit 5000000000 x], /"5000000000"; .* at most 1000000000$/],
      "with too many frames" => [%w[run --stack 2049 x], /invalid --stack "2049"; .* at most 2048$/],
      "with too many frames of malloc" => [%w[run --malloc -o x --stack 513 y], /"513"; .* at most 512$/],
      "with too few samples" => [%w[run --sample 5000000000 x], /invalid --sample .* at most 1000000000$/],
      "with no number" => [%w[run --sample many x],
        /invalid --sample "many"; expected a number of at least 1$/],
      "with no object sampled" => [%w[run --sample 0 x],
        /invalid --sample "0"; expected a number of at least 1$/],
      "with a size of samples" => [%w[run --sample 512KiB x],
        /invalid --sample "512KiB"; expected a number of at least 1$/],
      "with no number of samples of malloc" => [%w[run --malloc -o x --sample many y],
        /invalid --sample "many"/],
      "with an unknown format" => [%w[run --format html x],
        /invalid --format "html"; expected one of: text, json, /],
      "with a broken expression" => [%w[run --ignore-files ( x], /--ignore-files.*unmatched parenthesis/],
      "with a signal that ends programs" => [%w[run --signal TERM x],
        /invalid --signal "TERM"; expected one that can be caught/],
      "with a signal that there is not" => [%w[run --signal HELLO x],
        /invalid --signal "HELLO"; expected one that/],
      "with nothing to run" => [%w[run --limit 3], /no command given; see `memprof help run`/],
      "with nothing to track" => [%w[track], /no script given; see `memprof help track`/],
      "with a script that is not there" => [%w[track nowhere.rb], /cannot read the script nowhere.rb/],
      "with help for nothing" => [%w[help dance], /unknown command "dance"/],
      "with help for too much" => [%w[help run track], /unexpected arguments: track/],
      "with an --output in no directory" => [%w[run -o /nowhere/x y], %r{--output /nowhere/x: no such}]
    }.each do |situation, (arguments, message)|
      it "says what is wrong in one line and ends with 2, #{situation}" do
        stdout, stderr, status = run_memprof(*arguments)

        expect(stderr).to match(/\Amemprof: .*#{message}.*\n\z/)
        expect(stdout).to be_empty
        expect(status.exitstatus).to eq(2)
      end
    end
  end

  describe "--help" do
    it "lists every command with a line" do
      stdout, stderr, status = run_memprof("--help")

      expect(stdout).to match_snapshot("cli_help")
      expect([stderr, status.exitstatus]).to eq(["", 0])
      expect(run_memprof("help").stdout).to eq(stdout)
      expect(run_memprof("-h").stdout).to eq(stdout)
    end

    Memprof::CLI::VERBS.each_key do |verb|
      it "shows what #{verb} takes, within 80 columns" do
        stdout, stderr, status = run_memprof(verb, "--help")

        expect(stdout).to match_snapshot("cli_help_#{verb}")
        expect(stdout.lines.map { |line| line.chomp.length }.max).to be <= 80
        expect([stderr, status.exitstatus]).to eq(["", 0])
        expect(run_memprof("help", verb).stdout).to eq(stdout)
      end
    end

    it "does not mind a reader that leaves" do
      stdout, stderr, status = run_command("sh", "-c", '"$0" "$1" help run | head -1', RbConfig.ruby,
        File.join(ChildRuby::ROOT, "exe/memprof"))

      expect(stdout.lines.size).to eq(1)
      expect([stderr, status.exitstatus]).to eq(["", 0])
    end

    it "ends with 2 where it cannot be printed" do
      skip "no /dev/full here" unless File.exist?("/dev/full")
      _, stderr, status = run_command("sh", "-c", '"$0" "$1" --help >/dev/full', RbConfig.ruby,
        File.join(ChildRuby::ROOT, "exe/memprof"))

      expect(stderr).to match(/\Amemprof: cannot print the result: No space left on device.*\n\z/)
      expect(status.exitstatus).to eq(2)
    end
  end

  it "shows its version" do
    expect(run_memprof("--version").stdout).to eq("memprof #{Memprof::VERSION}\n")
    expect(run_memprof("-V").stdout).to eq("memprof #{Memprof::VERSION}\n")
    expect(run_memprof("run", "--version").stdout).to eq("memprof #{Memprof::VERSION}\n")
  end

  it "needs no library path" do
    stdout, = run_command(File.join(ChildRuby::ROOT, "exe/memprof"), "--version")

    expect(stdout).to eq("memprof #{Memprof::VERSION}\n")
  end

  describe "track" do
    it "runs the script as Ruby would, and prints the live objects that it allocated" do
      path = script("twelve.rb", <<~'RUBY')
        GC.disable
        p [ARGV, $0 == __FILE__, __dir__ == File.realpath(File.dirname($0)), DATA.read]
        12.times { "abc" }
        __END__
        data
      RUBY
      stdout, stderr, status = run_memprof("track", path, "--gc", "x")

      expect(stdout.lines.first).to eq(%([["--gc", "x"], true, true, "data\\n"]\n))
      expect(stdout).to match(/^     12 #{Regexp.escape(path)}:3:String$/)
      expect(stdout.lines.drop(1)).to all(match(/\A {0,6}\d+ .*:\d+:\S+$/))
      expect(stdout).not_to include("exe/memprof")
      expect([stderr, status.exitstatus]).to eq(["", 0])
    end

    it "collects garbage first with --gc" do
      path = script("kept.rb", "$kept = Array.new(5) { Object.new }\n7.times { Object.new }\nnil\n")
      stdout, = run_memprof("track", "--gc", path)

      expect(stdout).to match(/^      5 .*kept\.rb:1:Object$/)
      expect(stdout).not_to match(/kept\.rb:2:Object$/)
    end

    it "shows as many lines as are wanted" do
      path = script("many.rb", "GC.disable\n3.times { Object.new }\n9.times { Object.new }\n")

      expect(run_memprof("track", "--limit", "1", path).stdout).to match(/\A      9 .*many\.rb:3:Object\n\z/)
    end

    it "counts allocations of the script's own at_exit handlers" do
      path = script("late.rb", "GC.disable\nat_exit { 8.times { Object.new } }\n")

      expect(run_memprof("track", path).stdout).to match(/^      8 .*late\.rb:2:Object$/)
    end

    it "passes on how the script ends" do
      exits = {
        "exit 3" => 3, "abort 'no'" => 1, "raise 'boom'" => 1, "raise Memprof::Error" => 1,
        "File.read('/nowhere')" => 1
      }.to_h do |ending, expected|
        path = script("ends.rb", "GC.disable\n$kept = Object.new\n#{ending}\n")
        stdout, stderr, status = run_memprof("track", path)
        expect(stdout).to match(/^      1 .*ends\.rb:2:Object$/)
        expect(stderr).not_to include("memprof:")
        [status.exitstatus, expected]
      end
      expect(exits.keys).to eq(exits.values)
    end

    it "leaves itself out of the script's backtraces" do
      path = script("trace.rb", "def fail_here = raise('boom')\nfail_here\n")
      _, stderr, = run_memprof("track", path)

      expect(stderr).to include("trace.rb:1:in", "boom", "trace.rb:2:in")
      expect(stderr).not_to include("lib/memprof", "exe/memprof")
    end

    it "says where a script has a wrong syntax" do
      _, stderr, status = run_memprof("track", script("wrong.rb", "1 +\n"))

      expect(stderr).to include("wrong.rb:1")
      expect(status.exitstatus).to eq(1)
    end

    it "writes to a file for its owner, that of the directory it was started in" do
      path = script("moves.rb", "GC.disable\nDir.chdir('/')\n3.times { Object.new }\n")
      stdout, stderr, = run_memprof("track", "--output", "stats.txt", path, chdir: directory)

      expect([stdout, stderr]).to eq(["", ""])
      expect(File.read(File.join(directory, "stats.txt"))).to match(/^      3 .*moves\.rb:3:Object$/)
      expect(File.stat(File.join(directory, "stats.txt")).mode.to_s(8)).to end_with("600")
      expect(Dir.children(directory)).to contain_exactly("moves.rb", "stats.txt")
    end

    it "does not run the script if the file cannot be written" do
      { "nowhere/x" => %r{no such directory: .*/nowhere}, "." => /is a directory/ }.each do |output, problem|
        result = run_memprof("track", "-o", output, script("prints.rb", "puts 1\n"), chdir: directory)

        expect([result.stdout, result.status.exitstatus]).to eq(["", 2])
        expect(result.stderr).to match(/\Amemprof: cannot write --output .+: #{problem}\n\z/)
      end
    end

    it "says so when the result cannot be written, and leaves the script's exit status" do
      skip "no /dev/full here" unless File.exist?("/dev/full")
      path = script("full.rb", "$kept = 'a'.dup\nexit 5\n")
      _, stderr, status = run_memprof("track", "-o", "/dev/full", path)

      expect(stderr).to match(/\Amemprof: cannot show the objects: .*No space left on device\n\z/)
      expect(status.exitstatus).to eq(5)
    end

    it "prints once when the script forks" do
      path = script("forks.rb", "GC.disable\n4.times { Object.new }\nProcess.wait(fork {})\n")

      expect(run_memprof("track", path).stdout.scan(/forks\.rb:2:Object$/).size).to eq(1)
    end

    it "does not look for the script on the load path" do
      script("set.rb", "puts 'mine'\n")

      expect(run_memprof("track", "set.rb", chdir: directory).stdout).to start_with("mine\n")
    end
  end
end
