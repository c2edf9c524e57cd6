# frozen_string_literal: true

require "rbconfig"

# Probes in the library, as gdb finds them; eBPF programs read the same notes.
RSpec.describe "The probes of a recording of malloc" do
  program = <<~'RUBY'
    require "memprof"
    Memprof::Malloc.start(sample: "64 KiB")
    puts "ready"
    $stdout.flush
    loop { ("x" * 3_000_000).clear }
  RUBY

  let(:child) { IO.popen([RbConfig.ruby, "-I#{ChildRuby::LIB}", "-e", program, { err: %i[child out] }]) }

  after do
    Process.kill(:KILL, child.pid)
    child.close
  end

  def gdb(*commands)
    options = ["-nx", "-batch", *commands.flat_map { |command| ["-ex", command] }]
    run_command("gdb", *options, "-p", child.pid.to_s, timeout: 300)
  rescue Errno::ENOENT
    skip "gdb is not installed"
  end

  it "pass address, size and weight of a sample, and when it is freed" do
    expect(child.gets).to eq "ready\n"
    result = gdb("print 1 + 1",
      "break -probe-stap otel_memory:alloc if $_probe_arg1 == 3000001", "continue",
      'printf "allocated %lu, for %lu\n", $_probe_arg1, $_probe_arg2', "set $block = $_probe_arg0", "delete",
      "break -probe-stap otel_memory:free if $_probe_arg0 == $block", "continue",
      'printf "freed\n"', "delete", "detach")
    skip "gdb can't attach here: #{result.stderr.lines.last}" unless result.stdout.match?(/^\$1 = 2$/) &&
      !result.stderr.include?("ptrace")
    expect(result.stdout.lines)
      .to include("allocated 3000001, for 3000001\n", "freed\n"), result.stdout + result.stderr
  end
end
