# frozen_string_literal: true

# As docs/sidecar.md has it: a container with memprof beside one that has none.
RSpec.describe "memprof in a sidecar" do
  include HostileProcesses

  # What Docker and containerd give to root in a container.
  let(:usual) do
    %w[chown dac_override fowner fsetid kill setgid setuid setpcap net_bind_service net_raw sys_chroot mknod
      audit_write setfcap]
  end

  let(:code) do
    <<~RUBY
      class Order; def initialize(id) = (@name = "order \#{id}"); end
      KEPT = Array.new(1000) { |id| Order.new(id) }
      puts "ready"
      def wait_here = loop { 100.times { KEPT << Order.new(0) }; sleep(0.02) }
      wait_here
    RUBY
  end

  # Another root than that of the process, and other files in it.
  def sidecar(*arguments, capabilities: [])
    Dir.mktmpdir("memprof-sidecar-", "/tmp") do |root|
      env = { "LIBRARY" => ChildRuby::ROOT, "HIDDEN" => File.dirname(ChildRuby::ROOT) }
      bounding = ["-all", *capabilities.map { |name| "+#{name}" }].join(",")
      run_command("unshare", "-m", "sh", HostileProcesses::CONTAINER, "pivot", root,
        "setpriv", "--bounding-set", bounding, *HostileProcesses::MEMPROF, *arguments.map(&:to_s), env: env)
    end
  end

  def container(&block) = contained_program(code, :pivot, library: "", &block)

  it "shows what a process of another container and user does, what it holds, and what leaks there" do
    container do |program|
      expect(File.exist?("/proc/#{program.pid}/root#{ChildRuby::LIB}")).to be(false)
      enough = [*usual, "sys_ptrace"]
      lines = {
        ["stack", program.pid] => /^-e:\d+:in .*wait_here/,
        ["dump", "--pid", program.pid, "-o", "/dev/stdout"] => /"class_name":"Order"/,
        ["memory", program.pid] => /RSS/,
        ["core", program.pid] => /Ruby/,
        ["leaks", "--for", "2s", program.pid] => /Order/
      }
      lines.each do |arguments, expected|
        result = sidecar(*arguments, capabilities: enough)
        expect(result.stdout.b).to match(expected), "#{arguments}: #{result.stdout}#{result.stderr}"
      end
    end
  end

  it "does not take a child for another program that it may not look into" do
    contained_program("fork { sleep }\n#{code}", :pivot, library: "") do |program|
      result = sidecar("dump", "--children", "--pid", program.pid, capabilities: usual)
      expect([result.status.exitstatus, result.stderr]).to match([2, /--cap-add SYS_PTRACE/])
    end
  end

  it "names what gives it the capability that it lacks" do
    container do |program|
      [["stack", program.pid], ["dump", "--pid", program.pid], ["core", program.pid], ["leaks", program.pid],
        ["attach", program.pid, "--track"], ["stats", "--pid", program.pid]].each do |arguments|
        result = sidecar(*arguments, capabilities: usual)
        expect([result.status.exitstatus, result.stderr])
          .to match([2, /lacks: docker run --cap-add SYS_PTRACE; /]), "#{arguments}: #{result.stderr}"
      end
    end
  end
end
