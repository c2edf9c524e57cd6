# frozen_string_literal: true

RSpec.describe "memprof/signal after a fork" do
  it "has each process answer for itself" do
    live_program("pids = 3.times.map { fork { sleep } }\nputs pids.join(' ')\nsleep") do |program|
      pids = program.line.split.map(&:to_i)
      pids.each { |pid| Process.kill(:URG, pid) }
      eventually("three dumps (#{program.stderr})") { program.dumps.size == 3 }
      expect(program.dumps.map { |path| path[/memprof-(\d+)/, 1].to_i }).to match_array(pids)
      expect(program.dumps.map { |path| records(path).first["pid"] }).to match_array(pids)
      program.signal
      eventually("the parent's") { program.dumps.size == 4 }
      expect(program.stderr).to be_empty
    end
  end

  it "has children answer that leave by exit!, and no socket of theirs is left by those that exit" do
    live_program(<<~'RUBY') do |program|
      fork { puts $$; STDIN.readpartial(1); exit }
      fork { puts $$; STDIN.readpartial(1); exit! }
      Process.waitall
      puts :gone
      sleep
    RUBY
      2.times { Process.kill(:URG, program.line.to_i) }
      eventually("two dumps") { program.dumps.size == 2 }
      2.times { program.continue }
      expect(program.line).to eq("gone")
      expect(program.files.grep(/sock/).size).to be <= 2 # the one that left by exit! could not clean up
      expect(program.files.grep(/IN_PROGRESS/)).to be_empty
    end
  end

  it "leaves fork and exec as they are" do
    live_program(<<~'RUBY') do |program|
      # A child that is about to exec has not made its socket yet, however busy the machine is.
      Memprof::OnSignal::Listener.send(:remove_const, :SOCKET_DELAY)
      Memprof::OnSignal::Listener::SOCKET_DELAY = 600
      pid = fork { exec("true") }
      puts Process.wait2(pid).last.exitstatus, system("true"), `echo x`, $?.exitstatus
    RUBY
      expect(4.times.map { program.line }).to eq(%w[0 true x 0])
      expect(program.wait.exitstatus).to eq(0)
      expect(program.files).to be_empty
      expect(program.stderr).to be_empty
    end
  end

  it "answers as a daemon under its new id" do
    live_program("Process.daemon(true, true)\nputs $$\nsleep") do |program|
      pid = program.line.to_i
      begin
        expect(pid).not_to eq(program.pid)
        Process.kill(:URG, pid)
        expect(one_dump(program)).to include("memprof-#{pid}-")
        eventually("its socket") { program.files.grep(/sock/) == ["memprof-#{pid}.sock"] }
      ensure
        Process.kill(:KILL, pid)
      end
    end
  end

  it "bears a parent that waits for any child" do
    live_program(<<~'RUBY') do |program|
      trap("CHLD") do
        nil while Process.wait(-1, Process::WNOHANG)
      rescue Errno::ECHILD
        nil
      end
      puts :set
      sleep 0.1 while true
    RUBY
      program.line
      program.signal
      one_dump(program)
      expect(program.stderr).to be_empty
    end
  end
end
