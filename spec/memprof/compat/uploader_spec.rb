# frozen_string_literal: true

require "json"
require "memprof/library"
require "open3"
require "tmpdir"
require "zlib"

# The cases of memprof_uploader_spec.rb of memprof 0.3, without a server: web_library_spec.rb has one.
RSpec.describe "memprof --pid PID --name NAME" do
  include HeapDumps

  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  let(:library) { File.join(Dir.pwd, "library") }

  def run_memprof(*arguments, env: {}, **options)
    nobody = { "MEMPROF_URL" => nil, "MEMPROF_KEY" => nil }
    super(*arguments, env: { "MEMPROF_LIBRARY" => library }.merge(nobody, env), **options)
  end

  # The stored dumps, by the library's own files.
  def kept
    Memprof::Library.new(library).to_a
  end

  def fails_with(message, *arguments, usage: false, **options)
    stdout, stderr, status = run_memprof(*arguments, **options)
    expect(stdout).to match(/Memprof Uploader.*#{"Usage:.*" if usage}#{message}\n\z/m)
    expect(stdout.include?("Usage:")).to be(usage)
    expect([stderr, status.exitstatus]).to eq(["", 1])
  end

  # A process that has loaded heap_dump, whose users handle signals by code of their own.
  def target(directory, code)
    reader, writer = IO.pipe
    program = "dir = #{directory.dump}; trap('URG') { #{code} }; puts :ready; $stdout.flush; sleep"
    options = ["-I#{ChildRuby::LIB}", "-rheap_dump"]
    pid = Process.spawn({ "MEMPROF_DIR" => directory }, RbConfig.ruby, *options, "-e", program, out: writer)
    writer.close
    reader.gets
    yield(pid)
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  it "shows how it is used" do
    stdout, _, status = run_memprof("--pid", "1", "-h")
    expect(stdout).to match(/Memprof Uploader.*Usage:.*memprof\.com no longer exists/m)
    expect(status.exitstatus).to eq(0)
    expect(stdout).to match_snapshot("cli_classic_help")
  end

  it "says what is missing" do
    fails_with(Regexp.escape("Missing PID! (-p PID)"), "-n", "app", usage: true)
    fails_with(Regexp.escape("Missing name! (-n 'my application')"), "-p", "1", usage: true)
    fails_with("No such process 99999999!", "-p", "99999999", "-n", "app", "--put-my-data-on-the-internet",
      "-k", "key")
    fails_with("File not found: nowhere.json", "-f", "nowhere.json", "-n", "app")
    fails_with("missing argument: --pid", "--pid", usage: true)
    fails_with(Regexp.escape("Missing API key! (-k KEY)"), "-p", Process.pid, "-n", "app", "-u", "http://a",
      usage: true)
    ["ftp://a", "a.example", "http://", "http://a b/"].each do |url|
      fails_with("Invalid --url \"#{Regexp.escape(url)}\"; expected a server such as https://dumps.example",
        "-p", Process.pid, "-n", "app", "-k", "key", "--url", url)
    end
    fails_with("invalid option: --nonsense", "-p", "1", "--nonsense", usage: true)
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

  it "leaves a process alone that has a handler of its own and hasn't loaded memprof" do
    plain_program("trap('URG') { exit!(3) }\nputs :ready\nsleep") do |pid, _|
      fails_with("Process #{pid} does not handle SIGURG: .*", "-p", pid, "-n", "app")
      expect(Process.wait(pid, Process::WNOHANG)).to be_nil
    end
  end

  # Runs the command, and calls the block when it says that it waits for a dump in progress.
  def run_until_it_waits(*arguments, env:)
    program = [RbConfig.ruby, "-I#{ChildRuby::LIB}", File.join(ChildRuby::ROOT, "exe/memprof"), *arguments]
    nobody = { "RUBYOPT" => nil, "MEMPROF_URL" => nil, "MEMPROF_KEY" => nil, "MEMPROF_LIBRARY" => library }
    stdout, stderr, status = nil
    Open3.popen3(nobody.merge(env), *program.map(&:to_s)) do |_, out, errors, child|
      stdout = out.gets.to_s
      stdout << out.gets.to_s until stdout.include?("Dump in progress") || out.eof?
      yield
      stdout << out.read
      stderr = errors.read
      status = child.value
    end
    [stdout, stderr, status]
  end

  it "waits for a dump in progress, takes it, and deletes it" do
    dump = cache_dump.sub(".memprof", ".json")
    run_command(RbConfig.ruby, File.join(ChildRuby::ROOT, "exe/memprof"), "convert", cache_dump, dump)
    Dir.mktmpdir do |directory|
      code = "from = #{dump.dump}; " + <<~'RUBY'.lines.map(&:chomp).join("; ")
        File.write("#{dir}/memprof-#{$$}-1.json.IN_PROGRESS", File.read(from))
      RUBY
      target(directory, code) do |pid|
        path = File.join(directory, "memprof-#{pid}-1.json")
        env = { "MEMPROF_DIR" => directory }
        stdout, stderr, status = run_until_it_waits("-p", pid, "-n", "my app", env: env) do
          File.rename("#{path}.IN_PROGRESS", path)
        end
        expect([stderr, status.exitstatus]).to eq(["", 0])
        expect(stdout).to include("Found file #{path}.IN_PROGRESS\n",
          "Dump in progress. Waiting 300 seconds for it to complete...\n", "Compressing with gzip...\n",
          "View it: memprof web --library\n", "Deleted dump file.\n")
        expect(stdout).to end_with("Finished!\n")
        expect(Dir.children(directory)).to be_empty
        entry = kept.fetch(0)
        expect(stdout).to include("Added to the library: #{entry.path}\n")
        expect(entry.path).to match(%r{\A#{library}/\d{13}-my_app\.json\.gz\z})
        expect(Zlib::GzipReader.open(entry.path, &:read).b == File.binread(dump)).to be(true)
        expect(File.stat(entry.path).mode & 0o777).to eq(0o600)
        expect([entry.name, entry.app, entry.to_h[:objects]]).to match(["my app", "my app", be > 1000])
      end
    end
  end

  it "takes the dump of a program that has loaded memprof/signal" do
    live_program do |program|
      stdout, _, status = run_memprof("-p", program.pid, "-n", "app", "-t")
      expect([stdout[-10..], status.exitstatus]).to eq(["Finished!\n", 0])
      expect(program.dumps).to be_empty
      expect(File.exist?(library)).to be(false)

      run_memprof("-p", program.pid, "-n", "app", "-t", "--no-delete")
      expect(program.dumps).to match([/\.json\z/])
      expect(File.exist?(library)).to be(false)

      run_memprof("-p", program.pid, "-n", "app", "-k", "key", "--put-my-data-on-the-internet")
      last = Zlib::GzipReader.open(kept.fetch(0).path) { |gzip| gzip.each_line.to_a.last }
      expect(JSON.parse(last)).to include("type" => "footer")
      expect(kept.first.to_h).to include(pid: program.pid, app: "app")
    end
  end

  it "takes a dump that is there, and leaves it" do
    FileUtils.cp(cache_dump, "old.memprof")
    stdout, _, status = run_memprof("--file", "old.memprof", "--name", "../../a<b>\e[31m")
    expect(status.exitstatus).to eq(0)
    expect(stdout).not_to include("Deleted dump file.")
    expect(FileUtils.identical?("old.memprof", cache_dump)).to be(true)
    entry = kept.fetch(0)
    expect(File.basename(entry.path)).to match(/\A\d{13}-_a_b_e_31m\.memprof\z/)
    expect(entry.name).to eq('../../a<b>\e[31m')
    expect(FileUtils.identical?(entry.path, cache_dump)).to be(true)
    expect(Dir.children(".")).to contain_exactly("library", "old.memprof")
  end

  it "keeps nothing that is no dump" do
    File.write("notes.json", "no dump\n")
    fails_with("notes.json is not a heap dump. The dump is still at notes.json", "-f", "notes.json", "-n",
      "app",
      "-d")
    expect(kept).to be_empty
    expect(Dir.children(library)).to eq([".lock"])
    File.write("file", "")
    fails_with("cannot store dumps in .*file.* The dump is still at notes.json", "-f", "notes.json", "-n",
      "app",
      env: { "MEMPROF_LIBRARY" => File.join(Dir.pwd, "file") })
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
