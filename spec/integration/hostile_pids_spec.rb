# frozen_string_literal: true

# A process may end at any time, and another one get its number: root does nothing to that one.
RSpec.describe "memprof, when its process has ended and another one has its number" do
  include HostileProcesses

  script = File.expand_path("../support/hostile/reused_pid.rb", __dir__)

  before do
    skip "no ns_last_pid here" unless File.exist?("/proc/sys/kernel/ns_last_pid")
    skip "needs a process namespace" unless system("unshare", "-mpf", "--mount-proc", "true", err: File::NULL)
  end

  def noticed(script, kind)
    result = run_command("unshare", "-mpf", "--kill-child", "--mount-proc", RbConfig.ruby, script, kind,
      *HostileProcesses::MEMPROF, env: { "LIB" => ChildRuby::LIB })
    expect(result.stderr).not_to include("not staged")
    expect(result.stdout).to start_with("noticed:"), result.stderr
    result.stdout.chomp
  end

  it "does not send the signal for a dump to the other one" do
    expect(noticed(script, "signal")).to eq("noticed: ")
  end

  it "does not attach to the other one" do
    expect(noticed(script, "attach")).to eq("noticed: ")
  end

  it "does not ask the other one over its socket" do
    expect(noticed(script, "socket")).to eq("noticed: ")
  end
end
