# frozen_string_literal: true

# In processes of their own: how Ruby schedules threads is chosen when it starts.
RSpec.describe "Threads beside one that memprof works on" do
  let(:program) { <<~RUBY }
    require "memprof"
    NATIVE = Memprof.send(:const_get, :Native)
    Own = Class.new
    Memprof.start
    entered = Queue.new
    leave = Queue.new
    quiet = Thread.new { NATIVE.quiet { entered << 1; leave.pop; @own = Array.new(5) { Own.new } } }
    entered.pop
    kept = Array.new(16) { Thread.new { sleep 0.001; Array.new(10) { Object.new } } }.map(&:value)
    leave << 1
    quiet.join
    after = Thread.new { Array.new(10) { Object.new } }.value
    require "stringio"
    Memprof.stats(text = StringIO.new)
    counts = text.string.lines.grep(/:Object$/).map(&:to_i)
    p counts.sort, text.string.match?(/:Own$/)
  RUBY

  it "records what they allocate, and not what memprof does" do
    expect(run_ruby(program)).to have_attributes(stdout: "[10, 160]\nfalse\n", stderr: "")
  end

  it "does so where Ruby runs many threads on one native thread" do
    skip "Ruby #{RUBY_VERSION} has no M:N threads" if RUBY_VERSION < "3.3"

    result = run_ruby(program, env: { "RUBY_MN_THREADS" => "1" })
    expect(result).to have_attributes(stdout: "[10, 160]\nfalse\n", stderr: "")
  end

  it "forgets a thread that ended in the middle of it, in a fiber that was not resumed" do
    result = run_ruby(<<~RUBY)
      require "memprof"
      NATIVE = Memprof.send(:const_get, :Native)
      Memprof.start
      20.times { Thread.new { Fiber.new { NATIVE.quiet { Fiber.yield } }.resume }.join }
      GC.start
      kept = Array.new(40) { Thread.new { Array.new(10) { Object.new } }.value }
      require "stringio"
      Memprof.stats(text = StringIO.new)
      p text.string.lines.grep(/:Object$/).sum(&:to_i)
    RUBY
    expect(result.stdout).to eq("400\n")
  end

  it "records in the child of a fork what threads allocate there" do
    result = run_ruby(<<~RUBY)
      require "memprof"
      NATIVE = Memprof.send(:const_get, :Native)
      entered = Queue.new
      30.times { Thread.new { NATIVE.quiet { entered << 1; sleep } } }
      30.times { entered.pop }
      pid = fork do
        GC.start
        report = Memprof.report { @kept = Array.new(60) { Thread.new { Array.new(10) { Object.new } }.value } }
        puts report.allocated_objects_by_class.find { |row| row[:data] == "Object" }[:count]
      end
      Process.wait(pid)
    RUBY
    expect(result.stdout).to eq("600\n")
  end
end
