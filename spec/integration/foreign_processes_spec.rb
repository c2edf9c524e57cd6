# frozen_string_literal: true

require "json"

# What hostile processes may not have, honest ones still get, wherever they are.
RSpec.describe "memprof, run by root for an honest process of another user" do
  include HostileProcesses

  mallory = HostileProcesses::MALLORY

  let(:honest) do
    <<~RUBY
      class Order; def initialize(id) = (@name = "order \#{id}"); end
      KEPT = Array.new(1000) { |id| Order.new(id) }
      puts "ready"
      Thread.new { loop { KEPT << Object.new; sleep(0.001) } }
      def wait_here = loop { sleep }
      wait_here
    RUBY
  end

  def planted(path)
    File.foreach(path).count { |line| line.include?('"class_name":"Order"') }
  end

  # The directories where something might be left.
  def expect_no_traces(program, directories)
    left = directories.flat_map { |path| Dir.children("/proc/#{program.pid}/root#{path}") }
    expect(left.grep(/memprof-/)).to be_empty
  end

  # A signal has no options, so the name is the command's.
  def expect_dump(program)
    command = bounded("dump", "--pid", program.pid)
    expect(command.status).to be_success, command.stderr
    return unless command.status.success?

    path = command.stdout.chomp
    expect(planted(path)).to eq(1000)
    expect(JSON.parse(File.readlines(path).last)).to include("type" => "footer")
    stat = File.stat(path)
    expect([stat.uid, stat.mode & 0o777]).to eq([0, 0o600])
  end

  def expect_stack(program)
    command = bounded("stack", program.pid)
    expect(command.stdout).to match(/^-e:\d+:in .*wait_here/), command.stderr
  end

  def expect_attach(program)
    File.write("code.rb", "[KEPT.first.instance_variable_get(:@name), Process.euid]")
    command = bounded("attach", program.pid, "--eval", "code.rb")
    expect(command.stdout).to match(/\A\["order 0", \d+\]\n\z/), command.stderr
    command = bounded("attach", program.pid, "--track", "--for", 0.5)
    expect(command.stdout).to match(/ -e:\d+:Object$/), command.stderr
  end

  # Only the named directories are looked into, as they are seen from within.
  def works(program, directories, attach: true)
    aggregate_failures do
      expect_stack(program)
      expect_dump(program)
      expect_attach(program) if attach
      expect_no_traces(program, directories)
    end
  end

  it "dumps it, shows its stack, and attaches to it" do
    foreign_program(honest) { |program| works(program, [program.home]) }
  end

  it "does so for a process that lets no one else into its directories" do
    with_home do |home|
      File.chmod(0o700, home)
      foreign_program(honest, home: home) { |program| works(program, [home]) }
    end
  end

  it "does so for a process whose directory for temporary files is gone, or is none" do
    ["/nowhere", "/dev/null", "", "relative", "x" * 300].each do |directory|
      # In a container, whose /tmp is not that of other programs.
      contained_program(honest, :pivot, env: { "TMPDIR" => directory, "MEMPROF_DIR" => nil }) do |program|
        works(program, ["/tmp"])
      end
    end
  end

  it "does so for a process that has loaded memprof/signal" do
    code = <<~'RUBY'
      require "memprof/signal"
      sleep(0.01) until File.socket?(File.join(ENV.fetch("MEMPROF_DIR"), "memprof-#{$$}.sock"))
    RUBY
    foreign_program(code + honest, ruby_args: ["-I#{ChildRuby::LIB}"]) do |program|
      expect_dump(program)
      command = bounded("stats", "--pid", program.pid)
      expect(command.stdout).to match(/^ *1000 -e:\d+:Order$/), command.stderr
      expect(program.files).to be_empty
    end
  end

  it "does so for a process that answers to its signal only" do
    code = <<~'RUBY'
      File.write(File.join(ENV.fetch("MEMPROF_DIR"), "memprof-#{$$}.sock"), "")
      require "memprof/signal"
    RUBY
    foreign_program(code + honest, ruby_args: ["-I#{ChildRuby::LIB}"]) do |program|
      expect_dump(program)
      expect(program.files).to be_empty
    end
  end

  it "does so in a user's own namespaces" do
    wrapper = [*as(mallory), "unshare", "-Urm"]
    skip "users may not make namespaces here" unless system(*wrapper, "true", err: File::NULL)
    foreign_program(honest, *wrapper, uid: nil) { |program| works(program, [program.home]) }
  end

  it "does so in a process namespace of its own" do
    code = "puts \"ready\"; $stdout.flush\n#{honest.sub("puts \"ready\"", "")}"
    # The shell is the process that is known; its child is the program.
    foreign_program(code, "unshare", "-mpf", "--mount-proc") do |program|
      inside = Integer(File.read("/proc/#{program.pid}/task/#{program.pid}/children").split.first)
      expect(File.read("/proc/#{inside}/status")[/^NSpid:.*/].split.last).to eq("1")
      program.pid = inside
      works(program, [program.home])
    end
  end

  full = "head -c 100000 /dev/zero > tmp/full 2> /dev/null || true\n" \
         "if head -c 1 /dev/zero >> tmp/full 2> /dev/null; then exit 9; fi"
  places = {
    "as it is" => {},
    "whose files are read-only" => { prepare: "mount -o remount,ro tmp; mount -o remount,ro .",
                                     env: { "TMPDIR" => nil, "MEMPROF_DIR" => nil } },
    "whose /tmp is full" => { tmp: "mode=1777,size=64k", prepare: full,
                              env: { "TMPDIR" => nil, "MEMPROF_DIR" => nil } },
    "whose /tmp belongs to root" => { tmp: "mode=755", env: { "TMPDIR" => nil, "MEMPROF_DIR" => nil } },
    "whose TMPDIR is an absolute link" => { prepare: "mkdir -m 1777 real && ln -s /real linked",
                                            env: { "TMPDIR" => "/linked" } }
  }
  %i[chroot pivot].each do |kind|
    places.each do |what, options|
      it "does so in a container #{what} (#{kind})" do
        contained_program(honest, kind, **options) { |program| works(program, ["/tmp", "/inside"]) }
      end
    end

    without = {
      "that does not see memprof" => {},
      "that does not see memprof and is read-only" =>
        { prepare: "mount -o remount,ro tmp; mount -o remount,ro ." },
      "that does not see memprof and has a full /tmp" => { tmp: "mode=1777,size=64k", prepare: full },
      "that does not see memprof and whose /tmp is an absolute link" =>
        { prepare: "mkdir -m 1777 real && umount tmp && rmdir tmp && ln -s /real tmp" }
    }
    without.each do |what, options|
      it "dumps and shows a process in a container #{what} (#{kind})" do
        contained_program(honest, kind, library: "", env: { "TMPDIR" => nil, "MEMPROF_DIR" => nil },
          **options) do |program|
          works(program, [File.exist?("/proc/#{program.pid}/root/real") ? "/real" : "/tmp"], attach: false)
        end
      end
    end
  end
end
