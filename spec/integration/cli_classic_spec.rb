# frozen_string_literal: true

require "json"
require "tmpdir"
require "zlib"

# The cases of memprof_uploader_spec.rb of memprof 0.3, and what has taken the place of the upload.
RSpec.describe "memprof --pid PID --name NAME" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  def fails_with(message, *arguments, **options)
    stdout, stderr, status = run_memprof(*arguments, **options)
    expect(stdout).to match(/Memprof Uploader.*Usage:.*#{message}\n\z/m)
    expect([stderr, status.exitstatus]).to eq(["", 1])
  end

  # A process that handles SIGURG by code of its own.
  def target(directory, code)
    reader, writer = IO.pipe
    program = "dir = #{directory.dump}; trap('URG') { #{code} }; puts :ready; $stdout.flush; sleep"
    pid = Process.spawn({ "MEMPROF_DIR" => directory }, RbConfig.ruby, "-e", program, out: writer)
    writer.close
    reader.gets
    yield(pid)
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  it "shows how it is used" do
    stdout, _, status = run_memprof("--pid", "1", "-h")
    expect(stdout).to match(/Memprof Uploader.*Usage:.*memprof\.com is gone/m)
    expect(status.exitstatus).to eq(0)
    expect(stdout).to match_snapshot("cli_classic_help")
  end

  it "says what is missing" do
    fails_with(Regexp.escape("Missing PID! (-p PID)"), "-n", "app")
    fails_with(Regexp.escape("Missing name! (-n 'my application')"), "-p", "1")
    fails_with("No such process 99999999!", "-p", "99999999", "-n", "app", "--put-my-data-on-the-internet",
      "-k", "key")
    fails_with("File not found: nowhere.json", "-f", "nowhere.json", "-n", "app")
    fails_with("missing argument: --pid", "--pid")
    fails_with("invalid option: --nonsense", "--nonsense")
  end

  it "gives up on a process that makes no file" do
    Dir.mktmpdir do |directory|
      target(directory, "nil") do |pid|
        stdout, _, status = run_memprof("-p", pid, "-n", "app", "-s", "1",
          env: { "MEMPROF_DIR" => directory })
        expect(stdout).to include("Signaled process #{pid} with SIGURG\n",
          "Waiting 1 seconds for process #{pid} to create a new dump...\n",
          "Timed out after waiting 1 seconds\n")
        expect(status.exitstatus).to eq(1)
      end
    end
  end

  it "waits for a dump in progress, takes it, and deletes it" do
    Dir.mktmpdir do |directory|
      code = <<~'RUBY'.lines.map(&:chomp).join("; ")
        path = "#{dir}/memprof-#{$$}-1.json"
        File.write("#{path}.IN_PROGRESS", "{}\n")
        Thread.new { sleep 1; File.rename("#{path}.IN_PROGRESS", path) }
      RUBY
      target(directory, code) do |pid|
        stdout, stderr, status = run_memprof("-p", pid, "-n", "my app", env: { "MEMPROF_DIR" => directory })
        path = File.join(directory, "memprof-#{pid}-1.json")
        expect([stderr, status.exitstatus]).to eq(["", 0])
        expect(stdout).to include("Found file #{path}.IN_PROGRESS\n",
          "Dump in progress. Waiting 300 seconds for it to complete...\n", "Compressing with gzip...\n",
          "memprof.com is gone, so nothing was uploaded.", "Deleted dump file.\n")
        expect(stdout).to end_with("Finished!\n")
        expect(Dir.children(directory)).to be_empty
        name = Dir.children(".").fetch(0)
        expect(name).to match(/\Amy_app-#{pid}-\d{8}-\d{6}\.json\.gz\z/)
        expect(Zlib::GzipReader.open(name, &:read)).to eq("{}\n")
        expect(File.stat(name).mode & 0o777).to eq(0o600)
      end
    end
  end

  it "takes the dump of a program that has loaded memprof/signal" do
    live_program do |program|
      stdout, _, status = run_memprof("-p", program.pid, "-n", "app", "-t")
      expect([stdout[-10..], status.exitstatus]).to eq(["Finished!\n", 0])
      expect(program.dumps).to be_empty
      expect(Dir.children(".")).to be_empty

      run_memprof("-p", program.pid, "-n", "app", "-t", "--no-delete")
      expect(program.dumps).to match([/\.json\.gz\z/])
      expect(Dir.children(".")).to be_empty

      run_memprof("-p", program.pid, "-n", "app", "-k", "key", "--put-my-data-on-the-internet")
      last = Zlib::GzipReader.open(Dir.children(".").fetch(0)) { |gzip| gzip.each_line.to_a.last }
      expect(JSON.parse(last)).to include("type" => "footer")
    end
  end

  it "takes a dump that is there, and leaves it" do
    File.write("old.json", "{}\n")
    stdout, _, status = run_memprof("--file", "old.json", "--name", "app")
    expect(status.exitstatus).to eq(0)
    expect(stdout).not_to include("Deleted dump file.")
    expect(File.read("old.json")).to eq("{}\n")
    expect(Dir.glob("app-*.json.gz").size).to eq(1)
  end

  it "says how to attach to a process that does not handle the signal" do
    pid = Process.spawn("sleep", "60")
    fails_with("Process #{pid} does not handle SIGURG: add `require \"memprof/signal\"`.*", "-p", pid, "-n",
      "app")
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  it "shows facts about this Ruby" do
    stdout, _, status = run_memprof("--info")
    expect(stdout).to include(RUBY_DESCRIPTION, "CFLAGS:", "Configure arguments:", "Libraries:",
      RbConfig.ruby)
    expect(status.exitstatus).to eq(0)
  end
end
